"""Entry module of tau2's verdict: the reward of its package, from exported data alone."""

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Verifier


@hookimpl
def wer_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Offer tau2's default, ``tau2_reward``."""
    return {"tau2_reward": _reward}


def _reward() -> Verifier:
    from wer_tau2_reward.verifier import Tau2Reward

    return Tau2Reward()
