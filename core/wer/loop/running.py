"""The whole protocol of the paper's evaluation (section 4.1): seeds, training, refinement, merge, test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from wer.contracts import Consolidating, Imitating, Optimizer, Searching
from wer.errors import SearchSpent
from wer.leaks import sentence
from wer.loop.depths import held_out, learnt_from, refine_and_merge
from wer.loop.ledger import Budget
from wer.loop.measuring import measure
from wer.loop.merging import merge_all
from wer.loop.opening import Run
from wer.loop.seeding import Scanned, demand_signal, first_states, given_seed, scan, seed_skills
from wer.loop.sources import check_merges
from wer.loop.training import train
from wer.records import NO_SKILL, Experience, RefinementState, Skill, derive_seed
from wer.shown import Shown
from wer.skills import save_skill
from wer.writers import describe


@frozen(kw_only=True)
class Start:
    """Where training starts: every training task with its seed skill's first rollouts."""

    scanned: Mapping[str, tuple[Scanned, ...]]

    @property
    def all(self) -> tuple[Scanned, ...]:
        """The scan of all domains, in their order: a phase trains one policy on all of them."""
        return tuple(task for tasks in self.scanned.values() for task in tasks)

    @property
    def perfect(self) -> bool:
        """Whether every rollout of every task passed."""
        return all(task.share == 1.0 for task in self.all)

    def shown(self, shown: Shown) -> Start:
        """As an optimizer sees it: once, or what was flipped would be flipped back."""
        return Start(
            scanned={name: tuple(each.shown(shown) for each in tasks) for name, tasks in self.scanned.items()}
        )


async def run_protocol(run: Run) -> None:
    """Perform everything; each finished part is in the store, so that a second call repeats none.

    An optimizer that does not learn has no untrained twin to compare with. What its phases
    found is not lost: refinement then starts from the best skill of each task.
    """
    conditions = run.config.evaluation.conditions
    optimizer = run.optimizer()  # made first, so that wrong settings are found before anything is paid
    try:
        start = await begin(run, optimizer, perfect_will_do=not run.config.seed_skill)
        skills: dict[str, Mapping[str, Skill]] = {}
        if "none" in conditions:
            skills["none"] = {domain.name: NO_SKILL for domain in run.domains}
        if "seed" in conditions:
            skills["seed"] = await merge_all(run, start.scanned, "seed")
        if start.perfect:
            run.display.say(
                "every rollout with the drafted skills passed: nothing is left to learn, they are measured"
            )
        elif "untrained" in conditions and optimizer.learns:
            skills["untrained"] = await refine_all(run, optimizer, start, "untrained")
        if "refined" in conditions:
            kept = (
                merge_all(run, start.scanned, "refined") if start.perfect else search(run, optimizer, start)
            )
            skills["refined"] = await kept
    finally:
        await optimizer.close()
    publish(run, skills)
    for label in ("untrained", "refined"):
        await check_merges(run, label, skills.get(label, {}))
    await measure(run, skills)


async def search(run: Run, optimizer: Optimizer, start: Start) -> Mapping[str, Skill]:
    """Train and refine within the search's budget; when that is spent, take the best skills so far."""
    if not isinstance(optimizer, Consolidating | Searching):  # which have no depth to choose
        start = Start(scanned=learnt_from(start.scanned, held_out(run.config, run.domains)))
    start = start.shown(run.shown)
    try:
        with run.ledger.searching(_share(run)):
            first = first_states(start.all, run.config.training)
            experiences = await train(run, optimizer, first)
            if optimizer.learns:
                optimizer.save(run.folder / "checkpoints" / "final")
                _describe(run)
            else:
                start = best_so_far(start, experiences)
            return await _revise_all(run, optimizer, start, "refined")
    except SearchSpent as spent:
        run.scheduler.reopen()
        run.display.say(f"{spent}: the best skills so far are merged and measured")
    stages = (run.staged("train/"), run.staged("refine/refined/"))
    stored = [each for stage, each in run.store.experiences() if stage.startswith(stages)]
    found = [run.shown.experience(each) for each in stored]
    return await merge_all(run, best_so_far(start, found).scanned, "refined")


def _describe(run: Run) -> None:
    """Lay down beside the trained weights, where there are any, what they were trained with."""
    folder = run.folder / "checkpoints" / "final" / "merged"
    if folder.is_dir():
        describe(run.config, folder)


def _share(run: Run) -> Budget:
    """The totals at which the search ends: counted from where it first began, whatever was resumed since."""
    caps = run.config.budget
    key = run.staged("before the search")
    run.store.put_document("about", key, " ".join(map(str, run.ledger.spent)))
    rollouts, tokens = map(int, (run.store.document("about", key) or "0 0").split())
    return Budget(
        max_rollouts=caps.search_rollouts and rollouts + caps.search_rollouts,
        max_tokens=caps.search_tokens and tokens + caps.search_tokens,
    )


def best_so_far(start: Start, experiences: Sequence[Experience]) -> Start:
    """Each task with the skill that passed most: its seed skill, or a candidate that passed more."""
    best = {task.task.key: task for task in start.all}
    for found in experiences:
        here = best[found.state.task.key]
        if found.candidate.skill is None:
            continue
        new = Scanned(task=here.task, skill=found.candidate.skill, rollouts=found.rollouts)
        if new.share > here.share:
            best[here.task.key] = new
    return Start(
        scanned={name: tuple(best[task.task.key] for task in tasks) for name, tasks in start.scanned.items()}
    )


