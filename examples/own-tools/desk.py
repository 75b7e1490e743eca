"""An agent with tools of its own: it closes tickets in a help desk that WER knows nothing of.

It stands for yours. Instead of a model it has habits: half of the time it leaves the note out, unless its skill says
to add one.
"""

import re

import wer


class Desk:
    """The tickets, and the tools that the agent calls."""

    def __init__(self, tickets: dict[str, dict[str, str]]) -> None:
        self.tickets = tickets

    def note(self, number: str, text: str) -> str:
        """Write into a ticket."""
        self.tickets[number]["note"] = text
        return "noted"

    def close(self, number: str) -> str:
        """Close a ticket."""
        self.tickets[number]["status"] = "closed"
        return "closed"


def agent(task, skill: str, seed: int) -> wer.Outcome:
    """Do one task with this skill, and tell what was done and what is left behind."""
    desk = Desk(task.state["tickets"])
    number, reason = re.search(r"ticket (\w+): (.+)\.", task.query).groups()
    messages = []

    def call(tool, **arguments):
        answer = getattr(desk, tool)(**arguments)
        asked = {"id": tool, "type": "function", "function": {"name": tool, "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        messages.append({"role": "tool", "tool_call_id": tool, "content": answer})

    if "note" in skill.lower() or seed % 2:
        call("note", number=number, text=reason)
    call("close", number=number)
    messages.append({"role": "assistant", "content": f"Ticket {number} is closed."})
    return wer.Outcome(messages, state={"tickets": desk.tickets})
