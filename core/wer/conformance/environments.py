"""What every environment must do."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AsyncExitStack

from attrs import evolve

from wer.codec import from_json, to_json
from wer.conformance.checks import Check, Fault, Kind, NotApplicable
from wer.conformance.rig import Rig, open_rig, pools
from wer.conformance.watching import held, watching
from wer.contracts import Environment, Session
from wer.differences import differences
from wer.records import NO_SANDBOX, Evidence, Json, Task, ToolCall, Turn, content_hash

_KEEP_IN_SESSION = (
    "Keep what belongs to an episode in the session object that `open` returns and in the sandbox, and nothing of it "
    "on the environment, on a class or in a module."
)
_NO_SUCH = "wer_no_such_tool"
_ODD: tuple[dict[str, Json], ...] = (
    {"wer_no_such_argument": 1},
    {"": None},
    {"wer_no_such_argument": [{}] * 3},
)


async def tasks_load(rig: Rig) -> str:
    """Every domain has both splits, and a task says where it belongs."""
    environment = rig.environment
    if not environment.domains():
        raise Fault("it has no domains", "Return at least one name from `domains`.")
    ids: Counter[str] = Counter()
    for domain in environment.domains():
        for split in ("train", "test"):
            tasks = environment.tasks(domain, split)
            if not tasks:
                raise Fault(
                    f"domain {domain!r} has no {split} tasks",
                    "Both splits are needed: skills are refined on train, and measured on test.",
                )
            for task in tasks:
                ids[task.id] += 1
                _belongs(rig, task, domain, split)
    twice = [name for name, count in ids.items() if count > 1]
    if twice:
        raise Fault(
            f"the task id {twice[0]!r} is there {ids[twice[0]]} times", "Give each task an id of its own."
        )
    return f"{sum(ids.values())} tasks in {len(environment.domains())} domains"


def _belongs(rig: Rig, task: Task, domain: str, split: str) -> None:
    if (task.env, task.domain, task.split) != (rig.name, domain, split):
        raise Fault(
            f"task {task.id!r} says env {task.env!r}, domain {task.domain!r}, split {task.split!r}; it was listed "
            f"under {rig.name!r}, {domain!r}, {split!r}",
            "Set the three fields to where the task is listed.",
        )
    for tool in task.tools:
        if tool.parameters.get("type") != "object":
            raise Fault(
                f"the parameters of tool {tool.name!r} of {task.id!r} are no JSON schema of type object",
                'Write {"type": "object", "properties": {...}}.',
            )


async def ids_are_stable(rig: Rig) -> None:
    """A run is resumed, and results are compared, by task id and content."""
    first, second = (_listing(environment) for environment in (rig.environment, rig.again()))
    if first != second:
        changed = sorted(set(first.items()) ^ set(second.items()))[0][0]
        raise Fault(
            f"two loads give different tasks; the first difference is {changed!r}",
            "Derive ids, order and content from the data and the options alone: no clock, no random numbers, no sets.",
        )


def _listing(environment: Environment) -> dict[str, str]:
    listed: dict[str, str] = {}
    for domain in environment.domains():
        listed |= {task.id: task.key for task in environment.tasks(domain, "train")}
        listed |= {task.id: task.key for task in environment.tasks(domain, "test")}
    return listed


async def splits_are_disjoint(rig: Rig) -> None:
    """What is measured must not have been learnt from."""
    for domain in rig.environment.domains():
        train = {_content(task): task for task in rig.environment.tasks(domain, "train")}
        for task in rig.environment.tasks(domain, "test"):
            twin = train.get(_content(task))
            if twin is not None:
                raise Fault(
                    f"the test task {task.id!r} is the training task {twin.id!r}",
                    "Put each task into one split, and remove copies under other ids.",
                )


def _content(task: Task) -> str:
    """What a task asks and begins with; a simulated user's is in its setup, which may be an id alone."""
    return content_hash([list(task.turns), task.setup] if task.turns else task.id)


