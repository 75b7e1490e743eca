"""What an update step is described by, the same names for every backend that trains.

A backend records one row of figures a step, through `wer.contracts.OptimizerSetup.record`.
`describe` computes those that follow from the scored groups alone; the backend adds those
of its update and its clock; the loop adds what it counts itself. Shares are in 0..1, and
means are over the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wer.records import Candidate, Experience, Reward

OF_GROUPS: Mapping[str, str] = {
    "states": "refinement states in the step, a group of K candidates each",
    "reward": "mean of the whole reward R [Eq. 4]",
    "reward_task": "mean of R_task",
    "reward_fmt": "mean of R_fmt, before annealing",
    "reward_len": "mean of R_len",
    "all_pass": "share of groups in which every candidate has a skill and every rollout passed",
    "all_fail": "share of groups in which no rollout passed",
    "zero_variance": "share of groups whose candidates all earned the same, so that none has an advantage",
    "advantage_share_task": "share of the advantages' variance that R_task brings; the three add up to 1, "
    "and are 0 where no group has an advantage; a term that is not paid has none",
    "advantage_share_fmt": "likewise of R_fmt, annealed",
    "advantage_share_len": "likewise of R_len",
    "parse_rate": "share of candidates in which a skill was found",
    "well_formed": "share of candidates that are exactly a reasoning block and a skill block",
    "prompt_tokens": "mean tokens of a group's prompt",
    "response_tokens": "mean tokens of a candidate",
    "skill_words": "mean words of the body of the skills that were found",
}
"""Measures that `describe` gives."""

OF_UPDATE: Mapping[str, str] = {
    "loss": "mean loss over the gradient steps",
    "clip_fraction": "mean share of ratios at which the clipped branch was taken [Eq. 6]",
    "entropy": "mean entropy of the policy's next-token distributions, in nats",
    "grad_norm": "largest norm of a gradient, before clipping",
    "learning_rate": "at the end of the step",
    "steps": "gradient steps made; 0 when no group had an advantage",
}
"""Measures that the backend gives of its update."""

OF_WORK: Mapping[str, str] = {
    "generation_s": "seconds from the request for candidates to the last one",
    "rollouts_s": "seconds in which the candidates were executed and judged",
    "update_s": "seconds of the update",
    "rollouts": "rollouts run for the step; those that were in the store already are not counted",
    "rollouts_per_s": "rollouts / rollouts_s",
}
"""Measures of the work: seconds by the backend, rollouts by the loop."""

OF_SOME: Mapping[str, str] = {
    "kl_old": "mean over tokens of log pi_old - log pi, which is 0 at the first gradient step of a batch; by openrlhf",
    "kl_reference": "mean over tokens of the estimated divergence from the writer as it was given, in nats; by grpo "
    "with optimizer.grpo.kl above 0",
    "improvement": "mean over generations, the first left out, of the change of the mean reward; by skill_r1",
    "truncated": "share of candidates that were cut at training.max_response_tokens; by openrlhf",
    "sync_s": "seconds in which the engines took over the new weights; by openrlhf",
}
"""Measures that one backend gives and another does not."""

MEASURES: Mapping[str, str] = {**OF_GROUPS, **OF_UPDATE, **OF_WORK, **OF_SOME}
"""Every measure of a step with its meaning, in the order of reports."""

_TERMS = ("task", "fmt", "len")


def describe(groups: Sequence[Sequence[Experience]], *, scaled: bool = False) -> dict[str, float]:
    """Give the measures `OF_GROUPS` of the groups of one step.

    ``advantage_share_X`` is the covariance within groups of term X, weighted as in Eq. 4,
    with the advantage, as a share of the advantages' variance.

    Args:
        groups: The K candidates of a state each.
        scaled: Whether advantages are divided by their group's standard deviation, so
            that every group that has any weighs the same; those of Eq. 5 are not.
    """
    all_ = [experience for group in groups for experience in group]
    skills = [each.candidate.skill for each in all_ if each.candidate.skill is not None]
    return {
        "states": float(len(groups)),
        "reward": _mean([each.reward.total for each in all_]),
        "reward_task": _mean([each.reward.task for each in all_]),
        "reward_fmt": _mean([each.reward.fmt for each in all_]),
        "reward_len": _mean([each.reward.len for each in all_]),
        "all_pass": _mean([all(map(_all_passed, group)) for group in groups]),
        "all_fail": _mean([not any(map(_any_passed, group)) for group in groups]),
        "zero_variance": _mean([_flat(group) for group in groups]),
        **_shares(groups, scaled=scaled),
        "parse_rate": _mean([each.candidate.skill is not None for each in all_]),
        "well_formed": _mean([each.candidate.well_formed for each in all_]),
        "prompt_tokens": _mean([_prompt_tokens(group) for group in groups]),
        "response_tokens": _mean([_response_tokens(each.candidate) for each in all_]),
        "skill_words": _mean([len(skill.body.split()) for skill in skills]),
    }


def _all_passed(experience: Experience) -> bool:
    return bool(experience.rollouts) and all(rollout.verdict.passed for rollout in experience.rollouts)


def _any_passed(experience: Experience) -> bool:
    return any(rollout.verdict.passed for rollout in experience.rollouts)


def _flat(group: Sequence[Experience]) -> bool:
    return len({each.reward.total for each in group}) <= 1


def _prompt_tokens(group: Sequence[Experience]) -> int:
    """The most that a candidate was charged: where the group's prompt was read once, only one bears it."""
    return max((each.candidate.usage.prompt_tokens for each in group), default=0)


def _response_tokens(candidate: Candidate) -> int:
    return len(candidate.token_ids) or candidate.usage.completion_tokens


def _shares(groups: Sequence[Sequence[Experience]], *, scaled: bool) -> dict[str, float]:
    total = dict.fromkeys(_TERMS, 0.0)
    for group in groups:
        if _flat(group):
            continue
        rewards = _deviations([each.reward.total for each in group])
        variance = sum(value * value for value in rewards)
        for name in _TERMS:
            parts = _deviations([_paid(each.reward)[name] for each in group])
            covariance = sum(part * whole for part, whole in zip(parts, rewards, strict=True))
            total[name] += covariance / variance if scaled else covariance
    whole = sum(total.values())
    return {f"advantage_share_{name}": value / whole if whole else 0.0 for name, value in total.items()}


def _paid(reward: Reward) -> Mapping[str, float]:
    """What each term adds to the whole reward; one that is not paid adds nothing."""
    weight = {name: float(name in reward.terms) / len(reward.terms) for name in _TERMS}
    task, length = weight["task"] * reward.task, weight["len"] * reward.len
    return {"task": task, "fmt": reward.total - task - length, "len": length}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _deviations(values: Sequence[float]) -> list[float]:
    mean = _mean(values)
    return [value - mean for value in values]
