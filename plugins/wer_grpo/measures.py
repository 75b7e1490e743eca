"""What a batch looked like, for the metrics of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wer.records import Experience, Reward

_TERMS: dict[str, Callable[[Reward], float]] = {
    "task": lambda reward: reward.task / 3,
    "fmt": lambda reward: reward.total - (reward.task + reward.len) / 3,
    "len": lambda reward: reward.len / 3,
}


def describe(groups: Sequence[Sequence[Experience]]) -> dict[str, float]:
    """Describe the groups of one batch.

    ``advantage_share_X`` is the covariance of reward term X (weighted as in Eq. 4) with
    the reward within groups, as a share of the reward's variance: the shares add up to 1
    unless no group has any variance, when all are 0.
    """
    all_ = [experience for group in groups for experience in group]
    passes = [[rollout.verdict.passed for each in group for rollout in each.rollouts] for group in groups]
    return {
        "states": float(len(groups)),
        "reward": _mean([each.reward.total for each in all_]),
        "reward_task": _mean([each.reward.task for each in all_]),
        "reward_fmt": _mean([each.reward.fmt for each in all_]),
        "reward_len": _mean([each.reward.len for each in all_]),
        "well_formed": _mean([each.candidate.well_formed for each in all_]),
        "with_skill": _mean([each.candidate.skill is not None for each in all_]),
        "response_tokens": _mean([len(each.candidate.token_ids) for each in all_]),
        "zero_variance": _mean([len({each.reward.total for each in group}) == 1 for group in groups]),
        "all_pass": _mean([bool(found) and all(found) for found in passes]),
        "all_fail": _mean([not any(found) for found in passes]),
        **_shares(groups),
    }


def _shares(groups: Sequence[Sequence[Experience]]) -> dict[str, float]:
    covariance = dict.fromkeys(_TERMS, 0.0)
    for group in groups:
        totals = _deviations([each.reward.total for each in group])
        for name, term in _TERMS.items():
            parts = _deviations([term(each.reward) for each in group])
            covariance[name] += sum(a * b for a, b in zip(parts, totals, strict=True))
    variance = sum(covariance.values())
    return {
        f"advantage_share_{name}": value / variance if variance > 1e-12 else 0.0
        for name, value in covariance.items()
    }


def _mean(values: Sequence[float]) -> float:
    return float(sum(values)) / len(values) if values else 0.0


def _deviations(values: Sequence[float]) -> list[float]:
    mean = _mean(values)
    return [value - mean for value in values]