async def begin(run: Run, *optimizers: Optimizer, perfect_will_do: bool = False) -> Start:
    """Scan the training tasks without a skill, write the seed skills, scan with them, and look for something to learn.

    Args:
        optimizers: Those that go on from here.
        perfect_will_do: Whether seed skills with which every rollout passes are a result.

    Raises:
        WerError: Every rollout with the seed skills passed, and that won't do; or none did, and each optimizer compares
            rollouts alone.
    """
    start = await seeded(run)
    imitates = any(isinstance(each, Imitating) and each.imitates for each in optimizers)
    demand_signal(start.all, failures_teach=imitates, perfect_will_do=perfect_will_do)
    return start


async def seeded(run: Run) -> Start:
    """Scan the training tasks without a skill, write the seed skills, and scan with them."""
    tasks = [task for domain in run.domains for task in domain.train]
    given_seed(run)
    await scan(run, {task.key: NO_SKILL for task in tasks}, tasks, label="training tasks, no skill")
    skills = await seed_skills(run, tasks)
    scanned = iter(await scan(run, skills, tasks, label="training tasks, seed skills"))
    return Start(scanned={domain.name: tuple(next(scanned) for _ in domain.train) for domain in run.domains})


async def refine_all(run: Run, optimizer: Optimizer, start: Start, label: str) -> Mapping[str, Skill]:
    """Refine every training task's skill and merge each domain's into one, or have a domain's written at once."""
    return await _revise_all(run, optimizer, start.shown(run.shown), label)


async def _revise_all(run: Run, optimizer: Optimizer, start: Start, label: str) -> Mapping[str, Skill]:
    """Likewise, from a start as the optimizer sees it."""
    if isinstance(optimizer, Consolidating | Searching):
        return await _consolidate_all(run, optimizer, start)
    return await refine_and_merge(run, optimizer, start.scanned, label=label)


async def _consolidate_all(
    run: Run, optimizer: Consolidating | Searching, start: Start
) -> Mapping[str, Skill]:
    """Roll every domain's seed skill out on all of its training tasks, and have it rewritten from that."""
    bases = await merge_all(run, start.scanned, "seed")
    skills = {task.task.key: bases[name] for name, tasks in start.scanned.items() for task in tasks}
    tasks = [task.task for task in start.all]
    scanned = iter(await scan(run, skills, tasks, label="training tasks, one skill a domain"))
    written: dict[str, Skill] = {}
    for name, sources in start.scanned.items():
        found = [next(scanned).shown(run.shown) for _ in sources]
        states = [RefinementState(task=each.task, skill=each.skill, evidence=each.rollouts) for each in found]
        seed = derive_seed(run.config.seed, "consolidate", name)
        if isinstance(optimizer, Searching):
            skill = await _search_one(
                run, optimizer, states, name, seed, of=len(start.scanned) - len(written)
            )
        else:
            run.display.stage(f"consolidating {name}", 0, unit="calls")
            skill = await optimizer.consolidate(states, seed)
        refusal = run.screen.refusal(skill, [each.task for each in found])
        if refusal:
            run.display.say(f"{name}: the consolidated skill {refusal}; the skill in force stands in")
        written[name] = bases[name] if refusal else skill
    return written


async def _search_one(
    run: Run, optimizer: Searching, states: Sequence[RefinementState], name: str, seed: int, *, of: int
) -> Skill:
    """Have one domain's skill searched for, with an equal share of what is left for ``of`` domains.

    The share is kept, so that a resumed search is as long as it was. Of several executors it is
    what each of them may run.
    """
    settings = run.config.refinement
    left = run.ledger.search_rollouts_left
    executors = len(run.config.executors)
    share = len(states) * settings.rounds * settings.k * settings.n
    share = share if left is None else left // of // executors
    key = run.staged(f"rollouts of {name}")
    run.store.put_document("about", key, str(share))
    share = int(run.store.document("about", key) or share)
    run.display.stage(f"searching for a skill of {name}", share * executors, once=True)
    evaluate = run.evaluation(run.staged(f"search/{name}"), n=settings.n)
    try:
        return await optimizer.search(states, evaluate, share, seed)
    finally:
        run.scheduler.reopen()


def publish(run: Run, skills: Mapping[str, Mapping[str, Skill]]) -> None:
    """Write each condition's skills as Agent Skills folders, with where they came from."""
    for condition, by_domain in skills.items():
        for domain, skill in by_domain.items():
            if skill.empty:
                continue
            folder = run.folder / "skills" / condition
            save_skill(
                skill, folder, {"wer-run": run.folder.name, "wer-domain": domain, "wer-skill": skill.id}
            )
            run.store.put_skill(skill)
            run.store.put_document("published", f"{condition} {domain}", skill.id)
            _tell_leaks(run, condition, domain, skill)


def _tell_leaks(run: Run, condition: str, domain: str, skill: Skill) -> None:
    """Say, and keep for the report, what a published skill quotes of the training tasks."""
    tasks = next(each.train for each in run.domains if each.name == domain)
    leaks = run.screen.leaks(skill, tasks)
    if leaks:
        found = f"the {condition} skill of {domain} {sentence(leaks)}"
        run.store.put_document("leaks", f"{condition} {domain}", found)
        run.display.say(f"{found}. See leak in the configuration.")
