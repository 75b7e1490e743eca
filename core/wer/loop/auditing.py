"""The short audit before a run spends anything: the verifier must accept something, and not everything.

Some references are played, and doing nothing is, in the run's own sandbox and without a model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from attrs import asdict, evolve, frozen

from wer.contracts import Environment, Executor, Identified, Model, Referenced
from wer.errors import InfrastructureError, VerifierError
from wer.loop.domains import Domain
from wer.loop.following import Following
from wer.loop.local import LocalRunner
from wer.loop.noop import NoOp
from wer.loop.opening import Run
from wer.loop.retrying import patiently
from wer.loop.rollouts import ROLLOUTS
from wer.paths import cache_dir
from wer.records import (
    NO_SKILL,
    JsonObject,
    Message,
    Reply,
    Sampling,
    Task,
    ToolSpec,
    Unit,
    Usage,
    content_hash,
)
from wer.sandboxing.recipe import digest, source

_REFERENCES = 2
_FAILURES = 2


class StandIn:
    """A model for a role of an episode that asks for nothing in particular and costs nothing."""

    @property
    def identity(self) -> JsonObject:
        """The same for all roles."""
        return {"provider": "stand-in"}

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Say the same, whatever was said."""
        return Reply(text="Please go on.", usage=Usage(calls=1, prompt_tokens=1, completion_tokens=1))

    async def close(self) -> None:
        """Nothing is held."""


def stand_ins(environment: Environment) -> Mapping[str, Model]:
    """A model for each role of an environment, for episodes in which nobody is paid."""
    return {role: StandIn() for role in environment.roles()}


@frozen(kw_only=True)
class Audit:
    """What the short audit of one environment found.

    Attributes:
        references: How many references were played.
        passed: How many of them passed.
        idle: Tasks that were left as they are, until enough of them failed.
        accepted: Ids of those that passed all the same.
    """

    references: int
    passed: int
    idle: int
    accepted: tuple[str, ...]

    def __str__(self) -> str:
        """One line for the user."""
        played = f"{self.passed} of {self.references} references pass" if self.references else "no references"
        nothing = f"doing nothing passes on {len(self.accepted)} of {self.idle} tasks"
        listed = f" ({', '.join(self.accepted[:5])}{', ...' if len(self.accepted) > 5 else ''})"
        return f"{played}; {nothing}{listed if self.accepted else ''}"


async def audit(run: Run) -> None:
    """Audit the verifier of each environment of a run, unless the same was audited before.

    Raises:
        VerifierError: It accepts nothing, or everything.
        InfrastructureError: An episode could not be had after all tries.
    """
    for name in run.scheduler.world.environments:
        verifier, _ = run.scheduler.world.verifiers[name]
        key = _key(run, name)
        noted = cache_dir() / "audits" / f"{key}.json"
        if key and noted.exists():
            continue
        found = await _audit(run, name)
        run.display.say(f"audit of {verifier} on {name}: {found}")
        _demand_sense(name, verifier, found)
        if key:
            noted.parent.mkdir(exist_ok=True)
            noted.write_text(json.dumps(asdict(found)))


def _demand_sense(name: str, verifier: str, found: Audit) -> None:
    remedy = f"Nothing was spent. See wer plugin check {name}, and mend the verifier or the tasks."
    if found.references and not found.passed:
        raise VerifierError(
            f"the verifier {verifier!r} accepts nothing: none of {found.references} reference solutions of "
            f"{name!r} passes, so that no skill could ever earn anything. {remedy}"
        )
    if found.idle and len(found.accepted) == found.idle:
        raise VerifierError(
            f"the verifier {verifier!r} accepts everything: doing nothing passes on all {found.idle} training "
            f"tasks of {name!r}, so that every skill would look perfect. {remedy}"
        )


async def _audit(run: Run, name: str) -> Audit:
    environment = run.scheduler.world.environments[name]
    domains = [domain for domain in run.domains if domain.env == name]
    referenced = [pair for domain in domains for pair in _referenced(environment, domain)]
    passed = [await _passes(run, task, executor) for task, executor in referenced]
    idle = 0
    accepted: list[str] = []
    for task in _dealt([_training(environment, domain) for domain in domains]):
        idle += 1
        if await _passes(run, task, NoOp()):
            accepted.append(task.id)
        if idle - len(accepted) == _FAILURES:
            break
    return Audit(references=len(passed), passed=sum(passed), idle=idle, accepted=tuple(accepted))


def _training(environment: Environment, domain: Domain) -> Sequence[Task]:
    """All of a domain's training tasks: of the few that a quick run takes, each may pass by itself."""
    return environment.tasks(_short(domain), "train")


def _referenced(environment: Environment, domain: Domain) -> list[tuple[Task, Executor]]:
    """The first tasks of a domain whose references are known, each with an agent that follows its own."""
    found: list[tuple[Task, Executor]] = []
    for task in domain.train:
        calls = environment.reference(task) if isinstance(environment, Referenced) else None
        if calls is not None and len(found) < _REFERENCES:
            found.append((task, Following(calls=calls)))
    return found


def _dealt(hands: Sequence[Sequence[Task]]) -> Iterator[Task]:
    """One task of each domain, then the next of each."""
    for place in range(max(map(len, hands), default=0)):
        yield from (hand[place] for hand in hands if place < len(hand))


async def _passes(run: Run, task: Task, executor: Executor) -> bool:
    """Play one episode with nobody to pay, and judge it."""
    here = run.scheduler.world
    world = evolve(here, executor=executor, roles=stand_ins(here.environments[task.env]))

    async def once(number: int) -> bool:
        expect = await run.scheduler.expectation(task)
        unit = Unit(task=task, skill=NO_SKILL, seed=0, attempt=number)
        trajectory, evidence = await LocalRunner(world=world).execute(unit)
        return world.judge(task, trajectory, evidence, expect).passed

    return await patiently(
        InfrastructureError,
        once,
        retries=run.config.limits.retries,
        tell=run.display.say,
        count=lambda error: run.ledger.fault(error.kind, ROLLOUTS),
    )


def _key(run: Run, name: str) -> str:
    """Names all that an audit depends on: the code of environment, domain and verifier, and the tasks.

    Empty when the code of one is in no file, so that nothing can be said of it the next time.
    """
    world = run.scheduler.world
    environment = world.environments[name]
    verifier, judge = world.verifiers[name]
    domains = [domain for domain in run.domains if domain.env == name]
    specs = [environment.sandbox(_short(domain)) for domain in domains]
    tasks = [task.key for domain in domains for task in (*domain.train, *_training(environment, domain))]
    stated = [dict(part.identity) for part in (environment, judge) if isinstance(part, Identified)]
    tops = {type(part).__module__.partition(".")[0] for part in (environment, judge)}
    places = [_place(sys.modules.get(top)) for top in sorted(tops - {"wer"})]
    if None in places:
        return ""
    code = [digest(place) for place in places if place is not None]
    code += [digest(source(package)) for spec in specs for package in spec.packages]
    sandboxes = sorted({spec.id for spec in specs})
    return content_hash([version("wer-skills"), name, verifier, sandboxes, tasks, stated, sorted(set(code))])


def _place(module: ModuleType | None) -> Path | None:
    """A package's folder, or a lone module's file."""
    places: list[str | None] = [*getattr(module, "__path__", ()), getattr(module, "__file__", None)]
    return Path(places[0]) if places[0] else None


def _short(domain: Domain) -> str:
    return domain.name.partition("/")[2]
