"""The help desk that an agent works at: the public methods of one class are its tools.

It runs in the sandbox, one instance an episode. What a tool refuses is an exception whose
text says what to do instead. Some rules are only in the policies: no tool stops the agent
who has not read them, and the final state shows it.
"""

from __future__ import annotations

from typing import Any, Literal

import wer
from wer_helpdesk.database import Database, Row, Rows

_NOW = "2026-03-02 09:00"
_PREFIX = {"account": "ACC", "access": "GRP", "device": "DEV"}
_SHOWN = ("id", "name", "department", "manager", "employment", "admin", "locked", "alert")
_APPROVAL_ABOVE = 1000
_SUMMARY_LIMIT = 200


class HelpDesk(wer.State):
    """The desk of Larkfield College."""

    def __init__(
        self,
        people: Rows | None = None,
        devices: Rows | None = None,
        tickets: Rows | None = None,
    ) -> None:
        """Open the desk, with a task's changes to it."""
        changes = {"people": people, "devices": devices, "tickets": tickets}
        self._data = Database({table: rows for table, rows in changes.items() if rows})

    def export(self) -> dict[str, Rows]:
        """Say what the episode changed, by table, row and column."""
        return self._data.changes()

    def read_policy(self, topic: Literal["tickets", "accounts", "access", "devices"]) -> str:
        """Read a policy of the college."""
        return str(self._data.get("policies", topic)["text"])

    def find_person(self, who: str) -> list[dict[str, Any]]:
        """Find people by name, by a part of it, or by employee number.

        Args:
            who: For example "Zielinski", with or without accents, or "E-1000".
        """
        from anyascii import anyascii  # of the sandbox: the host need not have it

        wanted = anyascii(who).strip().lower()
        people = [
            person
            for person in self._data.rows("SELECT * FROM people ORDER BY id")
            if wanted and (wanted == person["id"].lower() or wanted in anyascii(person["name"]).lower())
        ]
        if not people:
            raise LookupError(f"nobody is called {who!r}: try the family name alone")
        return [{column: person[column] for column in _SHOWN} for person in people]

    def list_devices(self, employee_id: str | None = None) -> list[dict[str, Any]]:
        """List the devices that a person holds, or those in stock.

        Args:
            employee_id: Such as "E-1000"; left out, the stock is listed.
        """
        if employee_id is None:
            return self._data.rows("SELECT * FROM devices WHERE place = 'in stock' ORDER BY id")
        self._data.get("people", employee_id)
        return self._data.rows("SELECT * FROM devices WHERE holder = ? ORDER BY id", employee_id)

    def list_tickets(self, employee_id: str) -> list[dict[str, Any]]:
        """List the tickets of a person, old ones included.

        Args:
            employee_id: Such as "E-1000".
        """
        self._data.get("people", employee_id)
        return self._data.rows("SELECT * FROM tickets WHERE requester = ? ORDER BY id", employee_id)

    def open_ticket(
        self,
        employee_id: str,
        category: Literal["account", "access", "device"],
        priority: Literal["P1", "P2", "P3"],
        summary: str,
    ) -> str:
        """Open a ticket, and learn its number and when it is due.

        Args:
            employee_id: Of the person who writes to you.
            category: "account" for signing in, "access" for groups, "device" for hardware.
            priority: As the policy on tickets has it.
            summary: A few words for colleagues.
        """
        if len(summary) > _SUMMARY_LIMIT:
            raise ValueError(
                f"a summary of {len(summary)} characters is no summary: {_SUMMARY_LIMIT} must do"
            )
        for ticket in self.list_tickets(employee_id):
            if ticket["category"] == category and ticket["status"] == "open":
                raise ValueError(f"{ticket['id']} is open for {category} already: go on with it")
        query = "SELECT strftime('%Y-%m-%d %H:%M', ?, '+' || hours || ' hours') AS due FROM priorities WHERE id = ?"
        due = self._data.rows(query, _NOW, priority)[0]["due"]
        number = self._next(_PREFIX[category])
        self._data.put(
            "tickets",
            number,
            requester=employee_id,
            category=category,
            priority=priority,
            due=due,
            summary=summary,
        )
        return f"{number}, due {due}"

    def verify_identity(self, ticket_id: str, badge: str) -> str:
        """Compare the badge number that the requester gave you with the one on file. There is one try a ticket.

        Args:
            badge: Four digits.
        """
        ticket = self._open(ticket_id)
        if ticket["verified"] == 0:
            raise PermissionError(f"the one try on {ticket_id} has failed: escalate to security")
        if ticket["verified"]:
            raise ValueError(f"{ticket_id} is verified already: go on")
        right = badge.strip() == self._data.get("people", ticket["requester"])["badge"]
        self._data.put("tickets", ticket_id, verified=int(right))
        if not right:
            raise PermissionError(
                f"that is not the badge number of {ticket['requester']}: escalate to security"
            )
        return f"verified: it is {ticket['requester']} who writes"

    def request_approval(self, ticket_id: str) -> str:
        """Ask the requester's manager whether what the ticket is about may be done."""
        ticket = self._verified(ticket_id)
        if ticket["approval"]:
            raise ValueError(f"the manager has answered already: {ticket['approval']}")
        manager = self._data.get("people", ticket["requester"])["manager"]
        if manager is None:
            raise LookupError(f"{ticket['requester']} has no manager to ask: decline")
        answer = "approved" if self._data.get("people", manager)["approves"] else "declined"
        self._data.put("tickets", ticket_id, approval=answer)
        return f"{manager} answers: {answer}"

    def escalate(
        self, ticket_id: str, team: Literal["security", "data-protection", "facilities"], reason: str
    ) -> str:
        """Hand a ticket over to another team, for good.

        Args:
            reason: What they should know.
        """
        self._open(ticket_id)
        self._data.put("tickets", ticket_id, status="escalated", team=team)
        return f"{ticket_id} is with {team} now: leave it to them"

    def close_ticket(self, ticket_id: str, resolution: Literal["solved", "declined"]) -> str:
        """Close a ticket when the work is done, or when it must not be done."""
        ticket = self._verified(ticket_id)
        if ticket["approval"] == "declined" and resolution == "solved":
            raise ValueError("the manager has declined: close it as declined")
        self._data.put("tickets", ticket_id, status=resolution)
        return f"{ticket_id} is closed: {resolution}"

    def unlock_account(self, ticket_id: str) -> str:
        """Unlock the requester's account."""
        requester = self._verified(ticket_id, "account")["requester"]
        if not self._data.get("people", requester)["locked"]:
            raise ValueError(f"the account of {requester} is not locked")
        self._data.put("people", requester, locked=0)
        return "unlocked"

    def reset_password(self, ticket_id: str) -> str:
        """Have a new password sent to the requester."""
        ticket = self._verified(ticket_id, "account")
        person = self._data.get("people", ticket["requester"])
        if person["locked"]:
            raise ValueError("the account is locked: unlock it first")
        if person["admin"]:
            _require_approval(ticket, "an administrator's password")
        self._data.put("people", person["id"], passwords=person["passwords"] + 1)
        return "done; the new password goes to the person, and you do not see it"

    def grant_access(self, ticket_id: str, group: str) -> str:
        """Make the requester a member of a group.

        Args:
            group: Such as "staff-news".
        """
        ticket = self._verified(ticket_id, "access")
        person = self._data.get("people", ticket["requester"])
        if self._data.get("groups", group)["restricted"]:
            if person["employment"] == "contractor":
                raise PermissionError(f"no contractor joins {group}: escalate to data-protection")
            _require_approval(ticket, f"the restricted group {group}")
        name = f"{person['id']}/{group}"
        if self._data.find("members", name):
            raise ValueError(f"{person['id']} is in {group} already")
        self._data.put("members", name, person=person["id"], group=group)
        return f"{person['name']} is in {group} now"

    def send_to_repair(self, ticket_id: str, device_id: str, loaner_id: str | None = None) -> str:
        """Send a broken device that is under warranty to its maker.

        Args:
            device_id: Held by the requester.
            loaner_id: A device in stock to lend meanwhile, where the policy grants one.
        """
        ticket, device = self._in_use(ticket_id, device_id)
        if device["warranty_until"] < _NOW:
            raise ValueError(f"the warranty of {device_id} ended on {device['warranty_until']}: swap it")
        if loaner_id is not None:
            self._hand_out(loaner_id, device["kind"], ticket["requester"])
        self._data.put("devices", device_id, place="in repair")
        return f"{device_id} is on its way" + (f", and {loaner_id} is lent" if loaner_id else "")

    def swap_device(
        self, ticket_id: str, device_id: str, new_device_id: str, reason: Literal["broken", "lost"]
    ) -> str:
        """Give the requester another device for one that is broken out of warranty, or lost.

        Args:
            device_id: Held by the requester.
            new_device_id: In stock, of the same kind.
        """
        ticket, device = self._in_use(ticket_id, device_id)
        if reason == "broken" and device["warranty_until"] >= _NOW:
            raise ValueError(
                f"{device_id} is under warranty until {device['warranty_until']}: send it to repair"
            )
        if reason == "lost":
            _require_approval(ticket, "another device for a lost one")
        elif (price := self._data.get("devices", new_device_id)["price"]) > _APPROVAL_ABOVE:
            _require_approval(ticket, f"a device of {price}")
        self._hand_out(new_device_id, device["kind"], ticket["requester"])
        place = "lost" if reason == "lost" else "retired"
        self._data.put("devices", device_id, place=place, holder=None)
        return f"{new_device_id} takes the place of {device_id}"

    def _open(self, ticket_id: str) -> Row:
        ticket = self._data.get("tickets", ticket_id)
        if ticket["status"] != "open":
            raise ValueError(f"{ticket_id} is {ticket['status']}: nothing more can be done on it")
        return ticket

    def _verified(self, ticket_id: str, category: str = "") -> Row:
        ticket = self._open(ticket_id)
        if category and ticket["category"] != category:
            raise ValueError(f"{ticket_id} is about {ticket['category']}: this needs a ticket for {category}")
        if not ticket["verified"]:
            raise PermissionError(f"nobody knows who writes on {ticket_id}: verify the badge number first")
        return ticket

    def _in_use(self, ticket_id: str, device_id: str) -> tuple[Row, Row]:
        ticket = self._verified(ticket_id, "device")
        device = self._data.get("devices", device_id)
        if device["holder"] != ticket["requester"] or device["place"] != "in use":
            raise ValueError(f"{device_id} is not in use by {ticket['requester']}, who asks")
        return ticket, device

    def _hand_out(self, device_id: str, kind: str, to: str) -> None:
        device = self._data.get("devices", device_id)
        if device["place"] != "in stock" or device["kind"] != kind:
            raise ValueError(
                f"{device_id} is no {kind} in stock: list_devices without a person shows the stock"
            )
        self._data.put("devices", device_id, place="in use", holder=to)

    def _next(self, prefix: str) -> str:
        taken = self._data.rows("SELECT id FROM tickets WHERE id LIKE ? || '-%'", prefix)
        return f"{prefix}-{max(int(row['id'].partition('-')[2]) for row in taken) + 1}"


def _require_approval(ticket: Row, what: str) -> None:
    if ticket["approval"] is None:
        raise PermissionError(f"{what} needs the manager's approval: request it on {ticket['id']} first")
    if ticket["approval"] == "declined":
        raise PermissionError(f"the manager has declined {what}: close {ticket['id']} as declined")
