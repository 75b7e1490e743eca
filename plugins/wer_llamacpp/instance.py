"""One copy of a model in llama.cpp, with one thread and a cache of its last prompt.

llama.cpp's own server code runs in this process. It insists on a loopback socket; a
random key that nobody is told keeps other users of the machine out of it.
"""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wer.errors import ModelError, PromptTooLong, WerError
from wer.records import Json

_BATCH_TOKENS = 512  # how much of a prompt is read between two looks at `stopped`
_PREFIX_CACHE_MIB = 256  # prompts of other domains, so that coming back to one is cheap


class Instance:
    """A loaded model. Not safe for two threads at once.

    Attributes:
        last_prompt: Text of the prompt whose beginning is in the cache.
    """

    def __init__(self, path: Path, context: int) -> None:
        llama = _llama()
        params = llama.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.cache_ram_mib = _PREFIX_CACHE_MIB
        params.ctx_shift = False  # refuse a prompt that does not fit; never cut it silently
        params.warmup = params.ui = False
        params.verbosity = -1
        params.n_threads_http = 1
        params.api_keys = [secrets.token_hex(32)]
        try:
            self._server = llama.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp could not load {path} with a context of {context} tokens ({error}). Check that "
                "it is a GGUF file of a chat model and that the memory suffices."
            ) from error
        self._context = context
        self.last_prompt = ""

    def ask(self, body: Mapping[str, Json], stopped: Callable[[], bool]) -> Json:
        """Answer one chat-completions request, as one whole answer.

        Args:
            stopped: Looked at before each token and each piece of the prompt; once it
                is true the answer is whatever was there.

        Raises:
            PromptTooLong: Prompt and context don't fit.
            ModelError: llama.cpp refused the request.
        """
        answer = _Answer()

        def take(chunk: Mapping[str, Json]) -> bool:
            answer.add(chunk)
            return stopped()

        request = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        try:
            self._server.handle_chat_completions(request, take)
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"llama.cpp refused the request: {error}") from error
        if answer.error:
            raise self._refusal(answer.error)
        return answer.whole()

    def _refusal(self, error: Mapping[str, Json]) -> WerError:
        if error.get("type") == "exceed_context_size_error":
            return PromptTooLong(
                f"a prompt of {error.get('n_prompt_tokens')} tokens does not fit the local model's context "
                f"of {self._context}. Shorten the skill, or ask for more: "
                f"local/NAME?context={2 * self._context}."
            )
        return ModelError(f"llama.cpp refused the request: {error.get('message', error)}")


class _Answer:
    """A streamed answer being put together again."""

    def __init__(self) -> None:
        self.error: Mapping[str, Json] = {}
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""
        self._usage: Json = {}

    def add(self, chunk: Mapping[str, Json]) -> None:
        self.error = chunk.get("error") or self.error
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            delta = choice.get("delta", {})
            self._text.append(delta.get("content") or "")
            for piece in delta.get("tool_calls") or ():
                call = self._calls.setdefault(piece.get("index", 0), {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.get("id") or ""
                call["name"] += piece.get("function", {}).get("name") or ""
                call["arguments"] += piece.get("function", {}).get("arguments") or ""

    def whole(self) -> Json:
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in self._calls.values()
        ]
        message = {"role": "assistant", "content": "".join(self._text), "tool_calls": calls}
        return {"choices": [{"finish_reason": self._finish, "message": message}], "usage": self._usage}


def _llama() -> Any:
    """Import xllamacpp, with idle threads that sleep rather than spin."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise WerError(
            "local models need xllamacpp, which is not installed. Run: pip install 'wer-skills[local]'"
        ) from error
