"""The words of a call as settings: what is said wins, and what is not said leaves the rest as it was."""

from wer.api.words import Budget, configured


def test_settings_reach_what_has_a_word_of_its_own_too():
    given = {
        "executor": "openai/m",
        "seed": 3,
        "writer": "openai/w",
        "evaluation.trials": 5,
        "budget.max_tokens": 7,
    }

    config = configured(["bfcl"], {"set": given}, {"evaluation.trials": None})

    assert (config.seed, config.writer, config.evaluation.trials) == (3, "openai/w", 5)
    assert config.budget.max_tokens == 7


def test_a_word_wins_over_the_same_setting():
    given = {"executor": "openai/m", "seed": 3, "evaluation.trials": 5, "budget.max_tokens": 7}
    words = {"set": given, "seed": 4, "budget": Budget(tokens=8)}

    config = configured(["bfcl"], words, {"evaluation.trials": 6})

    assert (config.seed, config.evaluation.trials, config.budget.max_tokens) == (4, 6, 8)
