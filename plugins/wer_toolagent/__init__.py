"""Entry module of the tool agent, WER's own frozen executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Executor, Model
from wer.hookspecs import Options, hookimpl


@hookimpl
def wer_executors() -> Mapping[str, Callable[[Model, Options], Executor]]:
    """Offer ``--agent toolagent``, the default."""
    return {"toolagent": _toolagent}


def _toolagent(model: Model, options: Options) -> Executor:
    from wer.configuration import structure
    from wer_toolagent.agent import ToolAgent
    from wer_toolagent.options import ToolAgentOptions

    return ToolAgent(model=model, options=structure(ToolAgentOptions, options, where="executor_options"))
