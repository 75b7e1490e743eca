"""What a user may write after ``vllm/``: a model, and how to serve it or where it is served."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qsl

from attrs import evolve, field, frozen
from attrs.validators import ge, le

from wer.errors import ConfigError
from wer.records import Json
from wer.tables import structure


@frozen(kw_only=True)
class VllmOptions:
    """How a model is served, written as a query: ``?context=16384&tensor=4``; 0 or empty is vLLM's own default.

    Attributes:
        context: Tokens of prompt and answer together; 0 is what the model was made for.
        tensor: GPUs that share one copy of the weights; 0 is all of the role's, divided by `data`.
        data: Copies of the weights, for more requests at a time.
        memory: Percent of each GPU's memory that vLLM may take; 0 is vLLM's own (about 90).
        revision: Branch, tag or commit of a model on the hub.
        parser: How the model writes tool calls, a name of vLLM's ``--tool-call-parser``;
            empty is chosen by the model's family.
        thinking: ``off`` or ``on`` for models whose chat template has the switch
            ``enable_thinking``; empty leaves it to the template.
        eager: 1 starts sooner and answers more slowly: nothing is compiled.
        start_s: Seconds until a server that has not answered is given up; a download counts.
    """

    context: int = field(default=0, validator=ge(0))
    tensor: int = field(default=0, validator=ge(0))
    data: int = field(default=1, validator=ge(1))
    memory: int = field(default=0, validator=[ge(0), le(99)])
    revision: str = ""
    parser: str = ""
    thinking: Literal["", "on", "off"] = ""
    eager: Literal[0, 1] = 0
    start_s: int = field(default=1800, validator=ge(1))


@frozen(kw_only=True)
class VllmName:
    """A model's name with its options.

    Attributes:
        model: A name on the hub or a folder.
        url: Where it is served already, up to and with ``/v1``; empty when WER serves it.
    """

    model: str
    url: str
    options: VllmOptions

    @classmethod
    def parse(cls, rest: str) -> VllmName:
        """Read ``MODEL[?option=value&..][@http://HOST:PORT/v1]``.

        Raises:
            ConfigError: No model, an unknown option, or one that a running server has for itself.
        """
        described, at, url = rest.partition("@http")
        model, _, query = described.partition("?")
        if not model:
            raise ConfigError(
                f"a model needs a name, got 'vllm/{rest}'. Write vllm/MODEL or vllm/MODEL@http://HOST:PORT/v1."
            )
        values: dict[str, Json] = {
            key: int(value) if value.isdecimal() and len(value) < 10 else value
            for key, value in parse_qsl(query, keep_blank_values=True)
        }
        if "revision" in values:
            values["revision"] = str(values["revision"])
        options = structure(VllmOptions, values, where=f"vllm/{model}")
        if at and options != evolve(VllmOptions(), thinking=options.thinking):
            raise ConfigError(
                f"vllm/{rest}: the server at http{url} runs already, so only ?thinking= can be said here. "
                "Give the other options to the server."
            )
        return cls(model=model, url=f"http{url}".rstrip("/") if at else "", options=options)
