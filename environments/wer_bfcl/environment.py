"""The environment itself: which tasks there are, what they run in, and what their verifier expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import field, frozen, validators

from wer.contracts import Episode, Roles, Session
from wer.records import Json, SandboxSpec, Split, Task, ToolCall
from wer_bfcl.benchmark import REQUIREMENTS, load
from wer_bfcl.reference import reference
from wer_bfcl.session import BfclSession
from wer_bfcl.tasks import DOMAINS, tasks


@frozen(kw_only=True)
class BfclOptions:
    """The table ``[environment.bfcl]``.

    Attributes:
        max_turns: Keep only the first turns of each task, for quick runs. A task that
            is cut is marked: its scores are not the benchmark's.
        tools: ``involved`` offers the tools of all classes that the task names, as the
            benchmark does. ``needed`` offers those of the domain's own class and of the
            classes that the reference calls: an easier task for small models, so marked.
        seed: Decides which tasks are training tasks.
    """

    max_turns: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    tools: Literal["involved", "needed"] = "involved"
    seed: int = 0


class Bfcl:
    """BFCL v4, category ``multi_turn_base``, as in bfcl-eval 2026.3.23."""

    def __init__(self, options: BfclOptions) -> None:
        self._options = options

    def domains(self) -> Sequence[str]:
        """The paper's four, each the tasks of one main tool class."""
        return DOMAINS

    def verifier(self) -> str:
        """The official verdict; ``bfcl_final_state`` is the paper's reading of it."""
        return "bfcl_checker"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The 50 training or 150 test tasks' share of a domain, cut and marked as the options say."""
        options = self._options
        return tasks(
            load(),
            domain,
            split,
            seed=options.seed,
            max_turns=options.max_turns,
            only_needed=options.tools == "needed",
        )

    def sandbox(self, domain: str) -> SandboxSpec:
        """One sandbox for all domains, so that they share its workers."""
        return SandboxSpec(
            name="bfcl",
            domain="wer_bfcl_domain:domain",
            requirements=REQUIREMENTS,
            packages=("wer_bfcl_domain",),
            environ={"PYTHONHASHSEED": "0", "TZ": "UTC"},
        )

    def roles(self) -> Sequence[str]:
        """None: what the user says is in the tasks."""
        return ()

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin a rollout. Nothing in BFCL is random, so the seed has nothing to decide."""
        return BfclSession(task, episode)

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]]:
        """The benchmark's possible answer, of which the official verdict is made; see `wer.contracts.Referenced`."""
        return reference(load(), task)

    async def expect(self, task: Task, episode: Episode) -> Json:
        """Run the reference: state, results and number of calls after each of the task's turns."""
        await episode.request("reset", task.setup)
        turns = []
        for calls in self.reference(task):
            answers = [
                await episode.request("call", {"name": call.name, "arguments": call.arguments})
                for call in calls
            ]
            state = await episode.request("export", {})
            results = [answer["text"] for answer in answers]
            turns.append({"state": state, "results": results, "calls": len(calls)})
        return {"turns": turns}
