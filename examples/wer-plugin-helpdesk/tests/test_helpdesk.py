"""The house's rules, tried on the class itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from wer_helpdesk import wer_phase_finished
from wer_helpdesk.desk import HelpDesk
from wer_helpdesk.verifier import check

from wer.records import (
    Candidate,
    End,
    Evidence,
    Experience,
    PhaseOutcome,
    RefinementState,
    Reward,
    Rollout,
    Skill,
    Task,
    Trajectory,
    Verdict,
)


@pytest.fixture
def desk():
    return HelpDesk(people={"E-1002": {"locked": 1}, "E-1001": {"approves": 0}})


def verified(desk, employee_id, category, badge):
    ticket = desk.open_ticket(employee_id, category, "P2", "words").split(",")[0]
    desk.verify_identity(ticket, badge)
    return ticket


def test_nothing_has_changed_on_a_fresh_desk(desk):
    assert desk.export() == {}


def test_people_are_found_without_their_accents_and_namesakes_together(desk):
    assert [person["id"] for person in desk.find_person("Wojcik")] == ["E-1002"]
    assert [person["department"] for person in desk.find_person("nina")] == ["Finance", "Library"]
    with pytest.raises(LookupError, match="try the family name alone"):
        desk.find_person("Nina from Finance")


def test_nobody_is_helped_before_the_badge_number_was_compared(desk):
    ticket = desk.open_ticket("E-1002", "account", "P2", "locked").split(",")[0]

    with pytest.raises(PermissionError, match="verify the badge number first"):
        desk.unlock_account(ticket)


def test_there_is_one_try_for_the_badge_number(desk):
    desk.open_ticket("E-1002", "account", "P2", "locked")

    with pytest.raises(PermissionError, match="escalate to security"):
        desk.verify_identity("ACC-31", "0000")
    with pytest.raises(PermissionError, match="the one try on ACC-31 has failed"):
        desk.verify_identity("ACC-31", "4471")


def test_a_locked_account_is_unlocked_before_its_password_is_reset(desk):
    ticket = verified(desk, "E-1002", "account", "4471")

    with pytest.raises(ValueError, match="unlock it first"):
        desk.reset_password(ticket)
    desk.unlock_account(ticket)
    desk.reset_password(ticket)

    assert desk.export()["people"] == {"E-1002": {"locked": 0, "passwords": 2}}


def test_a_manager_who_declines_is_obeyed(desk):
    ticket = verified(desk, "E-1004", "access", "7712")

    with pytest.raises(PermissionError, match="needs the manager's approval"):
        desk.grant_access(ticket, "payroll")
    assert desk.request_approval(ticket) == "E-1001 answers: declined"
    with pytest.raises(ValueError, match="close it as declined"):
        desk.close_ticket(ticket, "solved")


def test_a_second_ticket_for_the_same_is_refused(desk):
    desk.open_ticket("E-1002", "account", "P2", "locked")

    with pytest.raises(ValueError, match="ACC-31 is open for account already"):
        desk.open_ticket("E-1002", "account", "P1", "locked!")


def test_a_device_under_warranty_is_not_swapped_and_an_old_one_not_repaired(desk):
    ticket = verified(desk, "E-1031", "device", "7546")

    with pytest.raises(ValueError, match="under warranty until 2026-04-03"):
        desk.swap_device(ticket, "L-111", "L-203", "broken")
    with pytest.raises(ValueError, match="ended on 2024-07-06: swap it"):
        desk.send_to_repair(ticket, "P-304")


def test_the_check_names_what_differs_and_gives_the_share_that_is_right():
    task = SimpleNamespace(expect={"people": {"E-1": {"locked": 0, "passwords": 2}}})
    end = SimpleNamespace(state={"people": {"E-1": {"locked": 0}}, "devices": {"L-1": {"holder": None}}})

    score, said = check(task, end)

    assert score == pytest.approx(1 / 3)
    assert said.splitlines() == [
        "devices L-1 holder became None, and should not have changed",
        "people E-1 passwords did not become 2",
    ]


def test_the_check_answers_whatever_an_agent_leaves_behind():
    assert check(SimpleNamespace(expect={}), SimpleNamespace(state={"$too_large": "very"}))[0] == 0.0


def test_the_end_of_a_phase_says_which_columns_were_wrong_most_often(caplog):
    lines = ("tickets ACC-31 priority became 'P3' instead of 'P2'", "people E-1 locked did not become 0")

    with caplog.at_level(logging.WARNING):
        wer_phase_finished(0, PhaseOutcome(experiences=(judged(*lines), judged(lines[0]))))

    assert caplog.messages == ["phase 0: most often wrong: tickets.priority 2 times, people.locked 1 times"]


def judged(*diagnostics):
    task = Task(id="helpdesk/a", env="helpdesk", domain="accounts", split="train", turns=("help",))
    end = End(by="user")
    rollout = Rollout(
        key="k",
        task_id=task.id,
        skill_id="s",
        seed=0,
        trajectory=Trajectory(messages=task.turns, steps=(), end=end, seed=0),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(score=0.0, passed=False, diagnostics=diagnostics),
    )
    state = RefinementState(task=task, skill=Skill(), evidence=())
    candidate = Candidate(state_id=state.id, index=0, text="", reasoning="", skill=Skill(), well_formed=True)
    reward = Reward(fmt=1.0, task=0.0, len=1.0, total=0.5)
    return Experience(state=state, candidate=candidate, rollouts=(rollout,), reward=reward)
