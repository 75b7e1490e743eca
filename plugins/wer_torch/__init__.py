"""Entry module of the batch engine: local models run by torch, many requests in one pass over the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer.contracts import Model, ModelSetup, Provider
from wer.hookspecs import hookimpl


@hookimpl
def wer_models() -> Mapping[str, Callable[[ModelSetup], Model]]:
    """Offer ``torch/NAME``, of the catalogue, a file or a folder."""
    return {"torch": Provider(_torch, cost="free")}


def _torch(setup: ModelSetup) -> Model:
    from wer_torch.naming import TorchName
    from wer_torch.threads import sleep_rather_than_spin

    name = TorchName.parse(setup.name)
    sleep_rather_than_spin()
    from wer_torch.model import TorchModel

    return TorchModel.of(name)
