"""``python -m wer_sandbox --domain module:factory --connect SOCKET``: start one worker.

The one-time key of the connection arrives in ``WER_SANDBOX_KEY``, since other users can
read a command line.
"""

from __future__ import annotations

import argparse
import os

from wer_sandbox.worker import run


def main() -> None:
    """Read the command line and serve until the host hangs up."""
    parser = argparse.ArgumentParser(prog="wer_sandbox", description=__doc__)
    parser.add_argument("--domain", required=True, help="module:factory")
    parser.add_argument("--connect", required=True, help="the host's Unix socket")
    parser.add_argument("--episode-memory", type=int, default=512 << 20, help="bytes an episode may add")
    parser.add_argument("--disk", type=int, default=0, help="bytes that a companion may write")
    parser.add_argument("--die-with-parent", type=int, default=0, help="pid of the host, if a child of it")
    given = parser.parse_args()
    run(
        domain=given.domain,
        socket_path=given.connect,
        key=os.environ.pop("WER_SANDBOX_KEY"),
        episode_memory_bytes=given.episode_memory,
        disk_bytes=given.disk,
        host_pid=given.die_with_parent,
    )


if __name__ == "__main__":
    main()
