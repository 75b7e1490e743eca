"""Refunds in a web shop, for agents that have tools of their own: their world, their tasks and the check.

There is no class and no sandbox: what the tools work on belongs to the agent, and the check sees what it left behind.
"""

from collections.abc import Callable

import wer

POLICY = (
    "You work for a web shop's support, and act with your tools. Answer in one sentence when you are done."
)


def tools_on(orders: dict) -> list[Callable]:
    """The agent's own tools, on the orders of one task."""

    def get_order(number: str) -> str:
        """Show an order: its total in euro, its status, and what was refunded of it."""
        return str(orders.get(number, f"there is no order {number}"))

    def refund(number: str, amount: float) -> str:
        """Refund part of an order, in euro."""
        if number not in orders:
            return f"there is no order {number}"
        orders[number]["refunded"] = amount
        return f"refunded {amount:.2f} euro"

    return [get_order, refund]


def check(task, end):
    """Whether exactly the wanted amounts were refunded."""
    return {number: order["refunded"] for number, order in end.state.items()} == task.expect


refunds = wer.Domain(tasks="tasks.jsonl", check=check)
