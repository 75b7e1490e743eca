"""GEPA through the loop: the real package, the counting world, and a scripted model that reflects."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from types import ModuleType

import pytest
from rich.console import Console
from support import counting
from support.perform import configured, perform

from wer import hookimpl, plugins
from wer.display import Display
from wer.errors import ConfigError, ModelError
from wer.loop.benching import bench
from wer.loop.opening import opened
from wer.methods import named
from wer.records import Reply, Usage
from wer.reports.benching import rows
from wer.reports.results import results
from wer.store import Store
from wer_gepa.bridge import Bridge

SEED = "## Workflow\n1. try\n"


class Mirror:
    """Reflects as told, and keeps what it was asked; what else it writes is a seed skill.

    Args:
        weak: The word of a request whose draft works at times while all others never do.
    """

    def __init__(self, answer, weak):
        self.answer = answer
        self.weak = weak
        self.asked = []

    @property
    def identity(self):
        return {"provider": "mirror"}

    async def complete(self, messages, tools, sampling):
        prompt = messages[-1].content
        body = SEED if self.weak in prompt else SEED.replace("try", "wait")
        text = f"<think>why</think><skill>\nname: counting\ndescription: Count.\n{body}</skill>"
        if prompt.startswith("I provided an assistant"):
            self.asked.append((prompt, sampling))
            text = self.answer(len(self.asked))
        return Reply(text=text, usage=Usage(calls=1, prompt_tokens=100, completion_tokens=20))

    async def close(self): ...


def offering(model):
    module = ModuleType("mirror")

    @hookimpl
    def wer_models() -> Mapping[str, object]:
        return {"mirror": lambda setup: model}

    module.wer_models = wer_models
    return module


def searched(folder, answer, *, weak="", **overrides):
    mirror = Mirror(answer, weak)
    config = configured(
        **{
            "backend": "gepa",
            "writer": "mirror/m",
            "training__phases": 0,
            "evaluation__conditions": ["none", "seed", "refined"],
            "refinement__rounds": 8,
            **overrides,
        }
    )
    return perform(folder, config, extra=(offering(mirror),)), mirror


def solving(count):
    return "Here it is:\n```\nAlways count up to the number.\n```"


def share(store, condition):
    passed = [passed for each, _, _, _, passed in store.results() if each == condition]
    return sum(passed) / len(passed)


def bodies(store, prefix="search/"):
    found = store.experiences()
    return {each.candidate.text for stage, each in found if stage.startswith(prefix)}


def test_a_better_text_is_found_published_and_measured(tmp_path):
    store, _ = searched(tmp_path / "run", solving)

    assert share(store, "refined") == 1.0 > share(store, "seed")
    published = next((tmp_path / "run" / "skills" / "refined").rglob("SKILL.md")).read_text()
    assert "Always count up to the number." in published


def test_reflection_reads_the_trajectory_verbatim_and_what_the_verifier_found(tmp_path):
    _, mirror = searched(tmp_path / "run", solving)

    prompt = mirror.asked[0][0]
    assert "1. try" in prompt
    assert "user: Count to" in prompt and "call: up({})" in prompt and "result: 1" in prompt
    assert "the count is wrong" in prompt


def test_diagnostics_can_be_kept_from_reflection(tmp_path):
    _, mirror = searched(tmp_path / "run", solving, optimizer__gepa={"diagnostics": False})

    assert not any("the count is wrong" in prompt for prompt, _ in mirror.asked)


def test_a_text_that_is_no_better_leaves_the_skill_in_force(tmp_path):
    store, _ = searched(tmp_path / "run", lambda count: f"```\nSit still, {count}.\n```")

    assert share(store, "refined") == share(store, "seed")


@pytest.mark.parametrize("text", ["", "```\n```", "x" * 30_000])
def test_an_answer_that_is_no_skill_is_never_given_to_the_agent(tmp_path, text):
    store, _ = searched(tmp_path / "run", lambda count: text)

    assert share(store, "refined") == share(store, "seed")


def test_a_writer_that_repeats_itself_does_not_search_for_ever(tmp_path):
    store, mirror = searched(tmp_path / "run", lambda count: f"```\n{SEED}```")

    assert 0 < len(mirror.asked) < 400
    assert share(store, "refined") == share(store, "seed")


def test_a_minibatch_that_is_filled_up_names_a_task_twice_and_runs_it_once(tmp_path):
    store, mirror = searched(tmp_path / "run", solving, optimizer__gepa={"minibatch": 2})

    assert len(mirror.asked) > 0
    assert share(store, "refined") >= share(store, "seed")


def test_the_search_keeps_to_its_rollouts_and_shares_them_among_the_domains(tmp_path):
    store, _ = searched(
        tmp_path / "run", lambda count: f"```\nSit still, {count}.\n```", budget__search_rollouts=20
    )

    found = [(stage, rollout.key) for stage, each in store.experiences() for rollout in each.rollouts]
    small = {key for stage, key in found if stage == "search/counting/small"}
    large = {key for stage, key in found if stage == "search/counting/large"}
    assert 0 < len(small) <= 13 and 0 < len(large) <= 13


def test_tokens_that_run_out_end_the_search_with_its_best_so_far(tmp_path):
    store, mirror = searched(
        tmp_path / "run", lambda count: f"```\nSit still, {count}.\n```", budget__search_tokens=300
    )

    assert len(mirror.asked) <= 3
    assert results(store).conditions[:3] == ("none", "seed", "refined")


def test_a_budget_that_ends_after_the_find_keeps_the_find(tmp_path):
    store, mirror = searched(
        tmp_path / "run",
        lambda count: f"```\n{SEED if count == 2 else count}\n```",
        weak="Count to 2.",
        domains=["small"],
        budget__search_tokens=480,
    )

    assert len(mirror.asked) == 4
    assert share(store, "refined") > share(store, "seed") == 0.0


def test_a_model_that_is_gone_fails_the_run_and_is_no_score(tmp_path):
    def gone(count):
        raise ModelError("the line is dead")

    with pytest.raises(ModelError, match="the line is dead"):
        searched(tmp_path / "run", gone)


def test_a_search_that_died_goes_the_same_way_again_and_pays_nothing_twice(tmp_path):
    def dying(count):
        if count == 3:
            raise ModelError("the line is dead")
        return f"```\nSit still, {count}.\n```"

    with pytest.raises(ModelError):
        searched(tmp_path / "run", dying)
    store, mirror = searched(tmp_path / "run", lambda count: f"```\nSit still, {count + 2}.\n```")
    afresh, whole = searched(tmp_path / "whole", lambda count: f"```\nSit still, {count}.\n```")

    assert mirror.asked == whole.asked[2:]
    assert store.count_rollouts() == afresh.count_rollouts()


def test_equal_seeds_give_equal_searches(tmp_path):
    one, first = searched(tmp_path / "one", solving)
    two, second = searched(tmp_path / "two", solving)

    assert first.asked == second.asked
    assert bodies(one) == bodies(two)


def test_it_stands_in_a_comparison_beside_others_at_equal_cost(tmp_path):
    mirror = Mirror(solving, "")
    config = configured(writer="mirror/m", methods=named(["prompted", "gepa"]), budget__search_rollouts=60)
    (tmp_path / "run").mkdir()
    store = Store(tmp_path / "run" / "wer.sqlite", create=True)

    async def compare():
        with Display(Console(quiet=True)) as display:
            found = plugins.load(extra=(counting, offering(mirror)))
            async with opened(
                config, folder=tmp_path / "run", store=store, plugins=found, display=display
            ) as run:
                await bench(run)

    asyncio.run(compare())

    spent = {row.condition: row.spent for row in rows(store) if row.spent is not None}
    assert 0 < spent["gepa"].rollouts <= 60 and spent["gepa"].tokens > 0
    assert share(store, "gepa") == 1.0


async def test_a_search_that_is_interrupted_leaves_no_thread_at_work():
    bridge = Bridge()
    begun = asyncio.Event()

    async def work():
        begun.set()
        await asyncio.sleep(60)

    def both():
        with pytest.raises(CancelledError):
            bridge.wait(work)
        with pytest.raises(CancelledError):
            bridge.wait(work)

    thread = asyncio.create_task(asyncio.to_thread(both))
    await begun.wait()
    [working] = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "work"]
    working.cancel()

    await thread


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"optimizer\.gepa"):
        searched(tmp_path / "run", solving, optimizer__gepa={"metric_calls": 3})
