"""Skills: as documents in prompts, as ``SKILL.md`` folders on disk, and cleaned of hostile text."""

from wer.skills.documents import notes, parse_document, render_document, skill_prompt, slug, workflow
from wer.skills.files import load_skill, parse_skill_md, provenance, render_skill_md, save_skill

__all__ = [
    "load_skill",
    "notes",
    "parse_document",
    "parse_skill_md",
    "provenance",
    "render_document",
    "render_skill_md",
    "save_skill",
    "skill_prompt",
    "slug",
    "workflow",
]
