"""Which role may use which GPUs of this machine: ``writer=0-3,executor=4-7``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wer.errors import ConfigError
from wer.tables import nearest

ROLES = ("writer", "executor", "seed_writer", "merge_writer", "user_model")
"""The keys of ``[gpus]``, named like the settings of their models."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def split_assignments(text: str) -> dict[str, str]:
    """Read what ``--gpus`` says as the table ``[gpus]``; a part without a role belongs to the one before.

    Raises:
        ConfigError: The text does not begin with a role, or names one twice.
    """
    table: dict[str, str] = {}
    role = ""
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, numbers = part.partition("=")
        if equals and name.strip() in table:
            raise ConfigError(
                f"--gpus {text!r} names {name.strip()!r} twice: write its GPUs together, as 0-1,4."
            )
        if equals:
            role = name.strip()
            table[role] = numbers.strip()
        elif role:
            table[role] += f",{part}"
        else:
            raise ConfigError(f"--gpus {text!r} gives GPUs to nobody. Write it like writer=0-3,executor=4-7.")
    if not table:
        raise ConfigError("--gpus is empty. Write it like writer=0-3,executor=4-7, or leave it out.")
    return table


def assigned(table: Mapping[str, str]) -> Mapping[str, tuple[int, ...]]:
    """Read the table ``[gpus]``: the GPUs of each role, by the numbers that ``nvidia-smi`` lists.

    Args:
        table: Numbers and ranges by role: ``{"writer": "0-3,6", "executor": "4-5"}``. An
            empty text gives a role none of its own, in spite of a preset.

    Raises:
        ValueError: An unknown role, something that is not a range, or a GPU given twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for role, text in table.items():
        if role not in ROLES:
            raise ValueError(
                f"gpus: no role named {role!r}{nearest(role, ROLES) or '.'} Roles with GPUs: {', '.join(ROLES)}."
            )
        if not text:
            continue
        numbers = _numbers(role, text)
        for other, taken in found.items():
            if shared := sorted(set(numbers) & set(taken)):
                raise ValueError(
                    f"gpus: {other} and {role} both have GPU {', '.join(map(str, shared))}: each needs its memory "
                    "for itself, so give every GPU to one role."
                )
        found[role] = numbers
    return found


def check_present(table: Mapping[str, str], present: int) -> Sequence[str]:
    """Say which roles were given GPUs that a machine with so many does not have, a line each."""
    problems = []
    for role, numbers in assigned(table).items():
        if absent := [number for number in numbers if number >= present]:
            there = f"GPUs 0-{present - 1}" if present > 1 else f"{present} GPU" if present else "no GPU"
            problems.append(
                f"gpus.{role} names GPU {', '.join(map(str, absent))} and this machine has {there}. "
                "Give it fewer with --gpus."
            )
    return problems


def _numbers(role: str, text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last > 1023:
            raise ValueError(
                f"gpus.{role} is {text!r}: expected numbers and ranges from 0, such as 0-3 or 0,2,5-7."
            )
        numbers += range(first, last + 1)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"gpus.{role} is {text!r}, which names a GPU twice.")
    return tuple(numbers)
