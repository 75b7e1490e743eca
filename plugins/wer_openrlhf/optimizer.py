"""GRPO by OpenRLHF: one launch of its trainer a phase, which has WER execute what it writes."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from attrs import evolve

from wer.configuration import structure
from wer.contracts import Evaluate, OptimizerSetup
from wer.errors import ConfigError, OptimizerError, PromptTooLong
from wer.records import Candidate, Experience, PhaseOutcome, RefinementState
from wer.writing import unwritten
from wer_openrlhf import arguments, dataset, preflight
from wer_openrlhf.checkpoints import (
    Policy,
    actor_folder,
    carry,
    drop,
    keep_newest,
    newest_tag,
    settle,
    step_of,
    write_whole,
)
from wer_openrlhf.estimates import parameters
from wer_openrlhf.generating import Generator
from wer_openrlhf.launching import Launch, Limits, devices
from wer_openrlhf.options import OpenRlhfOptions
from wer_openrlhf.phases import Phase, plan
from wer_openrlhf.rendering import Renderer
from wer_openrlhf.schedule import piece
from wer_openrlhf.service import Service
from wer_openrlhf.steps import Steps, broken, spoken

_AGENT = Path(__file__).with_name("agent.py")


class OpenRlhf:
    """The Skill Optimizer pi_theta, trained by OpenRLHF on as many GPUs as it is given.

    Args:
        setup: ``setup.options`` is read as `OpenRlhfOptions`.

    Raises:
        ConfigError: An option is wrong, or the writer is a folder that cannot be asked.
    """

    learns = True

    def __init__(self, setup: OptimizerSetup) -> None:
        self._options = structure(OpenRlhfOptions, setup.options, where="optimizer.openrlhf")
        if setup.k < 2:
            raise ConfigError(
                f"GRPO compares the candidates of a group, and training.k is {setup.k}. Set it to 2 or more."
            )
        if setup.ray_address and setup.gpus:
            raise ConfigError(
                f"gpus.writer names GPUs of this machine ({', '.join(map(str, setup.gpus))}), and with --ray-address "
                f"{setup.ray_address} it is Ray that gives the writer its GPUs. Leave them out (--gpus writer=) and "
                "start Ray with CUDA_VISIBLE_DEVICES where it may use some only; or leave --ray-address out."
            )
        folder = Path(setup.writer).expanduser()
        self._policy = Policy(model=str(folder.resolve()) if folder.is_dir() else setup.writer)
        self._setup = setup
        self._past: list[Path] = []
        self._generator: Generator | None = None
        if folder.is_dir():
            self._renderer.check()

    @cached_property
    def _renderer(self) -> Renderer:
        return Renderer(model=self._policy.model, setup=self._setup)

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Train on the states once, from the last phase's weights and optimizer state.

        A phase that was interrupted goes on from its last checkpoint. Candidates that were
        written after it are read to the trainer again instead of being written anew, so
        that every state has its K candidates and no rollout is run twice.

        Raises:
            ConfigError: What the preflight found, before anything is started.
            PromptTooLong: A seed state does not fit.
            WerError: Whatever an evaluation raised.
            OptimizerError: The trainer ended or hung, with its last lines.
        """
        await self._stop_generator()
        phase = self._plan(states, folder)
        phase.connection.unlink(missing_ok=True)  # of a process that was killed
        slots: dict[tuple[str, int], Experience] = {}
        if not phase.marker.is_file():
            await self._begin(phase)
            slots = await self._train(phase, evaluate)
            step = step_of(newest_tag(actor_folder(phase.trainer)))
            write_whole(phase.marker, json.dumps({"step": step}))
            keep_newest(actor_folder(phase.trainer))
        self._policy = Policy(model=str(phase.export), checkpoint=actor_folder(phase.trainer))
        return PhaseOutcome(
            experiences=await self._found(phase, evaluate, slots),
            step_size=phase.batch * self._setup.k,
            scaled=self._options.scale_advantages,
        )

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Write k candidates a state with vLLM and learn nothing; at temperature 0 the most likely one, k times.

        A state that the loop assembled and that does not fit gets k candidates without a skill.

        Raises:
            PromptTooLong: A seed state does not fit; nothing was written yet.
            BudgetExhausted: A cap is reached already.
            OptimizerError: vLLM did not start, or ended.
        """
        fitting = self._renderer.fitting(list(states))
        groups: dict[str, tuple[Candidate, ...]] = {}
        if fitting:
            self._setup.check()
            if self._generator is None:
                self._generator = Generator(
                    setup=self._setup,
                    options=self._options,
                    model=self._policy.model,
                    renderer=self._renderer,
                )
            groups = await self._generator.write(fitting, k, seed)
        return [groups.get(state.id) or unwritten(state, k) for state in states]

    def save(self, folder: Path) -> None:
        """Keep DeepSpeed's last checkpoint, and ``merged/``: an ordinary model folder, as OpenRLHF wrote it.

        ``merged/`` serves as the writer of another run. Writes nothing before the first phase.
        """
        self._policy.save(folder)
        if self._policy.checkpoint is not None:
            self._took(folder)

    def load(self, folder: Path) -> None:
        """Take over what `save` wrote; `merged/` is enough until another phase begins.

        Raises:
            OptimizerError: It is not there.
        """
        self._policy = Policy.load(folder)
        self._took(folder)

    async def close(self) -> None:
        """End vLLM, if it writes."""
        await self._stop_generator()

    def _took(self, folder: Path) -> None:
        if folder not in self._past:
            self._past.append(folder)

    def _plan(self, states: Sequence[RefinementState], folder: Path) -> Phase:
        if self._setup.temperature <= 0:
            raise ConfigError("training.temperature is 0: candidates of a group would be equal. Raise it.")
        fitting = self._renderer.fitting(list(states))
        if not fitting:
            raise PromptTooLong(
                f"none of the phase's {len(states)} states fits {self._renderer.max_prompt_tokens:,} prompt tokens. "
                "Raise training.max_prompt_tokens if the writer's context allows it."
            )
        phase = plan(
            fitting,
            folder=folder,
            batch=self._options.batch,
            unit=self._options.unit(self._setup.k),
            seed=self._setup.seed,
        )
        if more := len(phase.prompts) - len(fitting):
            self._setup.progress(
                f"{len(fitting)} states do not fill batches of {phase.batch}: {more} groups more are written for some"
            )
        return phase

    async def _begin(self, phase: Phase) -> None:
        """Check everything, and put a new phase's files in place."""
        phase.folder.mkdir(parents=True, exist_ok=True)
        await preflight.check(
            self._fitted,
            self._options,
            model=self._policy.model,
            prompts=len(phase.prompts),
            batch=phase.batch,
            folder=phase.folder,
        )
        actor = actor_folder(phase.trainer)
        settle(actor)
        drop(phase.draft)
        drop(phase.export)
        if newest_tag(actor) is not None:
            self._setup.progress(f"going on from {newest_tag(actor)}")
        elif self._policy.checkpoint is not None:
            self._setup.progress("carrying weights and optimizer state into the phase")
            await carry(self._policy, phase.trainer, python=self._options.interpreter, rate=self._rate(phase))
        for past in self._past[:-1]:  # those phases are done: only their model folders are of use
            drop(past / "checkpoint")
            drop(past.parent / "trainer")
            drop(past.parent / "export")

    async def _train(self, phase: Phase, evaluate: Evaluate) -> dict[tuple[str, int], Experience]:
        """Launch the trainer, serve it, and see it to its end."""
        options, setup = self._options, self._setup
        prompts = phase.folder / "prompts.jsonl"
        dataset.write(prompts, phase.prompts, self._renderer.prompt, k=setup.k)
        service = Service(
            states={state.id: state for state in phase.prompts},
            evaluate=evaluate,
            k=setup.k,
            host=options.host or "127.0.0.1",
            port=options.port,
            check=setup.check,
            charge=setup.charge,
        )
        async with service:
            steps = Steps(
                slots=service.slots,
                size=phase.batch * setup.k,
                scaled=options.scale_advantages,
                updates=options.epochs * phase.batch // (options.minibatch or phase.batch),
            )
            agent = self._agent(phase, service)
            launch = Launch(
                command=self._command(phase, prompts, agent),
                log=phase.logs / f"openrlhf-phase-{phase.number}.log",
                mark=str(phase.folder),
                secrets=(service.token,),
                on_line=lambda line: self._heard(line, steps, service),
                environ=devices(setup),
            )
            setup.progress(f"starting OpenRLHF for {phase.rounds} steps (log: {launch.log})")
            try:
                await launch.run(
                    limits=Limits(start_s=options.start_timeout_s, stall_s=options.stall_timeout_s),
                    seen=service.alive,
                    failed=service.failed,
                )
            finally:
                phase.connection.unlink(missing_ok=True)
        for place, figures in steps.unreported(phase.rounds):
            setup.record(place, figures)
        _demand_model(phase, launch.log)
        phase.draft.rename(phase.export)
        return {
            (slot.experience.state.id, slot.experience.candidate.index): slot.experience
            for slot in service.slots
        }

    def _heard(self, line: str, steps: Steps, service: Service) -> None:
        """Record a step as soon as the trainer reports it; stop it when its figures are not finite."""
        said = spoken(line)
        if said is None:
            return
        number, update = said
        if names := broken(update):
            service.fail(
                OptimizerError(
                    f"step {number} of OpenRLHF gave {', '.join(names)} that are not finite: its weights are of no "
                    "use. Start a new run with a lower optimizer.openrlhf.learning_rate or max_grad_norm."
                )
            )
            return
        place, figures = steps.finished(number, update)
        self._setup.record(place, figures)
        self._setup.progress(
            f"step {place + 1}: reward {figures['reward']:.3f}, parse rate {figures['parse_rate']:.2f}, "
            f"{figures['response_tokens']:.0f} tokens"
        )

    async def _found(
        self, phase: Phase, evaluate: Evaluate, slots: dict[tuple[str, int], Experience]
    ) -> tuple[Experience, ...]:
        """Give all experiences of the phase; those of an earlier launch come from the store."""
        states = {state.id: state for state in phase.prompts}
        times = Counter(state.id for state in phase.prompts)
        experiences: list[Experience] = []
        for state in states.values():
            written = evaluate.recorded(state)
            if len(written) < (due := self._setup.k * times[state.id]):
                raise OptimizerError(
                    f"OpenRLHF ended with {len(written)} of {due} candidates for state {state.id}: "
                    f"it skipped prompts. Remove {phase.folder} to train this phase again."
                )
            missing = [(state, each) for each in written if (state.id, each.index) not in slots]
            known = [slots[state.id, each.index] for each in written if (state.id, each.index) in slots]
            stored = list(await evaluate(missing)) if missing else []
            experiences += sorted(known + stored, key=lambda found: found.candidate.index)
        return tuple(experiences)

    def _command(self, phase: Phase, prompts: Path, agent: Path) -> list[str]:
        logs = phase.logs / "tensorboard" / f"phase-{phase.number}"
        flags = arguments.argv(
            self._fitted,
            evolve(self._options, checkpoint_every=phase.checkpoint_every(self._options.checkpoint_every)),
            model=self._policy.model,
            dataset=prompts,
            states=len(phase.prompts),
            batch=phase.batch,
            agent=agent,
            checkpoints=phase.trainer,
            output=phase.draft,
            share=phase.share(self._setup.phases),
            logs=logs if self._options.tensorboard else None,
        )
        return [self._options.interpreter, "-u", "-m", "openrlhf.cli.train_ppo_ray", *flags]

    @property
    def _fitted(self) -> OptimizerSetup:
        """The setup with the lengths that the writer's context allows."""
        return evolve(self._setup, max_prompt_tokens=self._renderer.max_prompt_tokens)

    def _rate(self, phase: Phase) -> float:
        """The learning rate that the phase begins with."""
        return piece(
            phase.share(self._setup.phases), peak=self._options.learning_rate, warmup=self._options.warmup
        ).rate

    def _agent(self, phase: Phase, service: Service) -> Path:
        """Put the agent where OpenRLHF loads it, with the address and the token beside it."""
        agent = phase.connection.with_name("agent.py")
        agent.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_AGENT, agent)
        connection = {"url": service.url, "token": service.token, "top_k": self._setup.top_k}
        file = os.open(phase.connection, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            json.dump(connection, out)
        return agent

    async def _stop_generator(self) -> None:
        if self._generator is not None:
            await self._generator.close()
            self._generator = None


def _demand_model(phase: Phase, log: Path) -> None:
    """See that a trainer that says it is done has left a model and a checkpoint.

    Raises:
        OptimizerError: One of them is missing, or cut short.
    """
    try:
        parameters(phase.draft)
        if not (phase.draft / "config.json").is_file():
            raise ValueError("there is no config.json")
        if newest_tag(actor_folder(phase.trainer)) is None:
            raise ValueError(f"there is no checkpoint in {actor_folder(phase.trainer)}")
    except (OSError, ValueError) as error:
        raise OptimizerError(
            f"OpenRLHF ended without writing a model to {phase.draft}: {error}. The log is {log}; go on with "
            "--resume, which trains what is missing."
        ) from error
