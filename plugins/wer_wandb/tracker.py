"""Sends a run's figures to Weights & Biases: to the run that is active in this process, or to a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import wandb
from attrs import frozen

from wer.configuration import structure
from wer.contracts import TrackerSetup
from wer.errors import ConfigError
from wer_wandb.options import WandbOptions

_STAGES = ("train", "phase", "evaluation")


@frozen(kw_only=True)
class Wandb:
    """One run there, and what of it is ours.

    Attributes:
        run: As ``wandb.init`` gave it.
        prefix: Before every name: empty, or ends with a slash.
        joined: The run was active before, so that ending it is not ours to do.
    """

    run: Any
    prefix: str
    joined: bool

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Send the figures of one step; the charts' axis is the stage's own step, since the run's only grows."""
        named = {f"{self.prefix}{stage}/{name}": value for name, value in metrics.items()}
        self.run.log({**named, f"{self.prefix}{stage}/step": step})

    def close(self) -> None:
        """End a run that is ours, which waits for the upload; leave another's open."""
        if not self.joined:
            self.run.finish()


def open_tracker(setup: TrackerSetup) -> Wandb:
    """Join the active run, or begin one that has the WER run's name and id, so that resuming goes on in it.

    Raises:
        ConfigError: Weights & Biases won't begin a run, with its reason.
    """
    options = structure(WandbOptions, setup.options, where="tracking.wandb")
    if wandb.run is not None:
        prefix = options.prefix.strip("/")
        wandb.run.config.update({prefix or "wer": dict(setup.config)}, allow_val_change=True)
        tracker = Wandb(run=wandb.run, prefix=f"{prefix}/" if prefix else "", joined=True)
    else:
        tracker = Wandb(run=_begun(setup, options), prefix="", joined=False)
    for stage in _STAGES:
        axis = f"{tracker.prefix}{stage}/step"
        tracker.run.define_metric(axis, hidden=True)
        tracker.run.define_metric(f"{tracker.prefix}{stage}/*", step_metric=axis)
    return tracker


def _begun(setup: TrackerSetup, options: WandbOptions) -> Any:
    # Command line, output, code and git diff may hold what only this machine should know.
    private = wandb.Settings(console="off", save_code=False, disable_git=True, x_disable_meta=True)
    try:
        return wandb.init(
            project=options.project,
            entity=options.entity or None,
            mode=options.mode or None,
            id=setup.name,
            name=setup.name,
            resume="allow",
            dir=str(setup.folder),
            config=dict(setup.config),
            settings=private,
        )
    except wandb.Error as error:
        raise ConfigError(
            f"Weights & Biases did not begin a run: {error}. Log in with wandb login, set "
            'tracking.wandb.mode = "offline", or leave --track wandb out.'
        ) from error
