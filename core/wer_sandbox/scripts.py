"""Helper scripts of a skill: source that a model wrote, run in a confined episode and nowhere else.

Whatever a script does wrong is answered as data. What no answer can come of (it kills its own
process, or sleeps for ever) ends its episode, which serves one call; the host says so.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, ClassVar

from wer_sandbox.limits import CPU_LIMIT_S, cpu_limit
from wer_sandbox.signatures import UnfitError, fitted

TEXT_LIMIT = 20_000
"""Characters of one result: a helper computes, it does not fill the agent's context."""
_TESTS = "tests"


class Scripts:
    """Runs one script's function, or its tests."""

    exposed: ClassVar[tuple[str, ...]] = ("call", "test")

    def call(self, source: str, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a script's function.

        Returns:
            ``text``: what it returned, text as it is and anything else as JSON; or what went wrong,
            with ``ok`` False.
        """

        def work() -> str:
            tool = getattr(_imported("script", source), function)
            result = tool(**fitted(tool, arguments))
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

        return _answered(work)

    def test(self, name: str, source: str, tests: str) -> dict[str, Any]:
        """Run a script's tests, lines that assert and that find the script under its name.

        Returns:
            ``text``: empty, or what went wrong, with ``ok`` False.
        """

        def work() -> str:
            module = _imported(name, source)
            exec(compile(tests, _TESTS, "exec"), {**vars(module), "__name__": _TESTS})  # noqa: S102 - confined
            return ""

        answer = _answered(work)
        return answer if answer["ok"] else {**answer, "text": answer["text"] + _place(tests, answer["line"])}


def scripts() -> Scripts:
    """Nothing has to be loaded."""
    return Scripts()


def _imported(name: str, source: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))  # noqa: S102 - this process is confined for it
    return module


def _answered(work: Callable[[], str]) -> dict[str, Any]:
    _end_after_cpu_limit()
    try:
        with cpu_limit():
            text = work()
    except UnfitError as error:
        return _failed(str(error))
    except BaseException as error:
        return _failed(f"{type(error).__name__}: {_said(error)}", error)
    if len(text) > TEXT_LIMIT:
        return _failed(f"the result has {len(text)} characters, and at most {TEXT_LIMIT} are passed on")
    return {"text": text, "ok": True, "line": 0}


def _failed(why: str, error: BaseException | None = None) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    lines = [frame.lineno or 0 for frame in frames if frame.filename == _TESTS]
    return {"text": f"Error: {why}", "ok": False, "line": lines[-1] if lines else 0}


def _said(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        return str(error)[:2000]
    return "unprintable"


def _place(tests: str, line: int) -> str:
    lines = tests.splitlines()
    return f" in line {line} of the tests: {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""


def _end_after_cpu_limit() -> None:
    """Have the kernel end a script that swallows the interruption of `cpu_limit`."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime + CPU_LIMIT_S) + 1
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
