"""What a page is told of a run: true to the store, small however large the run, and nothing is changed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy.exc import OperationalError
from support.viewed import HOSTILE, column, grown, recorded

from wer.errors import StoreError
from wer.store import Store
from wer.viewing.answers import answer
from wer.viewing.reading import NotThere, encoded

ENOUGH_BYTES = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return grown(tmp_path_factory.mktemp("runs"), 10_000)


def addresses(folder):
    """Whatever the page can ask for from here, as (name, query)."""
    yield "overview", {}
    overview = answer(folder, "overview", {})
    yield from (("curve", {"name": name}) for name in overview["metrics"])
    for listed in ("tasks", "pairs", "skills", "rollouts"):
        yield listed, {}
        yield listed, {"offset": "500"}
    for contrast in overview["contrasts"]:
        yield "pairs", {"base": contrast["base"], "better": contrast["better"]}
        yield "pairs", {"base": contrast["base"], "better": contrast["better"], "outcome": "mended"}
    for row in answer(folder, "tasks", {})["rows"][:2]:
        yield "tree", {"task": row["task_key"]}
        for each in answer(folder, "tree", {"task": row["task_key"]})["candidates"][:3]:
            yield "candidate", {"stage": each["stage"], "state": each["state"], "index": str(each["index"])}
    for row in answer(folder, "skills", {})["rows"]:
        yield "skill", {"condition": row["condition"], "domain": row["domain"]}
    for row in answer(folder, "rollouts", {"passed": "no"})["rows"][:2]:
        yield "rollout", {"key": row["key"]}
        yield "rollouts", {"task": row["task_key"], "skill": row["skill_id"]}
    for row in answer(folder, "pairs", {})["rows"][:2]:
        a, b = (each["key"] for each in row["rollouts"])
        yield "pair", {"a": a, "b": b}


def digest(folder):
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


@pytest.mark.slow
def test_answers_of_a_run_with_ten_thousand_rollouts_are_small(large):
    assert answer(large, "overview", {})["rollouts"] >= 10_000

    sizes = {
        (name, *query.values()): len(encoded(answer(large, name, query))) for name, query in addresses(large)
    }

    assert len(sizes) > 20
    assert {each: size for each, size in sizes.items() if size > ENOUGH_BYTES} == {}


@pytest.mark.slow
def test_long_lists_come_a_page_at_a_time_and_say_how_long_they_are(large):
    first, second = (answer(large, "rollouts", {"offset": offset}) for offset in ("0", "50"))

    assert first["total"] == second["total"] >= 10_000
    assert len(first["rows"]) == len(second["rows"]) == 50
    assert not {row["key"] for row in first["rows"]} & {row["key"] for row in second["rows"]}


@pytest.mark.slow
def test_a_tree_that_is_too_large_says_how_much_of_it_is_not_drawn(large):
    tree = answer(large, "tree", {"task": answer(large, "tasks", {})["rows"][0]["task_key"]})

    assert tree["left_out"]["states"] > 0


@pytest.mark.slow
def test_many_update_steps_are_drawn_as_means_of_neighbours(large):
    curve = answer(large, "curve", {"name": "reward"})

    assert curve["steps"] > 1_000
    assert len(curve["points"]) <= 300
    assert curve["points"][0]["value"] == pytest.approx(0.25, abs=0.05)


def test_looking_changes_nothing(folder):
    before = digest(folder)

    for name, query in addresses(folder):
        answer(folder, name, query)

    assert digest(folder) == before


def test_a_store_on_a_read_only_disk_is_read_without_a_log_beside_it(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)

    with closing(Store(folder / "wer.sqlite", read_only=True)) as store:
        found = store.count_rollouts()
        there = [each.name for each in folder.glob("wer.sqlite*")]

    assert found > 0
    assert there == ["wer.sqlite"]


def test_a_store_that_is_only_looked_at_refuses_to_be_written(folder):
    store = Store(folder / "wer.sqlite", read_only=True)

    with pytest.raises(StoreError, match="readonly"):
        store.put_document("about", "split", "train")
    with pytest.raises(OperationalError, match="readonly"):
        store.ask("delete from rollouts")
    store.close()


def test_very_long_texts_do_not_make_large_answers(tmp_path):
    folder = recorded(tmp_path, "w\x00" * 20_000, text_length=200_000)

    sizes = {name: len(encoded(answer(folder, name, query))) for name, query in addresses(folder)}

    assert max(sizes.values()) < ENOUGH_BYTES


def test_the_rest_of_a_long_text_can_be_had(tmp_path):
    folder = recorded(tmp_path, text_length=9_000)
    events = answer(folder, "rollout", {"key": "bad-rollout"})["events"]
    long = next(each for each in events if each["more"])

    rest = answer(
        folder, "event", {"key": "bad-rollout", "at": str(long["at"]), "from": str(len(long["text"]))}
    )

    assert len(rest["text"]) == long["more"]
    assert rest["more"] == 0


def test_the_table_has_every_condition_with_n_and_interval(folder):
    table = answer(folder, "overview", {})["table"]

    assert [row["title"] for row in table["rows"]] == ["no skill", "seed skill", "refined skill"]
    refined = table["rows"][-1]["cells"][0]
    assert (refined["mean"], refined["tasks"], refined["trials"]) == (1.0, 1, 1)
    assert refined["low"] < 1.0


def test_rewards_of_stages_that_nobody_foresaw_are_shown_too(tmp_path):
    folder = recorded(tmp_path, " of a kind of its own")

    rewards = answer(folder, "overview", {})["rewards"]

    assert [each["stage"] for each in rewards] == [
        "train/0 of a kind of its own",
        "refine/refined/0 of a kind of its own",
    ]
    assert rewards[0]["candidates"] == 2


def test_the_tree_goes_from_the_seed_by_what_was_retained_to_what_was_refined(folder):
    task = answer(folder, "tasks", {})["rows"][0]["task_key"]

    tree = answer(folder, "tree", {"task": task})

    seed, later = tree["states"]
    retained = next(each for each in tree["candidates"] if each["id"] == later["parent"])
    assert seed["parent"] is None
    assert (retained["stage"], retained["passed"], retained["rollouts"]) == ("train/0", 1, 2)
    assert [each["condition"] for each in tree["published"]] == ["seed", "refined"]


def test_a_candidate_shows_what_it_changed_and_the_pair_that_it_was_written_from(folder):
    task = answer(folder, "tasks", {})["rows"][0]["task_key"]
    first = answer(folder, "tree", {"task": task})["candidates"][0]

    found = answer(folder, "candidate", {"stage": first["stage"], "state": first["state"], "index": "0"})

    assert [each["key"] for each in found["evidence"]] == ["good-rollout", "bad-rollout"]
    assert ("+", "1. Look the order up first. ") in [(row["sign"], row["text"]) for row in found["diff"]]
    assert found["retained"] == [{"phase": 1, "round": 1}]


def test_a_new_line_of_a_skill_names_the_revision_and_the_rollouts_behind_it(folder):
    found = answer(folder, "skill", {"condition": "refined", "domain": "shop/refunds"})

    line = next(row for row in found["diff"] if row["text"].startswith("1. Look"))
    assert found["base"]["condition"] == "seed"
    assert line["origin"]["stage"] == "train/0"
    assert [each["key"] for each in line["origin"]["pair"]] == ["good-rollout", "bad-rollout"]
    assert (line["origin"]["passed"], line["origin"]["rollouts"]) == (1, 2)


def test_of_skills_that_no_revision_made_the_later_ones_are_compared_with_the_first(tmp_path):
    folder = recorded(tmp_path)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        for old, new in (("seed", "old"), ("refined", "new")):
            db.execute(
                "update documents set key = ? where key = ?", (f"{new} shop/refunds", f"{old} shop/refunds")
            )

    first, later = (
        answer(folder, "skill", {"condition": each, "domain": "shop/refunds"}) for each in ("old", "new")
    )

    assert (first["base"]["condition"], later["base"]["condition"]) == ("none", "old")
    assert ("-", "1. Refund what is asked.") in [(row["sign"], row["text"]) for row in later["diff"]]
    assert not later["revised"]


def test_a_pair_begins_just_before_the_rollouts_part(folder):
    found = answer(folder, "pair", {"a": "good-rollout", "b": "bad-rollout"})

    left, right = found["rows"][found["first"] - found["offset"]]
    assert (left["kind"], right["kind"]) == ("call", "call")
    assert json.loads(left["text"].removeprefix("refund(").removesuffix(")"))["how"] == "good"


def test_pairs_of_two_conditions_are_the_trials_that_end_differently(folder):
    found = answer(folder, "pairs", {"base": "none", "better": "refined"})

    assert (found["mended"], found["broken"]) == (1, 0)
    assert [each["key"] for each in found["rows"][0]["rollouts"]] == ["none-rollout", "refined-rollout"]


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("rollout", {"key": "x' or 1"}, "no rollout"),
        ("tree", {"task": column(HOSTILE)}, "no such thing"),
        ("candidate", {"stage": "train/0", "state": "x", "index": "-1"}, "no such thing"),
        ("pair", {"a": "good-rollout", "b": "none-rollout"}, "different tasks"),
        ("skill", {"condition": "best", "domain": "shop"}, "published no skill 'best'"),
        ("event", {"key": "bad-rollout", "at": "99"}, "none numbered 99"),
        ("curve", {"name": "elegance"}, "no measure 'elegance'"),
        ("__class__", {}, "never asked for"),
    ],
)
def test_what_is_not_there_is_named(folder, name, query, words):
    with pytest.raises(NotThere, match=words):
        answer(folder, name, query)


def test_a_run_that_has_only_begun_says_that_there_is_no_store(tmp_path):
    folder = recorded(tmp_path)
    (folder / "wer.sqlite").unlink()

    with pytest.raises(StoreError, match="no store"):
        answer(folder, "overview", {})


def test_a_store_without_tables_is_of_a_run_that_is_about_to_begin(tmp_path):
    folder = recorded(tmp_path)
    (folder / "wer.sqlite").write_bytes(b"")

    with pytest.raises(StoreError, match=r"nothing is stored in .* yet"):
        answer(folder, "overview", {})


def test_a_figure_that_is_no_number_is_a_gap_in_its_curve(tmp_path):
    folder = recorded(tmp_path)
    with closing(Store(folder / "wer.sqlite")) as store:
        store.put_metrics("train/0", 3, {"reward": float("nan"), 'loss "of" it': float("inf")})

    curves = [answer(folder, "curve", {"name": name}) for name in ("reward", 'loss "of" it')]

    assert [point["value"] for point in curves[0]["points"]] == [0.0, 0.25, 0.5, None]
    assert curves[1]["points"][-1]["value"] is None


def test_of_a_state_with_ten_thousand_candidates_a_part_is_drawn_and_the_rest_is_counted(tmp_path):
    folder = recorded(tmp_path)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        db.execute(
            "with recursive n(i) as (select 2 union all select i + 1 from n where i < 9999) insert into candidates "
            'select stage, state_id, n.i, id || n.i, json, rollouts, reward from candidates, n where "index" = 1'
        )

    tree = answer(folder, "tree", {"task": answer(folder, "tasks", {})["rows"][0]["task_key"]})

    assert len(tree["candidates"]) + tree["left_out"]["candidates"] == 10_001
    assert len(encoded(tree)) < ENOUGH_BYTES


def test_a_pair_of_several_rollouts_is_a_success_and_a_failure_where_there_are_both(tmp_path):
    folder = recorded(tmp_path)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        evidence = json.dumps(["bad-rollout", "train-0-0-False", "good-rollout"])
        db.execute("update states set evidence = ? where parent is null", (evidence,))

    pair = answer(folder, "pairs", {})["rows"][0]["rollouts"]

    assert [each["key"] for each in pair] == ["good-rollout", "bad-rollout"]


def test_a_refinement_that_measured_nothing_has_ended_when_its_skills_are_there(tmp_path):
    folder = recorded(tmp_path)
    (folder / "about.toml").write_text('command = "refine"')
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        db.execute("delete from results")
        before = answer(folder, "overview", {})["state"]
        db.execute("delete from documents where key like 'refined %'")

    assert (before, answer(folder, "overview", {})["state"]) == ("ended", "ended early")


def test_a_damaged_store_is_named(tmp_path):
    folder = recorded(tmp_path)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        db.execute("drop table rollouts")

    with pytest.raises(StoreError, match="cannot read the store"):
        answer(folder, "rollouts", {})


def test_a_half_character_of_a_model_is_shown_and_hides_nothing_else(tmp_path):
    folder = recorded(tmp_path, "\ud800")

    found = answer(folder, "rollouts", {})

    assert found["total"] == len(found["rows"]) > 0
    assert json.loads(encoded(answer(folder, "rollout", {"key": "bad-rollout"})))["events"]
