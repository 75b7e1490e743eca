"""What the roles spend together, and the caps over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from attrs import evolve, field, frozen

from wer.chat import cleaned
from wer.contracts import Model
from wer.errors import BudgetExhausted, ModelUnavailable, SearchSpent
from wer.loop.retrying import patiently
from wer.records import JsonObject, Message, Reply, Sampling, ToolSpec, Usage
from wer.tracing import span


@frozen(kw_only=True)
class Budget:
    """Caps over all roles together; 0 is no cap.

    Attributes:
        max_rollouts: Rollouts run (cached ones are free).
        max_tokens: Prompt and completion tokens.
        max_cost: US dollars. A model without a known price can't be capped by money.
    """

    max_rollouts: int = field(default=0)
    max_tokens: int = field(default=0)
    max_cost: float = field(default=0.0)


class Spending(Protocol):
    """Where spending is remembered: the run's store."""

    def add_spend(self, role: str, usage: Usage) -> None:
        """Add to what a role has spent, durably: a killed run must not forget what it paid."""
        ...

    def add_fault(self, kind: str, place: str) -> None:
        """Count one failure of the infrastructure, durably."""
        ...

    def spend(self) -> Mapping[str, Usage]:
        """What each role has spent since the run was created, earlier starts included."""
        ...

    def count_rollouts(self) -> int:
        """How many rollouts the run has paid for so far, earlier starts included."""
        ...


class Ledger:
    """Counts tokens and money by role, rollouts in all, and stops before a cap is passed."""

    def __init__(self, budget: Budget, spending: Spending) -> None:
        self.budget = budget
        self._spending = spending
        self._total = sum(spending.spend().values(), Usage())
        self._rollouts = spending.count_rollouts()
        self._search: Budget | None = None

    @property
    def total(self) -> Usage:
        """All roles together, earlier starts of the run included: what the caps are compared with."""
        return self._total

    def charge(self, role: str, usage: Usage) -> None:
        """Book what a model call cost."""
        self._spending.add_spend(role, usage)
        self._total = self._total + usage

    def fault(self, kind: str, place: str) -> None:
        """Count a failure of the infrastructure, by its kind and where it was met: a role, or the rollouts."""
        self._spending.add_fault(kind, place)

    @property
    def spent(self) -> tuple[int, int]:
        """Rollouts and tokens so far."""
        return self._rollouts, self._total.prompt_tokens + self._total.completion_tokens

    @contextmanager
    def searching(self, until: Budget) -> Iterator[None]:
        """Let the work inside spend no more than until these totals are reached."""
        self._search = until
        try:
            yield
        finally:
            self._search = None

    @property
    def search_rollouts_left(self) -> int | None:
        """Rollouts that the search may still begin; None where it has no such cap."""
        if self._search is None or not self._search.max_rollouts:
            return None
        return max(0, self._search.max_rollouts - self._rollouts)

    def begin_rollout(self) -> None:
        """Book one rollout before it starts.

        Raises:
            SearchSpent: As for `check_search`.
            BudgetExhausted: The cap on rollouts is reached.
        """
        self.check_search()
        if self.budget.max_rollouts and self._rollouts >= self.budget.max_rollouts:
            raise BudgetExhausted(_stop("--max-rollouts", f"{self.budget.max_rollouts} rollouts"))
        self._rollouts += 1

    def abandon_rollout(self) -> None:
        """Take back a rollout that ended without a verdict."""
        self._rollouts -= 1

    def check_search(self) -> None:
        """Refuse new work of the search; a rollout that has begun is paid for to its end.

        Raises:
            SearchSpent: Its share is spent.
        """
        if self._search is None:
            return
        rollouts, tokens = self.spent
        if self._search.max_rollouts and rollouts >= self._search.max_rollouts:
            raise SearchSpent("budget.search_rollouts is spent")
        if self._search.max_tokens and tokens >= self._search.max_tokens:
            raise SearchSpent("budget.search_tokens is spent")

    def check(self) -> None:
        """Refuse the next model call when a cap is reached.

        Raises:
            BudgetExhausted: With the cap's name; or money is capped and a price is unknown.
        """
        tokens = self._total.prompt_tokens + self._total.completion_tokens
        if self.budget.max_tokens and self._total.untold:
            raise BudgetExhausted(
                "tokens are capped (--max-tokens, or budget.max_tokens of wer.toml), and your agent doesn't say "
                "what it uses, or failed before it could. Have it return a wer.Outcome with usage; or go on with "
                "--max-tokens 0, and cap --max-rollouts."
            )
        if self.budget.max_tokens and tokens >= self.budget.max_tokens:
            raise BudgetExhausted(_stop("--max-tokens", f"{tokens} tokens"))
        if not self.budget.max_cost:
            return
        if self._total.untold:
            raise BudgetExhausted(
                "money is capped (--max-cost, or budget.max_cost of wer.toml), and your agent doesn't say what it "
                "uses, or failed before it could. Have it return a wer.Outcome with usage; or go on with --max-cost 0, "
                "and cap --max-rollouts."
            )
        if self._total.usd is None:
            raise BudgetExhausted(
                "--max-cost is set, but a model's price is unknown. Give it with "
                "--price openai/NAME=PROMPT,COMPLETION (US dollars per million prompt and completion tokens), "
                "or cap --max-tokens."
            )
        if self._total.usd >= self.budget.max_cost:
            raise BudgetExhausted(_stop("--max-cost", f"{self._total.usd:.2f} USD"))


