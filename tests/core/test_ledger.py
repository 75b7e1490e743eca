"""Caps over all roles, prices, and retries that are never scored."""

from __future__ import annotations

import pytest

from wer.errors import BudgetExhausted, ModelError, ModelUnavailable
from wer.loop.ledger import Budget, Ledger, RoleModel
from wer.records import Message, Reply, Sampling, ToolCall, Usage
from wer.store import Store


class Scripted:
    """A model that answers from a list; an exception in it is raised."""

    def __init__(self, *answers: Reply | Exception) -> None:
        self.identity = {"provider": "scripted"}
        self.answers = list(answers)

    async def complete(self, messages, tools, sampling):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self): ...


def reply(tokens: int, usd: float | None = None) -> Reply:
    return Reply(text="x", usage=Usage(calls=1, prompt_tokens=tokens, completion_tokens=tokens, usd=usd))


def busy() -> ModelUnavailable:
    return ModelUnavailable("429: slow down", retry_after_s=0.0)


def role(store, *answers, budget=None, retries=2, price=None, told=None):
    ledger = Ledger(budget or Budget(), store)
    tell = (told if told is not None else []).append
    return RoleModel(
        Scripted(*answers), role="writer", ledger=ledger, retries=retries, on_retry=tell, price=price
    )


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "wer.sqlite", create=True)


async def ask(model):
    return await model.complete([Message(role="user", content="hi")], (), Sampling())


async def test_what_no_store_can_keep_is_replaced_in_an_answer_of_any_plugins_model(store):
    half = "\ud83d"
    call = ToolCall(name=f"say{half}", arguments={f"to{half}": [half]}, id=half)
    odd = Reply(text=f"hi {half}", calls=(call,), malformed=(half,), finish=half)

    answer = await ask(role(store, odd))

    shown = "\N{REPLACEMENT CHARACTER}"
    assert (answer.text, answer.malformed, answer.finish) == (f"hi {shown}", (shown,), shown)
    assert answer.calls == (ToolCall(name=f"say{shown}", arguments={f"to{shown}": [shown]}, id=shown),)


async def test_a_busy_model_is_asked_again_and_the_user_is_told(store):
    told: list[str] = []

    answer = await ask(role(store, busy(), busy(), reply(3), told=told))

    assert answer.text == "x"
    assert told == ["trying again (1 of 2): 429: slow down", "trying again (2 of 2): 429: slow down"]


async def test_a_model_that_stays_busy_ends_with_its_own_words(store):
    with pytest.raises(ModelUnavailable, match="429"):
        await ask(role(store, busy(), busy(), busy()))


async def test_a_refusal_for_good_is_not_tried_again(store):
    with pytest.raises(ModelError, match="401"):
        await ask(role(store, ModelError("401: bad key"), reply(1)))


async def test_tokens_of_all_roles_together_are_capped_before_the_next_call(store):
    store.add_spend("executor", Usage(calls=1, prompt_tokens=90, completion_tokens=10))
    model = role(store, reply(1), budget=Budget(max_tokens=100))

    with pytest.raises(BudgetExhausted, match=r"--max-tokens .*100 tokens"):
        await ask(model)


async def test_a_price_makes_money_of_tokens(store):
    await ask(role(store, reply(1_000_000), price=(0.15, 0.6)))

    assert store.spend()["writer"].usd == pytest.approx(0.75)


async def test_a_cap_on_money_stops_at_the_money(store):
    model = role(store, reply(1_000_000), reply(1), budget=Budget(max_cost=0.5), price=(0.15, 0.6))
    await ask(model)

    with pytest.raises(BudgetExhausted, match=r"--max-cost is reached \(0.75 USD"):
        await ask(model)


async def test_a_cap_on_money_without_a_price_says_how_to_give_one(store):
    model = role(store, reply(1), reply(1), budget=Budget(max_cost=0.5))
    await ask(model)

    with pytest.raises(BudgetExhausted, match="--price"):
        await ask(model)
