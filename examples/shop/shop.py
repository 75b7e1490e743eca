"""A web shop's back office: what a support agent may do there, and whether it did what it should.

Measure a skill in it: wer eval SKILL.md --env examples/shop/shop.py:shop --executor openai/gpt-4o-mini
"""

from typing import Literal, TypedDict

import wer


class Item(TypedDict):
    """A line of an order."""

    sku: str
    quantity: int


class Shop(wer.State):
    """The orders, the stock and the customers of one task."""

    def __init__(self, orders: dict, stock: dict, customers: dict):
        self.orders, self.stock, self.customers = orders, stock, customers
        self.mails: list[dict] = []

    def list_orders(self, email: str) -> list[str]:
        """List the order numbers of a customer, the newest last.

        Args:
            email: As in the customer's account.
        """
        self._customer(email)
        return [number for number, order in self.orders.items() if order["email"] == email]

    def get_order(self, number: str) -> dict:
        """Show an order: its items, status, total in euro, and what was refunded of it."""
        return self._order(number)

    def get_customer(self, email: str) -> dict:
        """Show a customer's account: name, address, and store credit in euro."""
        return self._customer(email)

    def cancel_order(self, number: str) -> str:
        """Cancel an order that is not shipped yet. Its items go back into stock, and all of it is refunded."""
        order = self._order(number)
        if order["status"] != "paid":
            raise ValueError(f"order {number} is {order['status']}: only paid orders can be cancelled")
        order.update(status="cancelled", refunded=order["total"])
        for item in order["items"]:
            self.stock[item["sku"]] += item["quantity"]
        return "cancelled"

    def refund(self, number: str, amount: float, to: Literal["card", "credit"] = "card") -> str:
        """Give money back for a delivered order, up to what is left of its total.

        Args:
            amount: In euro.
            to: The card that paid, or the customer's store credit.
        """
        order = self._order(number)
        if order["status"] != "delivered":
            raise ValueError(f"order {number} is {order['status']}: only delivered orders can be refunded")
        if not 0 < amount <= order["total"] - order["refunded"]:
            raise ValueError(f"at most {order['total'] - order['refunded']:.2f} euro can be refunded")
        order["refunded"] = round(order["refunded"] + amount, 2)
        if to == "credit":
            customer = self._customer(order["email"])
            customer["credit"] = round(customer["credit"] + amount, 2)
        return f"refunded {amount:.2f} euro to {to}"

    def place_order(self, email: str, items: list[Item], express: bool = False) -> str:
        """Place an order at no charge, as a replacement. Answers with its number.

        Args:
            items: What to send.
            express: Send it overnight.
        """
        self._customer(email)
        for item in items:
            if self.stock.get(item["sku"], 0) < item["quantity"]:
                raise ValueError(f"{item['sku']}: only {self.stock.get(item['sku'], 0)} in stock")
        for item in items:
            self.stock[item["sku"]] -= item["quantity"]
        number = str(max(map(int, self.orders)) + 1)
        order = {"email": email, "items": items, "status": "paid", "total": 0.0, "refunded": 0.0}
        self.orders[number] = order | ({"express": True} if express else {})
        return number

    def change_address(self, email: str, address: str) -> str:
        """Change the address to which a customer's unshipped and future orders are sent."""
        self._customer(email)["address"] = address
        return "changed"

    def send_mail(self, email: str, subject: Literal["receipt", "return_label", "apology"]) -> str:
        """Send a customer one of the prepared mails."""
        self._customer(email)
        self.mails.append({"to": email, "subject": subject})
        return "sent"

    def _order(self, number: str) -> dict:
        if number not in self.orders:
            raise ValueError(f"there is no order {number!r}")
        return self.orders[number]

    def _customer(self, email: str) -> dict:
        if email not in self.customers:
            raise ValueError(f"there is no customer {email!r}")
        return self.customers[email]


def check(task, end):
    """Whether the world is as it was but for what the task expects to have changed."""
    wanted = changed({**task.state, "mails": []}, task.expect)
    wrong = [f"{name}: {end.state[name]}" for name in wanted if end.state[name] != wanted[name]]
    return not wrong, "\n".join(wrong)


def changed(state, changes):
    """Lay changes over a state, table by table."""
    if not isinstance(changes, dict):
        return changes
    return {**state, **{key: changed(state.get(key, {}), value) for key, value in changes.items()}}


shop = wer.Domain(
    Shop,
    tasks="tasks.jsonl",
    check=check,
    context="You work for a web shop's support. For goods that arrived damaged, send an apology and offer nothing "
    "that was not asked for. Refunds of more than 100 euro go to store credit.",
)
