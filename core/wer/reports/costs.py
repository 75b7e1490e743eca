"""What roles cost, in words: what nobody knows is unknown, and never zero."""

from __future__ import annotations

from wer.records import Usage


def count(number: int, usage: Usage) -> str:
    """One figure of a usage: ``1,234``; with rollouts whose agent didn't say, what is known of the others."""
    if not usage.untold:
        return f"{number:,}"
    return f"{number:,} + unknown" if number else "unknown"


def tokens(usage: Usage) -> str:
    """Prompt and completion tokens together, likewise."""
    return count(usage.prompt_tokens + usage.completion_tokens, usage)


def thousands(usage: Usage) -> str:
    """Likewise in thousands, with the unit."""
    known = (usage.prompt_tokens + usage.completion_tokens) / 1000
    if not usage.untold:
        return f"{known:.0f} k tokens"
    told = f"{known:.0f} k tokens and " if known else ""
    return f"{told}the unknown tokens of {usage.untold} rollouts whose agent didn't say"


def usd(usage: Usage, digits: int = 4) -> str:
    """US dollars."""
    return "unknown" if usage.usd is None else f"{usage.usd:.{digits}f}"
