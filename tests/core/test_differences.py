import operator

from wer.differences import differences


def test_the_first_difference_is_the_first_in_the_order_of_what_was_wanted():
    got, wanted = {"a": 1, "z": 0, "b": 2}, {"b": 3, "a": 2}

    found = list(differences(got, wanted, "state", equal=operator.eq))

    assert found == [
        "state.b is 2, expected 3",
        "state.a is 1, expected 2",
        "state.z is 0, expected absent",
    ]


def test_the_verifiers_own_rule_of_equality_decides():
    def equal(got, wanted):
        return isinstance(got, float) and round(got) == wanted

    assert list(differences([1.01], [1], "state", equal=equal)) == []
    assert list(differences([1.6], [1], "state", equal=equal)) == ["state[0] is 1.6, expected 1"]
