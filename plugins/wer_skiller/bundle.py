"""A skill as a bundle of files, and the four edits of it: exact, or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from attrs import evolve, frozen

from wer.errors import SkillError
from wer.records import Skill
from wer.skills import parse_document, parse_skill_md, render_document, render_skill_md
from wer.skills.cleaning import harmless, plain
from wer_skiller.talking import Refusal

SKILL_MD = "SKILL.md"
Operation = Literal["insert", "replace", "create", "delete"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@frozen(kw_only=True)
class Edit:
    """One bounded edit.

    Attributes:
        path: ``SKILL.md``, or ``scripts/NAME.py``.
        anchor: A passage that occurs in the file exactly once; unused by ``create``. Empty with
            ``delete``: the whole file.
        text: What is inserted below the anchor's last line, takes its place, or is the new file.
    """

    op: Operation
    path: str
    anchor: str
    text: str

    @property
    def summary(self) -> str:
        """In a line, for the memory."""
        shown = " ".join((self.anchor if self.op == "delete" else self.text).split())
        return f"{self.op} in {self.path}: {shown[:160]}"


@frozen(kw_only=True)
class Bundle:
    """All files of a skill by their path.

    Attributes:
        skill: What the files are of; its text stays byte for byte where nothing is edited.
    """

    skill: Skill
    files: Mapping[str, str]

    @classmethod
    def of(cls, skill: Skill) -> Bundle:
        """The files of a skill; the empty skill has no ``SKILL.md`` yet."""
        text = {} if skill.empty else {SKILL_MD: render_skill_md(skill)}
        return cls(skill=skill, files={**text, **skill.scripts})

    def told(self) -> str:
        """Every file, verbatim, as a block of a prompt."""
        files = [
            f"## File {path}\n```\n{harmless(text).rstrip()}\n```"
            for path, text in sorted(self.files.items())
        ]
        return "\n".join(["# Skill bundle in force", *(files or ["(empty: create SKILL.md)"])])

    def edited(self, edits: Sequence[Edit]) -> Skill:
        """Apply all edits in their order, and give the complete skill.

        Raises:
            Refusal: With a line for every edit that does not apply: then none is applied; or the
                result is no skill.
        """
        files = dict(self.files)
        problems = []
        for number, edit in enumerate(edits, 1):
            try:
                _APPLY[edit.op](files, edit)
            except Refusal as problem:
                problems.append(f"edit {number} ({edit.op} in {edit.path}): {problem}")
        if problems:
            raise Refusal("\n".join(problems))
        return self._skill(files)

    def _skill(self, files: dict[str, str]) -> Skill:
        text = files.pop(SKILL_MD, "")
        if text == self.files.get(SKILL_MD, ""):
            return evolve(self.skill, scripts=files)
        try:
            skill = evolve(parse_skill_md(text), scripts=files)
            parse_document(render_document(skill), parent=skill)
        except SkillError as error:
            raise Refusal(str(error)) from None
        return skill


def _insert(files: dict[str, str], edit: Edit) -> None:
    text, start = _found(files, edit)
    end = text.find("\n", start + len(edit.anchor.rstrip("\n")))
    end = len(text) if end < 0 else end
    files[edit.path] = f"{text[:end]}\n{_clean(edit).strip(chr(10))}{text[end:]}"


def _replace(files: dict[str, str], edit: Edit) -> None:
    text, start = _found(files, edit)
    files[edit.path] = text[:start] + _clean(edit) + text[start + len(edit.anchor) :]


def _delete(files: dict[str, str], edit: Edit) -> None:
    if not edit.anchor and edit.path in files and edit.path != SKILL_MD:
        del files[edit.path]
        return
    text, start = _found(files, edit)
    before, after = text[:start], text[start + len(edit.anchor) :]
    whole_lines = before.endswith("\n") and after.startswith("\n")
    files[edit.path] = before + (after[1:] if whole_lines else after)


def _create(files: dict[str, str], edit: Edit) -> None:
    if edit.path in files:
        raise Refusal("the file is there already; use insert or replace")
    if not edit.text.strip():
        raise Refusal("the text is empty")
    files[edit.path] = _clean(edit)


_APPLY: Mapping[Operation, Callable[[dict[str, str], Edit], None]] = {
    "insert": _insert,
    "replace": _replace,
    "create": _create,
    "delete": _delete,
}


def _found(files: Mapping[str, str], edit: Edit) -> tuple[str, int]:
    """The file, and where its only passage of that anchor begins."""
    text = files.get(edit.path)
    if text is None:
        raise Refusal(f"there is no such file (there are: {', '.join(sorted(files)) or 'none'})")
    if not edit.anchor.strip():
        raise Refusal("the anchor is empty")
    start = text.find(edit.anchor)
    if start < 0:
        raise Refusal("the anchor does not occur in the file; copy it exactly")
    if text.find(edit.anchor, start + 1) >= 0:
        raise Refusal("the anchor occurs more than once; take a longer one")
    return text, start


def _clean(edit: Edit) -> str:
    """What a model wrote is hostile."""
    return harmless(plain(edit.text)) if edit.path == SKILL_MD else plain(edit.text)
