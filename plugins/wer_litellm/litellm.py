"""Models of any provider that litellm speaks to; imported at the first use, because it is slow to."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from wer.chat import reply_from_wire, schema_to_wire, to_wire, tools_to_wire
from wer.errors import ConfigError, ModelError, ModelUnavailable, PromptTooLong, WerError
from wer.records import Json, JsonObject, Message, Reply, Sampling, ToolSpec
from wer.redaction import hidden
from wer.serving.answers import for_now, seconds

_TIMEOUT_S = 600.0
_ONE_KEY = frozenset({"anthropic", "deepseek", "groq", "mistral", "openai", "openrouter", "xai"})
"""Providers that take their key from one variable, and from nowhere else."""


@define(kw_only=True)
class LitellmModel:
    """A `wer.contracts.Model` over ``litellm.acompletion``; keys come from litellm's own variables.

    Attributes:
        name: In litellm's spelling, for example ``anthropic/claude-sonnet-4-5``.
        url: The provider's address, or "" for its usual one.
    """

    name: str
    url: str = ""
    _litellm: Any = field(repr=False)

    @classmethod
    def named(cls, rest: str) -> LitellmModel:
        """Make the model of ``provider/name`` or ``provider/name@url``.

        Raises:
            WerError: litellm is not installed.
        """
        # Vertex models have an @ of their own, so only one before an address separates.
        name, _, url = rest.partition("@http")
        if not name:
            raise ConfigError(f"a model needs a name, got 'litellm/{rest}'. Write litellm/PROVIDER/NAME.")
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it asks the network
        try:
            litellm: Any = importlib.import_module("litellm")
        except ModuleNotFoundError as error:
            raise WerError(
                f"litellm/{name} needs litellm, which is not installed. "
                "Run: pip install 'wer-skills[litellm]'"
            ) from error
        litellm.suppress_debug_info = True
        litellm.drop_params = False
        return cls(name=name, url=f"http{url}" if url else "", litellm=litellm)

    @property
    def identity(self) -> JsonObject:
        """Name and address; whatever version a provider serves under the name is not known here."""
        return {"provider": "litellm", "name": self.name, "url": self.url}

    def check(self) -> None:
        """Refuse a model whose one key isn't there; other providers may find theirs where nobody looks here.

        Raises:
            ModelError: With the name of the key's variable.
        """
        if self.url or self.name.partition("/")[0] not in _ONE_KEY:
            return
        missing = self._litellm.validate_environment(self.name)["missing_keys"]
        if missing:
            raise ModelError(f"no API key for litellm/{self.name}. Set {missing[0]} in the environment.")

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once; see `wer.contracts.Model`. The price is litellm's own cost map's."""
        try:
            answer = await self._litellm.acompletion(**self._request(messages, tools, sampling))
        except Exception as error:
            raise _failure(self.name, error, self._litellm.exceptions) from error
        return reply_from_wire(answer.model_dump(), usd=self._usd(answer))

    async def close(self) -> None:
        """Nothing to close: litellm keeps its clients for the whole process."""

    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> dict[str, Json]:
        request: dict[str, Json] = {
            "model": self.name,
            "messages": [to_wire(message) for message in messages],
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "num_retries": 0,
            "max_retries": 0,
            "timeout": _TIMEOUT_S,
        }
        supported = self._litellm.get_supported_openai_params(model=self.name) or ()
        if "seed" in supported:
            request["seed"] = sampling.seed
        if sampling.top_k:
            request["top_k"] = sampling.top_k
        if sampling.top_p != 1.0:
            request["top_p"] = sampling.top_p
        if tools:
            request["tools"] = tools_to_wire(tools)
        if sampling.json_schema is not None:
            request["response_format"] = schema_to_wire(sampling.json_schema)
        if self.url:
            request["api_base"] = self.url
        return request

    def _usd(self, answer: Any) -> float | None:
        """Price by the cost map, or None for a model that it does not know."""
        try:
            return float(self._litellm.completion_cost(completion_response=answer, model=self.name))
        except Exception:  # the map's way to say "unknown" differs from version to version
            return None


def _failure(name: str, error: Exception, kinds: Any) -> WerError:
    """Sort litellm's exceptions by whether another try can help."""
    said = f"litellm/{name}: {type(error).__name__}: {hidden(str(error))[:500]}"
    if isinstance(error, kinds.ContextWindowExceededError):
        return PromptTooLong(f"{said}. Shorten the skill, or use a model with a larger context.")
    status = getattr(error, "status_code", None)
    passing = (kinds.Timeout, kinds.APIConnectionError, kinds.RateLimitError, TimeoutError, OSError)
    if isinstance(error, passing) or (isinstance(status, int) and for_now(status)):
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        kind = str(status or type(error).__name__)
        return ModelUnavailable(said, retry_after_s=seconds(headers.get("retry-after")), kind=kind)
    if isinstance(error, kinds.AuthenticationError):
        return ModelError(f"{said}. Set the provider's API key in the environment.")
    return ModelError(said)
