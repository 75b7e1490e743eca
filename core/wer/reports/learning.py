"""What optimizers were shown, and what showing them less would have done: the paper's open questions, of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from attrs import evolve, frozen

from wer.configuration import RunConfig
from wer.methods import configurations
from wer.records import EvidenceForm, Experience, RefinementState
from wer.retention import matched_pair, mixedness
from wer.shown import Shown
from wer.store import Store
from wer.writing import revision_messages

_RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
_DRAWS = 10


@frozen(kw_only=True)
class Seen:
    """What one method's optimizer was shown.

    Attributes:
        method: Its name in a comparison; empty for a run's only one.
        verdicts: Rollouts of its candidates and of its evidence, each once.
        flipped: Those of them that it was shown the other way round.
        states: Refinement states that candidates were written for.
        prompt_tokens: Of the writer, mean over the states.
        words: Of the paper's prompt, by the form of its evidence: mean over the states whose
            evidence is a pair, whatever the method did with them.
    """

    method: str
    shown: Shown
    verdicts: int
    flipped: int
    states: int
    prompt_tokens: float
    words: Mapping[EvidenceForm, float]

    @property
    def sentence(self) -> str:
        """What its optimizer was shown that was not the truth."""
        name = f"{self.method}: " if self.method else ""
        return (
            f"{name}verifier noise {self.shown.noise:g}: {self.flipped} of {self.verdicts} verdicts were shown to the "
            "optimizer the other way round. Figures of training are what it saw; Pass@1 and the store are true."
        )


def seen(store: Store, config: RunConfig) -> tuple[Seen, ...]:
    """Look at every method of a run that wrote candidates."""
    configs = {"": config, **configurations(config)}
    found: dict[str, list[tuple[str, Experience]]] = {}
    for stage, experience in store.experiences():
        found.setdefault(method_at(stage, config), []).append((stage, experience))
    return tuple(_seen(method, configs[method].shown, each) for method, each in found.items())


def method_at(stage: str, config: RunConfig) -> str:
    """The method that a stage belongs to; empty for a run's only one."""
    head = stage.partition("/")[0]
    return head if head in config.methods else ""


def _seen(method: str, shown: Shown, found: Sequence[tuple[str, Experience]]) -> Seen:
    keys = {rollout.key for _, each in found for rollout in (*each.rollouts, *each.state.evidence)}
    groups: dict[tuple[str, str], list[Experience]] = {}
    for stage, each in found:
        groups.setdefault((stage, each.state.id), []).append(each)
    prompts = [max(each.candidate.usage.prompt_tokens for each in group) for group in groups.values()]
    states = {each.state.id: shown.experience(each).state for _, each in found}
    pairs = [state for state in states.values() if len(state.evidence) == 2]
    return Seen(
        method=method,
        shown=shown,
        verdicts=len(keys),
        flipped=sum(map(shown.flips, keys)),
        states=len(groups),
        prompt_tokens=sum(prompts) / len(prompts),
        words={
            form: sum(_words(evolve(state, form=form)) for state in pairs) / len(pairs) if pairs else 0.0
            for form in get_args(EvidenceForm)
        },
    )


def _words(state: RefinementState) -> int:
    return sum(len(message.content.split()) for message in revision_messages(state))


@frozen(kw_only=True)
class Survival:
    """What retention would make of a run's candidates under noise of the verifier.

    Attributes:
        retained: Share of the candidates that would be kept for having mixed outcomes.
        mixed: Share of these whose outcomes are mixed in truth.
        labelled: Share of these whose pair is in truth a success and a failure, and not the reverse.
    """

    noise: float
    retained: float
    mixed: float
    labelled: float


def survival(experiences: Sequence[Experience], noise: float, *, draws: int = _DRAWS) -> Survival:
    """Flip the true verdicts of some candidates, and retain.

    Args:
        experiences: Out of the store, each with at least one rollout.
        draws: How often everything is flipped anew.
    """
    kept: list[tuple[bool, bool]] = []
    for draw in range(draws if noise else 1):
        shown = Shown(noise=noise, seed=draw)
        for each in experiences:
            rollouts = shown.rollouts(each.rollouts)
            if mixedness(rollouts) > 0:
                right = not any(shown.flips(rollout.key) for rollout in matched_pair(rollouts))
                kept.append((mixedness(each.rollouts) > 0, right))
    return Survival(
        noise=noise,
        retained=len(kept) / (len(experiences) * (draws if noise else 1)),
        mixed=sum(mixed for mixed, _ in kept) / len(kept) if kept else 0.0,
        labelled=sum(right for _, right in kept) / len(kept) if kept else 0.0,
    )


def sentences(store: Store, config: RunConfig) -> Iterator[str]:
    """What must be said beside a run's results: where an optimizer was shown less than the truth."""
    if any(each.training.verifier_noise for each in (config, *configurations(config).values())):
        yield from (each.sentence for each in seen(store, config) if each.shown.noise)


def learning_tables(store: Store, config: RunConfig) -> Iterator[str]:
    """Markdown: prompts by the form of their evidence, and what noise would do to retention."""
    found = seen(store, config)
    if not found:
        return
    yield "\n## What writers were shown\n"
    yield "Words are of the whole prompt with a pair as evidence, if it had this form; tokens are what was charged.\n"
    yield "| method | verifier noise | flipped | states | evidence | prompt tokens | words verbatim | from divergence |"
    yield "|---" * 8 + "|"
    for each in found:
        words = " | ".join(f"{each.words[form]:.0f}" for form in ("verbatim", "divergence"))
        yield (
            f"| {each.method or config.backend} | {each.shown.noise:g} | {each.flipped} of {each.verdicts} "
            f"| {each.states} | {each.shown.form} | {each.prompt_tokens:.0f} | {words} |"
        )
    yield from _survivals([each for _, each in store.experiences() if each.rollouts])


def _survivals(run: Sequence[Experience]) -> Iterator[str]:
    if not run:
        return
    yield (
        f"\nWhat noise of the verifier would do to retention, of the {len(run)} candidates that were run "
        f"(mean of {_DRAWS} draws):\n"
    )
    yield "| noise | retained | of these mixed in truth | of these with both labels right |"
    yield "|---|---|---|---|"
    for noise in _RATES:
        found = survival(run, noise)
        yield f"| {noise:g} | {found.retained:.1%} | {found.mixed:.1%} | {found.labelled:.1%} |"
