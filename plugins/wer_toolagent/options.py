"""What a user may set about the tool agent."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen
from attrs.validators import ge, gt, in_, le

from wer.records import JsonObject, Sampling


@frozen(kw_only=True)
class ToolAgentOptions:
    """The table ``[executor_options]``.

    Attributes:
        mode: ``native``: the model's own tool calls, for API models. ``step``: one
            call a reply, constrained to the tools' schemas. ``plan``: all calls of
            a turn in one constrained reply, which ends the turn: cheapest, and
            best for models of about a billion parameters. The last two need a
            server that constrains its output to a JSON schema of any form
            (llama.cpp, vLLM).
        temperature: 0 is greedy; then rollouts differ little or not at all.
        top_k: 0 is no limit.
        max_tokens: Of one reply. A longer reply is cut by the server and judged as it is.
    """

    mode: Literal["native", "step", "plan"] = field(
        default="native", validator=in_(("native", "step", "plan"))
    )
    temperature: float = field(default=0.7, validator=[ge(0.0), le(2.0)])
    top_k: int = field(default=0, validator=ge(0))
    top_p: float = field(default=1.0, validator=[gt(0.0), le(1.0)])
    max_tokens: int = field(default=1024, validator=ge(1))

    def sampling(self, seed: int, schema: JsonObject | None) -> Sampling:
        """How one reply is sampled."""
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            seed=seed,
            json_schema=schema,
        )
