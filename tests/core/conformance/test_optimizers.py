"""Optimizers that break a rule are told of it, with the remedy."""

import re

import pytest
from support.offering import offering
from support.tiny_writer import OPTIONS, make_folder

from wer import plugins
from wer.conformance import Settings, check_part
from wer.errors import InfrastructureError
from wer.records import PhaseOutcome, Sampling, derive_seed
from wer.writing import parse_candidate, revision_messages


class Plain:
    """Asks the writer, and remembers how many phases it has had."""

    learns = True

    def __init__(self, setup):
        self.setup = setup
        self.model = setup.open_model()
        self.phases = 0

    async def run_phase(self, states, evaluate, folder):
        found = []
        for state in states:
            group = evaluate.recorded(state) or await self.group(state, self.setup.k, 0)
            found += await self.paid(evaluate, [(state, candidate) for candidate in group])
        self.phases += 1
        return PhaseOutcome(experiences=tuple(found))

    async def paid(self, evaluate, proposals):
        return await evaluate(proposals)

    async def propose(self, states, k, seed):
        return [await self.group(state, k, seed) for state in states]

    async def group(self, state, k, seed):
        return [await self.write(state, index, derive_seed(self.phases, seed, index)) for index in range(k)]

    async def write(self, state, index, seed):
        reply = await self.model.complete(revision_messages(state), (), Sampling(seed=seed))
        return parse_candidate(reply.text, state=state, index=index, usage=reply.usage)

    def save(self, folder):
        folder.mkdir(parents=True)
        (folder / "phases").write_text(str(self.phases))

    def load(self, folder):
        self.phases = int((folder / "phases").read_text())

    async def close(self): ...


class Stingy(Plain):
    async def propose(self, states, k, seed):
        return [await self.group(state, k - 1, seed) for state in states]


class Restless(Plain):
    """Counts its calls into the seed."""

    async def propose(self, states, k, seed):
        self.phases += 1
        return await super().propose(states, k, seed)


class Forgetful(Plain):
    def load(self, folder): ...


class Empty(Plain):
    def save(self, folder): ...

    def load(self, folder):
        self.phases = 1


class Hiding(Plain):
    """Takes a failure for a phase without experience."""

    async def paid(self, evaluate, proposals):
        try:
            return await evaluate(proposals)
        except InfrastructureError:
            return []


class Wrapping(Plain):
    async def paid(self, evaluate, proposals):
        try:
            return await evaluate(proposals)
        except Exception as error:
            raise RuntimeError("evaluation failed") from error


async def findings(optimizer):
    listed = await check_part(
        "optimizer", "plain", plugins.load(extra=[offering("wer_optimizers", plain=optimizer)]), Settings()
    )
    return {finding.sentence: finding for finding in listed}


@pytest.mark.parametrize("name", ["plain", "prompted"])
async def test_an_optimizer_that_keeps_the_rules_passes_every_check(name):
    listed = await check_part(
        "optimizer", name, plugins.load(extra=[offering("wer_optimizers", plain=Plain)]), Settings()
    )

    assert {finding.status for finding in listed} == {"ok"}, listed


@pytest.mark.parametrize(
    ("optimizer", "sentence", "why", "remedy"),
    [
        (Stingy, "K candidates a state", "asked for 3 candidates", "a group a state"),
        (Restless, "seeds repeat", "one seed gave two different groups", "Derive every die from the seed"),
        (Forgetful, "what was saved is loaded", "writes something else", "Save and load every weight"),
        (Empty, "what was saved is loaded", "it learns, and `save` wrote nothing", "set learns = False"),
        (Hiding, "a failing evaluate", "run_phase hid it", "Let it through as it is"),
        (Wrapping, "a failing evaluate", "run_phase RuntimeError", "not wrapped"),
    ],
)
async def test_a_broken_rule_is_named_with_its_remedy(optimizer, sentence, why, remedy):
    listed = await findings(optimizer)

    finding = next(finding for finding in listed.values() if sentence in finding.sentence)
    assert finding.status == "failed", listed
    assert re.search(why, finding.detail), finding
    assert re.search(remedy, finding.remedy), finding


async def test_an_optimizer_of_weights_asks_for_some():
    listed = await check_part("optimizer", "grpo", plugins.load(), Settings())

    assert {finding.status for finding in listed} == {"not applicable"}
    assert "name a folder of small ones with --model" in listed[0].detail


@pytest.mark.slow
async def test_grpo_passes_every_check_on_a_tiny_writer(tmp_path):
    settings = Settings(model=str(make_folder(tmp_path / "writer")), options=OPTIONS)

    listed = await check_part("optimizer", "grpo", plugins.load(), settings)

    assert {finding.status for finding in listed} == {"ok"}, listed
