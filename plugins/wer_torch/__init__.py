"""Entry module of the batch engine: local models run by torch, many requests in one pass over the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Model
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[str], Model]]:
    return {"torch": _torch}


def _torch(rest: str) -> Model:
    from wer_torch.naming import TorchName
    from wer_torch.threads import sleep_rather_than_spin

    name = TorchName.parse(rest)
    sleep_rather_than_spin()
    from wer_torch.model import TorchModel

    return TorchModel.of(name)