def _stop(option: str, spent: str) -> str:
    return f"the cap {option} is reached ({spent} spent). All of it is stored: raise the cap and go on with --resume."


def counted(usage: Usage, messages: Sequence[Message], reply: str) -> Usage:
    """A usage with tokens: a server that reports none is charged a token for four characters."""
    if usage.prompt_tokens or usage.completion_tokens:
        return usage
    prompt = sum(len(message.content) for message in messages)
    return evolve(usage, prompt_tokens=1 + prompt // 4, completion_tokens=1 + len(reply) // 4)


def priced(usage: Usage, price: Sequence[float] | None) -> Usage:
    """Put money on a usage that came without, when the user gave a price.

    Args:
        price: US dollars per million prompt tokens and per million completion tokens.
    """
    if usage.usd is not None or price is None:
        return usage
    per_prompt, per_completion = price
    usd = (usage.prompt_tokens * per_prompt + usage.completion_tokens * per_completion) / 1e6
    return evolve(usage, usd=usd)


class RoleModel:
    """A model in one role: metered, capped, and retried while its failure is for now.

    Args:
        price: For models whose replies come without a cost; see `priced`.
        acts: Whether it is asked inside of rollouts, which the search pays for to their end.

    Attributes:
        identity: That of the model inside.
    """

    def __init__(
        self,
        model: Model,
        *,
        role: str,
        ledger: Ledger,
        retries: int,
        on_retry: Callable[[str], None],
        price: Sequence[float] | None = None,
        acts: bool = False,
    ) -> None:
        self._model = model
        self._role = role
        self._ledger = ledger
        self._retries = retries
        self._on_retry = on_retry
        self._price = price
        self._acts = acts

    @property
    def identity(self) -> JsonObject:
        """That of the model inside: a role changes who pays, and never what is answered."""
        return self._model.identity

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask, with up to ``retries`` more tries and exponential back-off."""

        async def once(number: int) -> Reply:
            self._ledger.check()
            if not self._acts:
                self._ledger.check_search()
            return await self._ask(messages, tools, sampling, number)

        reply = await patiently(
            ModelUnavailable, once, retries=self._retries, tell=self._on_retry, count=self._count
        )
        usage = priced(counted(reply.usage, messages, reply.text), self._price)
        self._ledger.charge(self._role, usage)
        return evolve(reply, usage=usage)

    async def _ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, attempt: int
    ) -> Reply:
        model = self._model.identity
        with span(
            "model",
            role=self._role,
            provider=model.get("provider", ""),
            model=model.get("name", ""),
            attempt=attempt,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
        ) as tell:
            reply = cleaned(await self._model.complete(messages, tools, sampling))
            used = reply.usage
            tell(
                finish=reply.finish,
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                cached_tokens=used.cached_tokens,
                usd=used.usd,
            )
        return reply

    def _count(self, error: ModelUnavailable) -> None:
        self._ledger.fault(error.kind, self._role)

    async def close(self) -> None:
        """Close the model inside, for all roles that share it."""
        await self._model.close()
