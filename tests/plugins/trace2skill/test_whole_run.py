"""A whole run over real BFCL tasks in the process sandbox, with a scripted model in every of Trace2Skill's roles."""

from __future__ import annotations

import json

import pytest
from support.skiller_world import SEED, WORKS, Scribe, opened_run
from support.trace2skill_world import diagnosed, ids, note, patch

from wer.errors import ModelError
from wer.loop.running import run_protocol
from wer.skills import load_skill, save_skill

pytestmark = pytest.mark.slow

CONDITIONS = ("none", "seed", "refined")
NAME = "bfcl-file-system"
"""The domain's: the loop's merger names the base after it."""


def analyst(request):
    name = request.split("# Base skill ")[1].split()[0]
    return diagnosed(note(WORKS), skill=name, quote="Done.", fix=1)


def merger(request):
    kept = [note(text, **{"from": [each]}) for each, text in ids(request).items()]
    return patch(*kept, skill=NAME, dropped=[])


async def run(folder, scribe):
    seed = save_skill(SEED, folder.parent / "seed")
    async with opened_run(
        folder,
        scribe,
        tasks=2,
        backend="trace2skill",
        seed_skill=str(seed),
        evaluation__conditions=CONDITIONS,
        evaluation__trials=1,
    ) as open_:
        await run_protocol(open_.run)
        passed = {condition: passed for condition, _, _, _, passed in open_.run.store.results()}
        return open_, passed


async def test_failures_become_one_skill_for_the_domain_that_passes(tmp_path):
    scribe = Scribe(actor=[lambda request: merger(request) if "# Edits" in request else analyst(request)])

    open_, passed = await run(tmp_path / "run", scribe)

    assert [passed[condition] for condition in CONDITIONS] == [False, False, True]
    published = load_skill(tmp_path / "run" / "skills" / "refined" / NAME)
    assert published.body == SEED.body.rstrip("\n") + f"\n- {WORKS}\n"
    asked = scribe.requests("actor")
    assert [("# Edits" in request, "# A success" in request) for request in asked] == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert "A success" not in open_.sent


async def test_a_run_that_dies_in_the_merge_pays_no_analyst_twice(tmp_path):
    def dying(request):
        if "# Edits" in request:
            raise ModelError("the line is dead")
        return analyst(request)

    with pytest.raises(ModelError):
        await run(tmp_path / "run", Scribe(actor=[dying]))
    scribe = Scribe(actor=[merger])
    _, passed = await run(tmp_path / "run", scribe)

    [request] = scribe.requests("actor")
    assert [json.loads(line)["support"] for line in request.splitlines() if line.startswith("{")] == [2]
    assert passed["refined"]
