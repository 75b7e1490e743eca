"""What a user may write after a provider's slash: a name, then whole numbers that say how the model runs."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import parse_qsl

import attrs

from wer.errors import ConfigError
from wer.tables import structure

T = TypeVar("T")


def name_and_options(provider: str, rest: str, options: type[T]) -> tuple[str, T]:
    """Read ``NAME[?key=number&...]``; what the name may be is the provider's business.

    Args:
        provider: For messages.
        rest: What follows the provider's slash.
        options: An attrs class whose fields are integers with defaults.

    Raises:
        ConfigError: An option is unknown, not a whole number, or refused by the class.
    """
    name, _, query = rest.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    wrong = [f"{key}={value}" for key, value in pairs if not value.isdecimal() or len(value) > 9]
    if wrong:
        example = attrs.fields(options)[0]  # type: ignore[arg-type]
        raise ConfigError(
            f"{provider}/{rest}: {wrong[0]!r} is not a whole number, as in "
            f"{provider}/{name}?{example.name}={example.default}"
        )
    return name, structure(options, {key: int(value) for key, value in pairs}, where=f"{provider}/{name}")
