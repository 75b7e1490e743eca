"""What a server's answer means to the run: a reply, a failure for now, or a refusal for good."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

from wer.errors import ModelError, ModelUnavailable, PromptTooLong, WerError
from wer.records import Json

REPLY_CAP_BYTES = 16 << 20

_FOR_NOW = frozenset({408, 409, 425, 429})
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_VLLM_TOO_LONG = "maximum context length is"  # vLLM gives no code of its own
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


async def read_json(response: aiohttp.ClientResponse, where: str, *, key: str = "") -> Json:
    """Read a body as JSON whatever its content type says; invalid UTF-8 is replaced.

    A body of an unsuccessful answer that is not JSON is given back as text.

    Args:
        key: Taken out wherever the server repeats it.

    Raises:
        ModelError: It is longer than 16 MiB, compression undone.
        ModelUnavailable: A successful answer that is not JSON.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > REPLY_CAP_BYTES:
            raise ModelError(
                f"{where} sent more than {REPLY_CAP_BYTES >> 20} MiB; a model's reply is far smaller"
            )
    text = body.decode("utf-8", "replace")
    if key and key in text:
        text = text.replace(key, "***")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if response.status != 200:
            return text
        said = response.headers.get("Content-Type", "no content type")
        raise ModelUnavailable(
            f"{where} sent no JSON ({said}): {text[:200]!r}", kind=_unread(text, said)
        ) from error


def failure(where: str, status: int, words: str, wire: Json, retry_after: str | None) -> WerError:
    """Make the error that an unsuccessful answer stands for.

    Args:
        words: What the server said, fit for the user's eyes.
        wire: The same as data.
        retry_after: The header, seconds or a date.
    """
    error = wire.get("error") if isinstance(wire, Mapping) else None
    code = str(error.get("code") or error.get("type") or "") if isinstance(error, Mapping) else ""
    said = f"{where} answered {status}: {words[:500]}"
    if code in _TOO_LONG or (status == 400 and _VLLM_TOO_LONG in words):
        return PromptTooLong(f"{said}. Shorten the skill, or use a model with a larger context.")
    if status == 429 and code in _SPENT:
        return ModelError(f"{said}. The account has no credit left.")
    if for_now(status) or status == 200:
        return ModelUnavailable(said, retry_after_s=seconds(retry_after), kind=_refusal(status))
    if status in {401, 403}:
        return ModelError(f"{said}. Check the API key and what it may use.")
    if status == 404:
        return ModelError(f"{said}. Check the model's name and the address.")
    return ModelError(said)


def for_now(status: int) -> bool:
    """Whether a server that answered so may answer otherwise when it is asked again."""
    return status in _FOR_NOW or status >= 500


def _unread(text: str, content_type: str) -> str:
    """What kind of fault an unreadable answer is."""
    if not text.strip():
        return "empty answer"
    return "malformed JSON" if "json" in content_type else "wrong content type"


def _refusal(status: int) -> str:
    return "error instead of an answer" if status == 200 else str(status)


def seconds(retry_after: str | None) -> float | None:
    """Read a Retry-After header: seconds or an HTTP date, at most ten minutes; None when unreadable."""
    if retry_after is None:
        return None
    try:
        wait_s = float(retry_after)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(wait_s, 0.0), 600.0) if wait_s == wait_s else None