async def fresh_episodes_are_equal(rig: Rig) -> None:
    """An episode begins as every other one of its task, whatever went on before."""
    for task in rig.tasks:
        first = await _untouched(rig, task)
        await _acted(rig, task)
        _demand_equal(
            await _untouched(rig, task),
            first,
            f"after an episode of {task.id!r} in which an agent acted, a fresh one is not as before",
            "State leaks from one episode to the next, or the export is not deterministic. "
            + _KEEP_IN_SESSION,
        )


async def episodes_do_not_touch(rig: Rig) -> None:
    """While one agent acts, another one's world stays as it was."""
    for task in rig.tasks:
        fresh = await _untouched(rig, task)
        async with rig.session(task) as idle, rig.session(task) as busy:
            if not isinstance(await idle.begin(), Turn) or not isinstance(await busy.begin(), Turn):
                continue
            await _act(busy, rig.some_calls(task))
            _demand_equal(
                await idle.evidence(),
                fresh,
                f"what an agent did in one episode of {task.id!r} shows in another that ran at the same time",
                "State leaks between episodes. " + _KEEP_IN_SESSION,
            )


async def bad_calls_are_data(rig: Rig) -> None:
    """A model's mistakes belong into the trajectory: they must never end a run."""
    for task in rig.tasks:
        bad = [ToolCall(name=_NO_SUCH, arguments={})]
        bad += [ToolCall(name=tool.name, arguments=odd) for tool in task.tools[:5] for odd in _ODD]
        async with rig.session(task) as session:
            if not isinstance(await session.begin(), Turn):
                continue
            for call in bad:
                try:
                    answer = await session.call((call,))
                except Exception as error:
                    raise Fault(
                        f"{call.name}({dict(call.arguments)}) on {task.id!r} raised {type(error).__name__}: {error}",
                        "Answer with Observation(text=..., ok=False): unknown tools, wrong arguments and a tool's own "
                        "exceptions are observations.",
                    ) from error
                if call.name == _NO_SUCH and (not answer.observations or answer.observations[0].ok):
                    raise Fault(
                        f"a tool that does not exist was answered as if it had worked: {answer.observations}",
                        "Answer with Observation(text=..., ok=False).",
                    )
                if answer.end is not None:
                    break


async def evidence_serialises(rig: Rig) -> None:
    """Verdicts are made again from the store alone."""
    for task in rig.tasks:
        evidence = await _acted(rig, task)
        try:
            written = to_json(evidence)
            again = to_json(from_json(written, Evidence))
            expected = to_json(await rig.expect(task))
        except (TypeError, ValueError) as error:
            raise Fault(
                f"the evidence or the expectation of {task.id!r} is no JSON: {error}",
                "Export strings, numbers, lists and tables with string keys; no NaN, no infinity, no objects.",
            ) from error
        if written != again or not expected:
            raise Fault(
                f"the evidence of {task.id!r} is another after it was stored and read",
                "Export plain JSON only: tables with string keys, lists in the place of tuples and sets.",
            )


async def limits_hold(rig: Rig) -> str:
    """The sandbox refuses what would reach beyond an episode."""
    done: dict[str, None] = {}
    if NO_SANDBOX.id in rig.world.pools:
        raise NotApplicable("it has no tools and no sandbox: an agent that has its own isolates itself")
    for task in _one_a_sandbox(rig):
        episode = await rig.world.pool(task).lease()
        try:
            tried = await episode.request("wer_limits", {})
        finally:
            await episode.close()
        done |= dict.fromkeys(what for what, refusal in tried.items() if not refusal)
    tier = "; ".join(dict.fromkeys(pool.tier for pool in rig.world.pools.values()))
    if done:
        raise Fault(
            f"an episode could {', '.join(done)} ({tier})",
            "The sandbox does not hold here: see wer doctor, and choose another one with --sandbox.",
        )
    return tier


