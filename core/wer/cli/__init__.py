"""The command line: parses, opens, calls the loop, prints. Nothing is decided here."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from cyclopts import App
from rich.console import Console

from wer.errors import WerError

_HELP = """Write, Execute, Refine: make the written skill of a tool-using agent better, from verified execution.

    Begin with `wer demo`, ten seconds of a recorded run, and `wer init` for tasks of your own. `wer run --env bfcl
    --backend grpo --preset cpu` is the whole loop on this machine, without a key or a GPU, in a quarter of an hour;
    `wer doctor` says when something is missing."""

COMMANDS = {
    "init": ("wer.cli.init:init", "Write a start for tasks and a check of your own."),
    "demo": ("wer.cli.demo:demo", "Show a recorded run in ten seconds: nothing is downloaded."),
    "run": ("wer.cli.run:run", "Make better skills and measure them: the whole protocol."),
    "refine": ("wer.cli.refine:refine", "Revise a skill from what happens on the training tasks."),
    "eval": ("wer.cli.evaluate:evaluate", "Measure Pass@1 of a skill beside no skill."),
    "bench": ("wer.cli.bench:bench", "Compare methods from one start, at equal cost."),
    "compare": ("wer.cli.compare:compare", "Compare skills on the same tasks and seeds."),
    "merge": ("wer.cli.merge:merge", "Merge several skills of one family into one."),
    "status": ("wer.cli.status:status", "Say what a run has done so far, from another terminal."),
    "show": ("wer.cli.show:show", "Show a run's best skill, its diff, its table, its evidence."),
    "view": ("wer.cli.view:view", "Look at a run in the browser, live."),
    "report": ("wer.cli.report:report", "Write a run into one HTML file."),
    "verify": ("wer.cli.verify:verify", "Judge a run's stored rollouts again and compare."),
    "export": ("wer.cli.export:export", "Export a run's skills, experience or trained writer."),
    "plugin": ("wer.cli.plugin:app", "List, check and begin plugins: environments, verifiers, ..."),
    "models": ("wer.cli.models:app", "List and download local models."),
    "doctor": ("wer.cli.doctor:doctor", "Say what works here and what to do about the rest."),
}


def _app(chosen: str) -> App:
    """Import the chosen command, whose docstring is its help; of the others only a line is needed."""
    app = App(
        name="wer",
        help=_HELP,
        help_format="markdown",
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,  # `main` knows what ended the run
    )
    for name, (target, line) in COMMANDS.items():
        module, _, attribute = target.partition(":")
        if name == chosen:
            app.command(getattr(import_module(module), attribute), name=name)
        else:
            app.command(target, name=name, help=line)
    return app


def main(words: Sequence[str] | None = None) -> None:
    """Run the command; a `WerError` is a message and exit status 2, Ctrl-C is 130, SIGTERM 143.

    Args:
        words: The command line without the program's name; None is ``sys.argv``.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    words = sys.argv[1:] if words is None else words
    # Read when torch is first imported: threads that spin while they wait slow everything else down.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    ended_by = [signal.SIGINT]
    try:
        with _ending_as_ctrl_c(ended_by):
            _app(words[0] if words else "")(words)
    except WerError as error:
        _complain(console, f"wer: {error}")
        sys.exit(2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        _complain(console, f"wer: {error}. Check the path, permissions and space.")
        sys.exit(2)
    except Exception:  # a defect, of ours or of a plugin: never the 1 by which a gate says "worse"
        traceback.print_exc()
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        console.print(f"wer: interrupted{f': {interrupt}' if interrupt.args else ''}", markup=False)
        sys.exit(128 + ended_by[-1])


def _complain(console: Console, message: str) -> None:
    from wer.redaction import hidden  # here, because `wer --help` has nothing to hide
    from wer.skills.cleaning import plain

    console.print(plain(hidden(message)), style="red", markup=False)


@contextmanager
def _ending_as_ctrl_c(heard: list[signal.Signals]) -> Iterator[None]:
    """Have what a scheduler or a closed terminal sends close everything and say so, as Ctrl-C does.

    Whoever calls `main` in a process of his own gets his handlers and his mask back: what he starts
    afterwards would inherit them.

    Args:
        heard: Gets the signal that ended the run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        _listen(heard)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _listen(heard: list[signal.Signals]) -> None:

    def end(number: int, _: FrameType | None) -> None:
        heard.append(signal.Signals(number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A background job of a script: still deaf to Ctrl-C, but by a mask, which `end` can lift.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # nohup
            signal.signal(ending, end)
