"""What every sandbox must do: seen with a domain that breaks on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from attrs import evolve, frozen

from wer.conformance.checks import Check, Fault, Kind, NotApplicable, Settings
from wer.conformance.watching import held
from wer.contracts import Pool, Sandbox
from wer.errors import SandboxError
from wer.plugins import Plugins
from wer.records import SandboxSpec

_SPEC = SandboxSpec(name="wer-check", domain="wer_sandbox.probe:alone")


@frozen(kw_only=True)
class Cell:
    """A sandbox with a pool of one worker."""

    sandbox: Sandbox
    pool: Pool


async def the_tier_is_said(cell: Cell) -> str:
    """Reports never claim more isolation than there was."""
    if not cell.pool.tier.strip():
        raise Fault("`Pool.tier` is empty", "Say what isolates the episodes, and what does not.")
    return cell.pool.tier


async def episodes_are_fresh(cell: Cell) -> None:
    """Each episode is a world of its own."""
    one, other = await cell.pool.lease(), await cell.pool.lease()
    try:
        counts = [await episode.request("wer_count", {}) for episode in (one, one, other)]
    finally:
        await one.close()
        await other.close()
        await other.close()
    if counts != [1, 2, 1]:
        raise Fault(f"two episodes counted {counts}, expected [1, 2, 1]", "Fork an episode for each lease.")


async def limits_hold(cell: Cell) -> str:
    """What an episode may not do is refused."""
    episode = await cell.pool.lease()
    try:
        tried = await episode.request("wer_limits", {})
    finally:
        await episode.close()
    done = [what for what, refusal in tried.items() if not refusal]
    if done:
        raise Fault(
            f"an episode could {', '.join(done)}",
            "Start the worker so that wer_sandbox can confine its children.",
        )
    return ", ".join(f"{what}: {refusal}" for what, refusal in tried.items())


async def ends_are_told_apart(cell: Cell) -> None:
    """A failure of the machine is never the skill's, and the next episode comes all the same."""
    for method, cause, timeout_s in (
        ("wer_raise", "protocol", 20.0),
        ("wer_die", "dead", 20.0),
        ("wer_hang", "hung", 0.3),
    ):
        episode = await cell.pool.lease()
        found = "an answer"
        try:
            await episode.request(method, {}, timeout_s=timeout_s)
        except SandboxError as error:
            found = error.cause
        finally:
            await episode.close()
        if found != cause:
            raise Fault(
                f"{method} ended with {found!r}, expected {cause!r}", "Raise SandboxError with its cause."
            )
    await episodes_are_fresh(cell)


async def a_bad_domain_is_refused(cell: Cell) -> None:
    """What can't be loaded is found when the run opens."""
    spec = evolve(_SPEC, name="wer-check-bad", domain="wer_no_such_module:domain")
    try:
        pool = await cell.sandbox.start(spec, 1)
    except SandboxError as error:
        if error.cause == "start" and "wer_no_such_module" in str(error):
            return
        raise Fault(
            f"a domain that can't be imported is {error!r}", 'Raise SandboxError with cause="start" and why.'
        ) from error
    await pool.close()
    raise Fault("a domain that can't be imported was started", "Wait until the worker has loaded its domain.")


async def closing_frees(cell: Cell) -> None:
    """Runs are started and killed all day."""
    before = await held()
    if not any(before):
        raise NotApplicable("this system has no /proc to count processes and sockets in")
    pool = await cell.sandbox.start(evolve(_SPEC, name="wer-check-closing"), 1)
    episode = await pool.lease()
    await pool.close()
    await pool.close()
    await episode.close()
    now = await held()
    processes, opened = now[0] - before[0], now[1] - before[1]
    if processes or opened:
        raise Fault(
            f"after closing there are {len(processes)} more child processes and {len(opened)} more sockets",
            "End the worker with all of its children in `Pool.close`, and close every socket.",
        )
    await asyncio.to_thread(cell.sandbox.reap)


@asynccontextmanager
async def open_cell(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Cell]:
    """Start the sandbox called so, where it works."""
    sandbox = plugins.sandboxes.make(name)
    why = sandbox.unavailable()
    if why is not None:
        raise NotApplicable(f"it can't be used here: {why}")
    pool = await sandbox.start(_SPEC, 1)
    try:
        yield Cell(sandbox=sandbox, pool=pool)
    finally:
        with suppress(SandboxError):
            await pool.close()


SANDBOXES: Kind[Cell] = Kind(
    checks=(
        Check("it says what isolates the episodes", the_tier_is_said),
        Check("episodes are fresh and apart", episodes_are_fresh),
        Check("an episode can't write, connect or start a process", limits_hold),
        Check("mistakes, deaths and hangs are told apart, and the next episode comes", ends_are_told_apart),
        Check("a domain that can't be loaded is refused at the start", a_bad_domain_is_refused),
        Check("closing frees everything", closing_frees),
    ),
    open=open_cell,
)
