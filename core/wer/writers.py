"""Trained writers as folders to share: what a writer was trained with lies beside its weights.

A writer learns to answer one request. Asked in other words it does worse, and nothing would say so:
a folder names the version of the request, and another WER refuses it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

import yaml
from attrs import asdict

from wer import catalogue
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.records import (
    End,
    Evidence,
    JsonObject,
    Observation,
    RefinementState,
    Rollout,
    Skill,
    Step,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Verdict,
    content_hash,
)
from wer.writing import revision_messages

FILE = "wer-writer.json"
_LICENCE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md")


@cache
def template() -> str:
    """The version of the request for a revision: a hash of one with everything in it, so that no change is missed."""
    return content_hash([[message.role, message.content] for message in revision_messages(_example())])


def describe(config: RunConfig, folder: Path) -> None:
    """Lay down beside a writer's weights what it was trained with."""
    base = config.writer or config.executor
    found = {
        "template": {
            "version": template(),
            "example": [
                {"role": message.role, "content": message.content}
                for message in revision_messages(_example())
            ],
        },
        "base": base,
        "licence": licence(base),
        "backend": config.backend,
        "reward": asdict(config.reward),
        "training": asdict(config.training),
        "optimizer": dict(config.optimizer.get(config.backend, {})),
        "wer": version("wer-skills"),
    }
    (folder / FILE).write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def described(folder: Path) -> JsonObject | None:
    """What a writer was trained with; None for weights that nobody described, such as an untrained model's.

    Raises:
        ConfigError: The description can't be read.
    """
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_text("utf-8"))
        found["template"]["version"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{str(file)!r} can't be read ({type(error).__name__}: {error}). Export the writer again: "
            "wer export RUN --format writer."
        ) from error
    return dict(found)


def demand_template(writer: str) -> None:
    """Refuse a trained writer that learnt to answer another request than this WER makes.

    Args:
        writer: As the user named it; whatever is no folder passes.

    Raises:
        ConfigError: With both versions and the remedy.
    """
    found = described(Path(writer).expanduser())
    if found is not None and found["template"]["version"] != template():
        raise ConfigError(
            f"the writer {writer!r} was trained with version {found['template']['version']} of the prompt template, "
            f"and this WER asks with {template()}: it would be asked in words that it never saw. Use WER "
            f"{found.get('wer', 'of its time')}, which trained it, or train it anew. To try it all the same, remove "
            f"{FILE} from the folder."
        )


def licence(base: str) -> str:
    """The licence of a base model as far as it is known here: of the catalogue, or as its folder says."""
    provider, _, rest = base.partition("/")
    entry = catalogue.entries().get(rest.partition("?")[0]) if provider in ("local", "torch") else None
    if entry is not None:
        return entry.licence
    folder = Path(base).expanduser()
    trained = described(folder)
    if trained is not None:
        return str(trained.get("licence", "unknown"))
    return _of_card(folder / "README.md") or f"unknown: that of {base}"


def licence_files(base: str) -> tuple[Path, ...]:
    """The texts of the licence in a base model's folder."""
    folder = Path(base).expanduser()
    return tuple(folder / name for name in _LICENCE_FILES if (folder / name).is_file())


def _of_card(card: Path) -> str:
    """The licence that a model card's front matter names."""
    try:
        _, front, _ = card.read_text("utf-8").split("---", 2)
        return str(dict(yaml.safe_load(front)).get("license", ""))
    except (OSError, ValueError, TypeError, yaml.YAMLError):
        return ""


def _example() -> RefinementState:
    """A state in which everything is that a request can hold."""
    tool = ToolSpec(
        name="book",
        description="Book a room.",
        parameters={"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    )
    task = Task(
        id="rooms/1",
        env="rooms",
        domain="rooms",
        split="train",
        turns=("Book room 3.",),
        tools=(tool,),
        context="A day has 24 hours.",
    )
    skill = Skill(name="book-rooms", description="Book rooms.", body="## Workflow\n1. Book the room.\n")
    return RefinementState(
        task=task, skill=skill, evidence=(_rollout(task, skill, "3"), _rollout(task, skill, "4"))
    )


def _rollout(task: Task, skill: Skill, room: str) -> Rollout:
    call = ToolCall(name="book", arguments={"room": room})
    end = End(by="agent", why="done" if room == "3" else "steps")
    steps = (
        Step(turn=0, text="I book it.", calls=(call,), observations=(Observation(text="booked", ok=True),)),
        Step(turn=0, text="It is booked.", calls=()),
    )
    return Rollout(
        key=room,
        task_id=task.id,
        skill_id=skill.id,
        seed=0,
        trajectory=Trajectory(messages=task.turns, steps=steps, end=end, seed=0),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(score=float(room == "3"), passed=room == "3"),
    )
