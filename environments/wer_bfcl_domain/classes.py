"""The benchmark's eight tool classes, loaded from ``bfcl_eval`` with today's date pinned."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_SOURCE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}


class PinnedDatetime(datetime):
    """A datetime whose today is the release day of bfcl-eval 2026.3.23.

    ``TravelAPI.verify_traveler_information`` computes an age from today's date, the only
    place where the benchmark reads a clock; a verdict must not depend on the day.
    """

    @classmethod
    def today(cls) -> PinnedDatetime:
        """The release day, on every day: a stored verdict can be had again next year."""
        return cls(2026, 3, 23)


def load() -> Mapping[str, type[Any]]:
    """Import the tool classes, by the names that ``involved_classes`` uses."""
    modules = {name: importlib.import_module(f"{_SOURCE}.{module}") for name, module in _MODULES.items()}
    vars(modules["TravelAPI"])["datetime"] = PinnedDatetime
    return {name: getattr(module, name) for name, module in modules.items()}
