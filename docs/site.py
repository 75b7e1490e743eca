"""What the site does beside showing the pages: it lists decisions, tells where links to sources lead, finds calls."""

import re
from pathlib import Path
from typing import Any

import griffe

_DOCS = Path(__file__).parent
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)")


def on_config(config: Any) -> Any:
    """Put every decision into the navigation."""
    config.nav.append({"Decisions": [f"adr/{page.name}" for page in sorted((_DOCS / "adr").glob("*.md"))]})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave the path that a link out of the pages names, for a reader who has the sources beside them."""
    return _OUTSIDE.sub(lambda link: link[1] if link[2] in link[1] else f"{link[1]} (`{link[2]}`)", markdown)


class Calls(griffe.Extension):
    """Show `wer.refine` and its siblings, which are made while WER is imported, as what they are made from."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give the calls their names."""
        if pkg.name != "wer":
            return
        calls = pkg["api.calls"]
        for name in ("refine", "evaluate", "compare", "train"):
            call = calls[f"_{name}"]
            call.name, call.returns = name, "Run"
            calls.set_member(name, call)
