"""The reference of a task as structured calls. It is the benchmark's own data, and is parsed, never run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from wer.errors import TaskError
from wer.records import Task, ToolCall
from wer_bfcl.benchmark import Benchmark
from wer_bfcl.tasks import entry_id


def reference(benchmark: Benchmark, task: Task) -> tuple[tuple[ToolCall, ...], ...]:
    """Give the reference's calls, a tuple for each turn of the task; some turns have none.

    Raises:
        TaskError: The task is not one of the benchmark's.
    """
    answer = benchmark.answers.get(entry_id(task))
    if answer is None:
        raise TaskError(f"bfcl has no task {task.id!r}. Its ids look like bfcl/multi_turn_base_0.")
    parameters = {tool.name: tuple(tool.parameters["properties"]) for tool in task.tools}
    return tuple(tuple(parse_call(text, parameters) for text in turn) for turn in answer[: len(task.turns)])


def parse_call(text: str, parameters: dict[str, tuple[str, ...]]) -> ToolCall:
    """Read one Python call of literals, such as ``sort('report.txt')``.

    Args:
        parameters: Every tool's parameters in the order of its signature, which
            names the few positional arguments.
    """
    call = ast.parse(text.strip(), mode="eval").body
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise TaskError(f"the reference call {text!r} is not a plain call. Is this another bfcl-eval?")
    name = call.func.id
    positional: Sequence[str] = parameters.get(name, ())[: len(call.args)]
    arguments = {key: ast.literal_eval(node) for key, node in zip(positional, call.args, strict=True)}
    arguments |= {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    return ToolCall(name=name, arguments=arguments)
