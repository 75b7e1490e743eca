"""What the site does beside showing the pages: it lists the decisions, and says where links to sources lead."""

import re
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)")


def on_config(config: Any) -> Any:
    """Put every decision into the navigation."""
    config.nav.append({"Decisions": [f"adr/{page.name}" for page in sorted((_DOCS / "adr").glob("*.md"))]})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave the path that a link out of the pages names, for a reader who has the sources beside them."""
    return _OUTSIDE.sub(lambda link: link[1] if link[2] in link[1] else f"{link[1]} (`{link[2]}`)", markdown)
