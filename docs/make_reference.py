"""Writes ``docs/reference.md`` from the configuration's own records, so that it can't drift, and requotes the rest."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from wer import measures
from wer.configuration import RunConfig, presets
from wer_agents.commands import CommandOptions
from wer_agents.endpoints import EndpointOptions
from wer_agents.options import Options as AgentOptions
from wer_bfcl.environment import BfclOptions
from wer_gepa.options import Options as GepaOptions
from wer_grpo.options import GrpoOptions
from wer_mcp.options import McpOptions
from wer_openrlhf.options import OpenRlhfOptions
from wer_ray.options import RayOptions
from wer_skill_r1.options import Options as SkillR1Options
from wer_skiller.options import Options as SkillerOptions
from wer_tau2.options import Tau2Options
from wer_tensorboard.options import TensorBoardOptions
from wer_toolagent.options import ToolAgentOptions
from wer_trace2skill.options import Options as Trace2SkillOptions
from wer_wandb.options import WandbOptions

_PLUGINS = {
    "executor_options": ToolAgentOptions,
    "runner_options": RayOptions,
    "environment.bfcl": BfclOptions,
    "environment.mcp": McpOptions,
    "environment.tau2": Tau2Options,
    "optimizer.gepa": GepaOptions,
    "optimizer.grpo": GrpoOptions,
    "optimizer.openrlhf": OpenRlhfOptions,
    "optimizer.skill_r1": SkillR1Options,
    "optimizer.skiller": SkillerOptions,
    "optimizer.trace2skill": Trace2SkillOptions,
    "tracking.tensorboard": TensorBoardOptions,
    "tracking.wandb": WandbOptions,
}
_AGENTS = {"a function": AgentOptions, "a program": CommandOptions, "an endpoint": EndpointOptions}
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def reference() -> str:
    """Give the whole page."""
    return "\n".join(_page()) + "\n"


def metrics() -> str:
    """Give ``docs/metrics.md``, the page of every figure that WER keeps of training."""
    return "\n".join(_metrics()) + "\n"


def _metrics() -> Iterator[str]:
    yield "# Figures of training\n"
    yield "Made from `wer.measures` by `docs/make_reference.py`. Every backend that trains records these at each update"
    yield "step (one batch of groups), in the run's store; `wer show` prints the newest, `report.md` has all, and"
    yield "`wer export --format metrics` writes them as jsonl. Shares are in 0..1.\n"
    yield "With `--track tensorboard` or `--track wandb` they appear as `train/NAME` when the step is made; the axis"
    yield "counts update steps over all phases. Whole phases are `phase/NAME`, described by the first table and"
    yield "`phase/retained`, the candidates that the next phase starts from. Pass@1 is"
    yield "`evaluation/CONDITION/DOMAIN/pass_1`, with the ends of its 95 % interval, `low` and `high`. A tracker that"
    yield "fails is told of once and left alone: the store has everything."
    yield from _measures("The groups", measures.OF_GROUPS)
    yield from _measures("The update, by the backend", measures.OF_UPDATE)
    yield from _measures("The work", measures.OF_WORK)
    yield from _measures("Of some backends", measures.OF_SOME)
    yield "\n## Rows that lack something\n"
    yield "A process that is killed between a checkpoint and the trainer's word of that step takes the figures of the"
    yield "update and of the clock with it. Such a step gets its row at the end of the phase, after a resume, with the"
    yield "first table alone, which the stored candidates give. A step that a resumed trainer makes again, from an old"
    yield "checkpoint and on the same candidates, is recorded again: its rollouts are then 0.\n"
    yield "`entropy` is in no row where `optimizer.openrlhf.log_entropy` is false, as it is in the presets `paper` and"
    yield "`paper-open`: OpenRLHF would hold 8 bytes more for each token of a sequence and word of the vocabulary,"
    yield "28 GB at the paper's lengths, which a GPU of 80 GB has not ([memory](openrlhf.md#memory))."


def _measures(heading: str, named: Mapping[str, str]) -> Iterator[str]:
    yield f"\n## {heading}\n"
    yield "| name | meaning |"
    yield "|---|---|"
    for name, meaning in named.items():
        yield f"| `{name}` | {meaning} |"


def _page() -> Iterator[str]:
    yield "# Configuration\n"
    yield "Made from the code by `docs/make_reference.py`. Every key can stand in `wer.toml` or behind `--set`;"
    yield f"presets: {', '.join(f'`{name}`' for name in presets())}.\n"
    attrs.resolve_types(RunConfig)
    yield from _table(RunConfig, "")
    for field in attrs.fields(RunConfig):
        if attrs.has(field.type):
            yield f"\n## `[{field.name}]`\n"
            yield from _table(field.type, f"{field.name}.")
    for heading, cls in _PLUGINS.items():
        yield f"\n## `[{heading}]`, of a shipped plugin\n"
        yield from _table(cls, f"{heading}.")
    for kind, cls in _AGENTS.items():
        yield f"\n## `[executor_options]`, of an agent of your own that is {kind}\n"
        yield from _table(cls, "executor_options.")


def _table(cls: type, prefix: str) -> Iterator[str]:
    attrs.resolve_types(cls)
    docs = (inspect.cleandoc(each.__doc__ or "") for each in cls.__mro__ if attrs.has(each))
    meanings = dict(_ATTRIBUTE.findall("\n\n".join(docs)))
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for field in attrs.fields(cls):
        if attrs.has(field.type):
            continue
        default = "{}" if isinstance(field.default, attrs.Factory) else _toml(field.default)
        meaning = " ".join(meanings.get(field.name, "").split())
        yield f"| `{prefix}{field.name}` | `{default}` | {meaning} |"


def _toml(value: object) -> str:
    if value is attrs.NOTHING:
        return "required"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


if __name__ == "__main__":
    import quote

    quote.main()
    Path(__file__).with_name("reference.md").write_text(reference(), "utf-8")
    Path(__file__).with_name("metrics.md").write_text(metrics(), "utf-8")
