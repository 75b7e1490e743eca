"""Runs a program of the user's to its end, with a keeper beside it so that no process of it is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from wer import keeper
from wer.errors import InfrastructureError
from wer.redaction import HIDDEN, redacted
from wer.together import together

MOST_BYTES = 1 << 20
"""Of an answer on standard output."""

_GRACE_S = 2.0
_LAST_WORDS = 2000
_SHORTEST_SECRET = 8
_CHUNK = 1 << 16


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    name: str,
    secrets: Sequence[str] = (),
) -> str:
    """Run a command in a folder, without a shell; give what it wrote on standard output.

    Whatever it has started is gone when this returns or is cancelled, and if WER itself is killed.

    Args:
        environ: In addition to WER's own environment.
        name: What messages call it.
        secrets: Never repeated in an error.

    Raises:
        InfrastructureError: It can't be started, ended with another status than 0, or wrote more
            than `MOST_BYTES`.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", keeper.__file__, str(_GRACE_S), *command),
        cwd=folder,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    words: deque[bytes] = deque(maxlen=2)
    try:
        answer, _ = await together([_bounded(process.stdout, name), _last(process.stderr, words)])
        status = await process.wait()
    finally:
        process.stdin.close()
        await together([_last(process.stdout, deque(maxlen=1)), _last(process.stderr, words)])
        await process.wait()
    if status != 0:
        said = _presentable(b"".join(words).decode("utf-8", "replace"), secrets)[-_LAST_WORDS:]
        how = f"was killed by signal {status - 128}" if status > 128 else f"ended with status {status}"
        raise InfrastructureError(
            f"{name} {how}; expected 0 and its answer on standard output. It said:\n{said or '(nothing)'}"
        )
    assert answer is not None
    return answer.decode("utf-8", "replace")


async def _bounded(stream: asyncio.StreamReader, name: str) -> bytes | None:
    """Read to the end.

    Raises:
        InfrastructureError: There is too much.
    """
    read = bytearray()
    while chunk := await stream.read(_CHUNK):
        read += chunk
        if len(read) > MOST_BYTES:
            raise InfrastructureError(
                f"{name} wrote more than {MOST_BYTES >> 20} MiB on standard output, which is for its "
                "answer alone. Let it log on standard error."
            )
    return bytes(read)


async def _last(stream: asyncio.StreamReader, words: deque[bytes]) -> bytes | None:
    """Read to the end and keep the last of it."""
    while chunk := await stream.read(_CHUNK):
        words.append(chunk)
    return None


def _presentable(text: str, secrets: Sequence[str]) -> str:
    """The end of what a program said, without the keys that it may repeat."""
    keys = [value for name, value in os.environ.items() if redacted({name: value})[name] == HIDDEN]
    for secret in sorted({*keys, *secrets}, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    with contextlib.suppress(ValueError):
        text = str(redacted(text))
    return re.sub(r"[^\n\t\x20-\x7e\x80-\U0010ffff]", "", text).strip()
