"""``wer view``: a run in the browser, live while it is at work."""

from __future__ import annotations

import os
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import folders
from wer.cli.options import Runs, Whole
from wer.errors import WerError
from wer.extras import remedy


def view(
    run: str | None = None,
    *,
    port: Annotated[Whole, Parameter(help="Of 127.0.0.1. Default: any that is free.")] = 0,
    open_: Annotated[
        bool,
        Parameter(name="--open", help="Open the page in the browser of this machine.", negative="--no-open"),
    ] = True,
    runs: Runs = Path("runs"),
) -> None:
    """Look at a run in the browser: its progress live, its revisions, matched pairs, skills, rewards and cost.

    The page is served on this machine alone, to whoever has the printed address. Nothing is changed: a run can be
    watched while it is at work. From another machine: ``ssh -L 8000:127.0.0.1:8000 HOST``, with ``--port 8000``.

    Args:
        run: Run id or folder. Default: the newest, and a list of all.
    """
    chosen = folders.find(runs, run)
    try:
        from wer.viewing.serving import Viewer, bound, new_token, serve
    except ModuleNotFoundError as error:
        missing = (error.name or "starlette").partition(".")[0]
        raise WerError(
            f"wer view needs {missing!r}, which is not installed. {remedy(missing, 'wer-skills')} "
            "wer report writes the same into a file, without it."
        ) from error
    viewer = Viewer(
        token=new_token(),
        first=chosen.name,
        runs=(lambda: folders.below(runs)) if run is None else (lambda: [chosen]),
    )
    listening = bound(port)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token={viewer.token}"

    def began() -> None:
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"{address}\nthis shows {chosen}; Ctrl-C ends it", markup=False)
        if open_:
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    with suppress(KeyboardInterrupt):  # the one way to end it, and so no failure
        serve(viewer, listening, began=began)


def _open(address: str) -> None:
    """Open the page in a browser with windows; one of the terminal can't show it, and would take the terminal."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        of_terminal = type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
        if not of_terminal:
            browser.open(address)
