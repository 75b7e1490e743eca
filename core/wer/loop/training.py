"""Algorithm 1: phases of proposing, executing, rewarding, updating, retaining and assembling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wer.contracts import Optimizer
from wer.loop.opening import Run
from wer.loop.recording import PHASE
from wer.measures import describe
from wer.records import Experience, PhaseOutcome, RefinementState
from wer.retention import assemble, mixedness, retain


async def train(run: Run, optimizer: Optimizer, states: Sequence[RefinementState]) -> Sequence[Experience]:
    """Run all phases; a phase that retains nothing ends training, as a result and not as a crash.

    A finished phase is a checkpoint folder with ``done`` in it: on resume it is loaded,
    and its experience comes from the store.

    Returns:
        The experience of all phases, in an order that a replay repeats.
    """
    everything: list[Experience] = []
    settings = run.config.training
    for phase in range(settings.phases):
        states = states[: settings.states_per_phase or None]
        outcome = await _phase(run, optimizer, states, phase)
        experiences = sorted(outcome.experiences, key=_place)
        everything += experiences
        kept = retain(experiences, settings.retention)
        run.display.say(f"phase {phase}: {_summary(outcome.experiences)}; {len(kept)} candidates retained")
        states = [
            assemble(experience, phase=phase + 1, kept=settings.evidence, form=settings.evidence_form)
            for experience in kept
        ]
        if not states and phase + 1 < settings.phases:
            run.display.say(
                f"training ends after phase {phase}: no candidate had mixed outcomes, so there is nothing to pair. "
                "More states, more candidates (training.k) or a warmer executor would give some."
            )
            break
    return everything


async def _phase(
    run: Run, optimizer: Optimizer, states: Sequence[RefinementState], phase: int
) -> PhaseOutcome:
    stage = run.staged(f"train/{phase}")
    folder = run.folder / "checkpoints" / f"phase-{phase}"
    if (folder / "done").is_file():
        optimizer.load(folder / "policy")
        stored = (run.shown.experience(found) for _, found in run.store.experiences(stage))
        return PhaseOutcome(experiences=tuple(stored))
    settings = run.config.training
    total = len(states) * settings.k * settings.n * len(run.config.executors)
    run.display.stage(f"phase {phase}: {len(states)} states", total)
    folder.mkdir(parents=True, exist_ok=True)
    run.recorder.begin(phase, run.staged("train"))
    outcome = await optimizer.run_phase(states, run.evaluation(stage, n=settings.n, phase=phase), folder)
    run.recorder.complete(outcome.step_size, scaled=outcome.scaled, shown=run.shown)
    optimizer.save(folder / "policy")
    (folder / "done").touch()
    run.recorder.log(PHASE, phase, _figures(outcome.experiences))
    run.plugins.hook.wer_phase_finished(phase=phase, outcome=outcome)
    return outcome


def _place(experience: Experience) -> tuple[str, int]:
    """An order that does not depend on who finished first, so that a replay retains the same."""
    return experience.state.id, experience.candidate.index


def _figures(experiences: Sequence[Experience]) -> Mapping[str, float]:
    """Describe a whole phase, whoever optimizes, and say how many candidates it gives to the next."""
    groups: dict[str, list[Experience]] = {}
    for experience in experiences:
        groups.setdefault(experience.state.id, []).append(experience)
    return {**describe(list(groups.values())), "retained": float(len(retain(experiences)))}


def _summary(experiences: Sequence[Experience]) -> str:
    if not experiences:
        return "no candidates"
    count = len(experiences)
    reward = sum(experience.reward.total for experience in experiences) / count
    task = sum(experience.reward.task for experience in experiences) / count
    fmt = sum(experience.reward.fmt for experience in experiences) / count
    mixed = sum(mixedness(experience.rollouts) > 0 for experience in experiences)
    return (
        f"{count} candidates, mean reward {reward:.3f} (task {task:.3f}, format {fmt:.3f}), "
        f"{mixed} with mixed outcomes"
    )