async def nothing_reaches_out(rig: Rig) -> None:
    """A domain works in memory: what it writes elsewhere is refused in one sandbox and kept by another."""
    for task in rig.tasks:
        await _acted(rig, task)
    tried = [each for pool in rig.world.pools.values() for each in getattr(pool, "attempts", {})]
    if tried:
        raise Fault(
            f"in its sandbox the domain {'; '.join(tried[:3])}",
            "An episode may only read. Keep its state in memory (sqlite3 has ':memory:'), load data when the domain is "
            "made, and start nothing.",
        )
    with watching() as heard:
        environment = rig.again()
        for domain in environment.domains():
            environment.tasks(domain, "train")
        for task in rig.tasks[:1]:
            await _acted(rig, task)
    if heard:
        raise Fault(
            f"on the host, outside its sandbox, the environment {'; '.join(dict.fromkeys(heard))}",
            "Run what an episode does in its sandbox: ask for it with `Episode.request`. What can be made again may be "
            "kept in wer.paths.cache_dir().",
        )


async def closing_frees(rig: Rig) -> None:
    """A run opens thousands of episodes."""
    before = await held()
    if not any(before):
        raise NotApplicable("this system has no /proc to count processes and sockets in")
    async with AsyncExitStack() as stack:
        environment = rig.again()
        started = await stack.enter_async_context(pools(environment, rig.plugins, rig.settings.sandbox))
        world = evolve(rig.world, environments={rig.name: environment}, pools=started)
        other = evolve(rig, world=world)
        async with other.session(rig.tasks[0]) as session:
            await session.begin()
            await session.evidence()
            await session.close()  # and once more by the loop
    now = await held()
    processes, opened = now[0] - before[0], now[1] - before[1]
    if processes or opened:
        raise Fault(
            f"after closing there are {len(processes)} more child processes and {len(opened)} more sockets",
            "Close in `Session.close` what `open` made; it is called twice, and after failures too.",
        )


def _one_a_sandbox(rig: Rig) -> list[Task]:
    found = {rig.environment.sandbox(task.domain).id: task for task in rig.tasks}
    return list(found.values())


async def _untouched(rig: Rig, task: Task) -> Evidence:
    async with rig.session(task) as session:
        await session.begin()
        return await session.evidence()


async def _acted(rig: Rig, task: Task) -> Evidence:
    async with rig.session(task) as session:
        if isinstance(await session.begin(), Turn):
            await _act(session, rig.some_calls(task))
        return await session.evidence()


async def _act(session: Session, calls: tuple[ToolCall, ...]) -> None:
    for call in calls:
        answer = await session.call((call,))
        if answer.end is not None:
            return


def _demand_equal(got: Evidence, wanted: Evidence, why: str, remedy: str) -> None:
    found, first = _plain(got), _plain(wanted)
    if found != first:
        line = next(differences(found, first, "evidence", equal=lambda one, other: bool(one == other)))
        raise Fault(f"{why}: {line}", remedy)


def _plain(evidence: Evidence) -> Json:
    return json.loads(to_json(evidence))


ENVIRONMENTS: Kind[Rig] = Kind(
    checks=(
        Check("its tasks load, and each says where it belongs", tasks_load),
        Check("ids and contents of tasks are the same in two loads", ids_are_stable),
        Check("its splits are disjoint", splits_are_disjoint),
        Check("fresh episodes of one task are equal", fresh_episodes_are_equal),
        Check("two episodes at once don't touch each other", episodes_do_not_touch),
        Check("unknown tools and wrong arguments are answered as data", bad_calls_are_data),
        Check("the terminal state can be stored and read again", evidence_serialises),
        Check("its sandbox refuses to write, to connect and to start processes", limits_hold),
        Check("nothing of it reaches outside its sandbox", nothing_reaches_out),
        Check("closing frees everything", closing_frees),
    ),
    open=open_rig,
)
