"""What the loop does when a skill quotes the values of one task: say it, take the format's pay, or refuse."""

from collections.abc import Sequence
from types import SimpleNamespace

import attrs
from support.counting import Counting, Writer
from support.perform import configured, perform

from wer import hookimpl
from wer.records import Reply, Split, Task, Usage
from wer.reports.reporting import write_report


class Ticketed(Counting):
    """The counting world, with an identifier in what the user says."""

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        return [
            attrs.evolve(
                task, env="ticketed", turns=(f"{task.turns[0]} It is for ticket_{task.setup['goal']}7.",)
            )
            for task in super().tasks(domain, split)
        ]


class Quoting(Writer):
    """Writes good drafts; its revisions and merged skills quote the ticket of a task."""

    async def complete(self, messages, tools, sampling):
        drafting = "# Skill" not in messages[-1].content
        step = "try" if drafting else "count up for ticket_27 or ticket_37 or ticket_47"
        text = f"<think>why</think><skill>\nname: counting\ndescription: Count.\n## Workflow\n1. {step}\n</skill>"
        return Reply(text=text, usage=Usage(calls=1))


TICKETED = SimpleNamespace(
    __name__="ticketed",
    wer_environments=hookimpl(lambda: {"ticketed": Ticketed}),
    wer_models=hookimpl(lambda: {"quoting": lambda setup: Quoting(setup.name)}),
)


def performed(folder, policy):
    config = configured(env=["ticketed"], executor="quoting/a", leak=policy)
    return config, perform(folder, config, extra=(TICKETED,))


def training(store):
    return [found for stage, found in store.experiences() if stage.startswith("train/")]


def test_by_default_a_published_skill_that_quotes_a_task_is_named_in_the_report(tmp_path):
    config, store = performed(tmp_path / "run", "report")

    report = write_report(tmp_path / "run", store, config).read_text()

    assert "the refined skill of ticketed/small quotes values of one task: 'ticket_27' (query)" in report
    assert all(found.candidate.well_formed for found in training(store))


def test_penalise_takes_the_pay_for_the_format_and_runs_the_candidate(tmp_path):
    _, store = performed(tmp_path / "run", "penalise")

    for found in training(store):
        assert found.reward.fmt == 0
        assert len(found.rollouts) == 2
        assert "'ticket_" in found.candidate.problem


def test_refuse_runs_nothing_and_publishes_nothing_that_quotes_a_task(tmp_path):
    _, store = performed(tmp_path / "run", "refuse")

    assert all(found.rollouts == () and found.reward.task == 0 for found in training(store))
    assert store.documents("leaks") == {}
    published = [store.skill(skill_id) for skill_id in store.documents("published").values()]
    assert published
    assert not any("ticket_" in skill.body for skill in published)
