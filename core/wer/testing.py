"""For the tests of plugins: the checks of ``wer plugin check``, a test each.

    from wer.testing import conformance

    test_shop = conformance("environment", "shop")
    test_its_verifier = conformance("verifier", "shop", environment="shop")

A sentence that does not hold fails with the fault and its remedy; one that does not apply is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from wer import plugins
from wer.conformance import KINDS, Finding, Settings, check_part


def conformance(
    kind: str, name: str, *, extra: Sequence[ModuleType] = (), **settings: Any
) -> Callable[[str], None]:
    """Make a test function, parametrised by what every part of a kind must do.

    Args:
        kind: ``environment``, ``verifier``, ``executor``, ``optimizer``, ``model`` or ``sandbox``.
        name: As users write it.
        extra: Plugins that are not installed, as modules.
        settings: See `wer.conformance.Settings`, such as ``sandbox="process"``.
    """

    @cache
    def found() -> dict[str, Finding]:
        loaded = plugins.load(extra)
        return {
            finding.sentence: finding
            for finding in asyncio.run(check_part(kind, name, loaded, Settings(**settings)))
        }

    @pytest.mark.parametrize("sentence", KINDS[kind].sentences)
    def test(sentence: str) -> None:
        finding = found()[sentence]
        if finding.status == "failed":
            pytest.fail(f"{finding.part}: {finding.detail}\n{finding.remedy}", pytrace=False)
        if finding.status == "not applicable":
            pytest.skip(finding.detail)

    return test
