"""What the agent is told before the user speaks, with the skill last.

All that does not change between the tasks of a domain comes first, so that a server's
prompt cache holds it; and a prompt without a skill is a beginning of every prompt with one.
"""

from __future__ import annotations

from wer.records import Skill
from wer.skills import skill_prompt


def system_prompt(instructions: str, documentation: str, context: str, skill: Skill) -> str:
    """Join the parts that are there; the empty skill leaves no trace."""
    parts = (instructions, documentation, context, skill_prompt(skill))
    return "\n\n".join(part for part in parts if part)
