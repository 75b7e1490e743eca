"""Where two rollouts part, and what stands beside what from there on."""

from __future__ import annotations

from wer.viewing.aligning import aligned, divergence

LOOK, REFUND, PAID, END = ("call", "look"), ("call", "refund"), ("result", "paid"), ("end", "done")


def test_rollouts_part_at_their_first_different_event():
    assert divergence([LOOK, REFUND, END], [LOOK, PAID, END]) == 1


def test_rollouts_of_which_one_goes_on_part_where_the_other_ends():
    assert divergence([LOOK], [LOOK, REFUND]) == 1
    assert divergence([LOOK, END], [LOOK, END]) == 2


def test_what_both_share_after_the_parting_stands_on_one_row_again():
    rows = aligned([LOOK, REFUND, PAID, END], [LOOK, END])

    assert rows == [(0, 0), (1, None), (2, None), (3, 1)]


def test_what_differs_stands_beside_each_other():
    assert aligned([LOOK, END], [REFUND, END]) == [(0, 0), (1, 1)]


def test_every_event_of_both_is_there_once_and_in_order():
    left, right = [LOOK, PAID, LOOK, REFUND, END], [REFUND, LOOK, LOOK, PAID, PAID, END]

    rows = aligned(left, right)

    assert [a for a, _ in rows if a is not None] == list(range(len(left)))
    assert [b for _, b in rows if b is not None] == list(range(len(right)))
