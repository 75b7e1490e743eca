"""What an update must stand before any agent reads it: sound scripts with passing tests, and no leak."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from wer.errors import SkillError
from wer.leaks import Private, sentence
from wer.records import Skill
from wer.scripts import check_tests, read_script
from wer_skiller.talking import Refusal

_TEST = re.compile(r"scripts/test_(\w+)\.py")


async def check_update(
    new: Skill,
    old: Skill,
    *,
    private: Private,
    scripts: bool,
    try_script: Callable[[str, str, str], Awaitable[str]],
) -> None:
    """Refuse an update that breaks a rule which the skill before it kept.

    Args:
        private: What of a success no skill may quote. The user's own words are another matter:
            see ``leak`` in the configuration.
        scripts: Whether helper scripts are allowed.
        try_script: As in `wer.contracts.OptimizerSetup`.

    Raises:
        Refusal: For the actor to read.
        SandboxError: The sandbox broke.
    """
    if new.scripts != old.scripts and not scripts:
        raise Refusal("helper scripts are not allowed here; edit SKILL.md alone")
    known = private.leaks(old)
    leaks = [leak for leak in private.leaks(new) if leak.source != "query" and leak not in known]
    if leaks:
        raise Refusal(f"the skill {sentence(leaks)}. Say how such values are found at run time.")
    for path in _changed(new, old):
        await _check_script(path, new, try_script)


def _changed(new: Skill, old: Skill) -> list[str]:
    """The scripts that are new, or whose source or tests are."""
    differing = {path for path, text in new.scripts.items() if old.scripts.get(path) != text}
    differing |= {path for path in old.scripts.keys() - new.scripts.keys() if _TEST.fullmatch(path)}
    return sorted({_TEST.sub(r"scripts/\1.py", path) for path in differing})


async def _check_script(
    path: str, skill: Skill, try_script: Callable[[str, str, str], Awaitable[str]]
) -> None:
    source = skill.scripts.get(path)
    if source is None:
        raise Refusal(f"there are tests of {path}, and no such script")
    try:
        script = read_script(path, source)
        place = f"scripts/test_{script.name}.py"
        tests = skill.scripts.get(place)
        if tests is None:
            raise Refusal(f"{path} has no tests. Create {place}.")
        check_tests(place, tests)
    except SkillError as error:
        raise Refusal(str(error)) from None
    problem = await try_script(script.name, source, tests)
    if problem:
        raise Refusal(f"the tests of {path} fail: {problem}")
