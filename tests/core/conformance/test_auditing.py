"""The short audit that ``wer run`` does first: what it stops, what it lets through, and that it is done once."""

from pathlib import Path

import pytest
from attrs import evolve
from rich.console import Console
from support import counting, till
from support.offering import offering
from support.perform import configured

from wer import plugins
from wer.cli import main
from wer.configuration import resolve
from wer.display import Display
from wer.errors import VerifierError
from wer.loop.auditing import Audit, audit
from wer.loop.opening import opened
from wer.store import Store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


async def audited(folder, config, *extra):
    """Audit a run twice, as two starts of it do; what was said each time."""
    said = []
    for number in range(2):
        place = folder / str(number)
        place.mkdir()
        store = Store(place / "wer.sqlite", create=True)
        found = plugins.load(extra=(counting, *extra))
        with Display(Console(quiet=True)) as display:
            lines = []
            display.say = lines.append
            async with opened(config, folder=place, store=store, plugins=found, display=display) as run:
                await audit(run)
                assert store.count_rollouts() == 0
        store.close()
        said.append([line for line in lines if "audit" in line])
    return said


def in_till():
    overrides = {
        "env": ["till"],
        "executor": "scribe/a",
        "agent": "counter",
        "sandbox": "process",
        "workers": 1,
    }
    return resolve(None, None, (), overrides)


async def test_a_sound_verifier_is_audited_once_and_nothing_is_paid(tmp_path):
    first, second = await audited(tmp_path, in_till(), till.plugin())

    line = "audit of till_total on till: 2 of 2 references pass; doing nothing passes on 0 of 2 tasks"
    assert (first, second) == ([line], [])


async def test_without_references_doing_nothing_is_tried(tmp_path):
    first, second = await audited(tmp_path, configured())

    line = "audit of reached on counting: no references; doing nothing passes on 0 of 2 tasks"
    assert (first, second) == ([line], [])


@pytest.mark.parametrize(
    ("verifier", "why"),
    [
        (till.Everything, "accepts everything: doing nothing passes on all 2 training tasks of 'till'"),
        (till.Nothing, "accepts nothing: none of 2 reference solutions of 'till' passes"),
    ],
)
async def test_a_verifier_that_tells_nothing_stops_the_run_each_time(tmp_path, verifier, why):
    for start in ("first", "second"):
        (tmp_path / start).mkdir()
        with pytest.raises(VerifierError, match=why) as refused:
            await audited(tmp_path / start, in_till(), till.plugin(verifier=verifier))

    assert "Nothing was spent. See wer plugin check till" in str(refused.value)


async def test_a_sandbox_that_dies_once_is_asked_again(tmp_path):
    first, _ = await audited(tmp_path, configured(sandbox="dying"))

    assert first == ["audit of reached on counting: no references; doing nothing passes on 0 of 2 tasks"]


async def test_what_is_in_no_file_is_audited_in_every_run(tmp_path):
    nowhere = type("Elsewhere", (till.Total,), {"__module__": "wer_in_no_file"})

    first, second = await audited(tmp_path, in_till(), till.plugin(verifier=nowhere))

    assert first == second != []


async def test_another_verifier_is_another_audit(tmp_path, cache):
    await audited(tmp_path, in_till(), till.plugin())
    (tmp_path / "again").mkdir()

    mine = offering("wer_verifiers", mine=till.Total)
    first, _ = await audited(tmp_path / "again", evolve(in_till(), verifier="mine"), till.plugin(), mine)

    assert first and first[0].startswith("audit of mine on till")
    assert len(list((cache / "audits").iterdir())) == 2


def test_tasks_that_pass_by_themselves_are_listed_and_no_fault():
    found = Audit(references=4, passed=3, idle=5, accepted=("a", "b"))

    assert str(found) == "3 of 4 references pass; doing nothing passes on 2 of 5 tasks (a, b)"


def test_a_run_of_the_command_line_stops_before_anything_is_asked(tmp_path, monkeypatch, capfd):
    bad = till.plugin(verifier=till.Everything)
    load = plugins.load
    monkeypatch.setattr(plugins, "load", lambda: load(extra=(counting, bad)))
    words = ["run", "--env=till", "--executor=scribe/a", "--sandbox=process", "--set=agent='counter'"]

    with pytest.raises(SystemExit) as ended:
        main([*words, f"--runs={tmp_path / 'runs'}"])

    assert ended.value.code == 2
    assert "the verifier 'till_total' accepts everything" in capfd.readouterr().err
    (folder,) = Path(tmp_path / "runs").iterdir()
    assert Store(folder / "wer.sqlite").count_rollouts() == 0
