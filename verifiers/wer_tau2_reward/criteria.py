"""What a task is judged by, as the tau2 environment says it."""

from __future__ import annotations

from attrs import frozen

from wer.errors import VerifierError
from wer.records import Json, ToolCall

KINDS = ("DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE")


@frozen(kw_only=True)
class Action:
    """A call of the reference, the agent's or the user's.

    Attributes:
        compared: Names of the arguments that must agree; None is all that the compared call has.
    """

    call: ToolCall
    compared: tuple[str, ...] | None

    def matches(self, call: ToolCall) -> bool:
        """Whether a call counts as this one, by the package's comparison, oddities included.

        All arguments of the *other* call are compared, so that a call without any is like
        every call of its name.
        """
        if call.name != self.call.name:
            return False
        compared = call.arguments.keys() if self.compared is None else self.compared
        mine = {name: value for name, value in self.call.arguments.items() if name in compared}
        theirs = {name: value for name, value in call.arguments.items() if name in compared}
        return not compared or mine == theirs


@frozen(kw_only=True)
class Criteria:
    """What a passing episode has.

    Attributes:
        basis: Which of `KINDS` the reward is a product of.
        open_ended: The package names neither actions nor assertions: any state will do.
        db: Hash of the agent's database after the reference.
        user_db: Hash of the user's, None where there is none.
        communicate: What the agent must have told the user.
        greeting: What it told the user in any case.
    """

    basis: tuple[str, ...]
    open_ended: bool
    db: str | None
    user_db: str | None
    actions: tuple[Action, ...]
    communicate: tuple[str, ...]
    greeting: str


def criteria(expect: Json) -> Criteria:
    """Read what the environment's ``expect`` gave.

    Raises:
        VerifierError: It is not from the tau2 environment, or asks for a model's judgement.
    """
    try:
        found = Criteria(
            basis=tuple(expect["basis"]),
            open_ended=expect["actions"] is None and expect["assertions"] is None,
            db=expect["db"],
            user_db=expect["user_db"],
            actions=tuple(_action(action) for action in expect["actions"] or ()),
            communicate=tuple(expect["communicate"] or ()),
            greeting=expect["greeting"],
        )
    except (TypeError, KeyError) as error:
        raise VerifierError(
            f"there are no criteria to judge by ({type(error).__name__}: {error}). This verifier judges "
            "tasks of the environment tau2; choose another for this one."
        ) from error
    unknown = [kind for kind in found.basis if kind not in KINDS]
    if unknown:
        raise VerifierError(
            f"the task's reward is based on {unknown[0]!r}, and this verifier knows {', '.join(KINDS)}: "
            "all that code can decide."
        )
    return found


def _action(action: Json) -> Action:
    compared = action.get("compare_args")
    return Action(
        call=ToolCall(name=action["name"], arguments=action["arguments"]),
        compared=None if compared is None else tuple(compared),
    )
