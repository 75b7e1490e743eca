"""Asks the server once for what the host has to know: its words to an agent and its tools, as JSON.

The files of the server arrive on the standard input. It is confined as in an episode, and nothing of
it is imported before.
"""

import json
import sys
import tempfile
from pathlib import Path

from wer_mcp_domain import World
from wer_mcp_domain.program import from_environ
from wer_sandbox import companion
from wer_sandbox.confine import Confinement

_MEMORY_BYTES = 512 << 20
_DISK_BYTES = 16 << 20


def main() -> None:
    """Start the server, ask, and print the answer."""
    files = json.load(sys.stdin)
    confinement = Confinement()
    confinement.require_companions()
    world = World(from_environ())
    folder = companion.make_folder(Path(tempfile.gettempdir()))
    try:
        companion.start(world, confinement, folder, disk_bytes=_DISK_BYTES, memory_bytes=_MEMORY_BYTES)
        hello = world.open(files)
        json.dump({"instructions": hello.get("instructions") or "", "tools": world.tools()}, sys.stdout)
    finally:
        companion.remove_folder(folder)


main()
