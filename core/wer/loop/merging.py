"""One skill a domain out of many, written by a model in the merger's role."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from wer.configuration import MergeConfig
from wer.contracts import Model
from wer.loop.domains import Domain
from wer.loop.opening import Run
from wer.loop.roles import specs
from wer.loop.seeding import Scanned
from wer.records import NO_SKILL, Sampling, Skill, content_hash, derive_seed
from wer.skills import slug
from wer.store import Store
from wer.together import together
from wer.writing import merge_messages, read_skill

_FAN_IN = 8
_TRIES = 3


@frozen(kw_only=True)
class Merger:
    """A model that merges skills, each answer stored as it is written.

    Attributes:
        model: In the merger's role: metered and retried.
        seed: Of its sampling.
        temperature: Likewise.
        refusal: Why a merged skill may not be used; empty when it may.
        unreadable: Told why, when it wrote nothing readable in three tries; may raise.
    """

    model: Model
    store: Store
    settings: MergeConfig
    seed: int
    temperature: float
    unreadable: Callable[[str], None]
    refusal: Callable[[Skill], str] = lambda skill: ""

    async def merge(self, skills: Sequence[Skill], *, name: str) -> Skill:
        """Merge at least one skill, at most eight at a time, into one of this name.

        Scripts stay as they are; of two with one path, that of the earlier skill.

        Where nothing readable was written, and `unreadable` does not raise, the first of the
        eight stands in.
        """
        merged = list(skills)
        while len(merged) > 1:
            groups = [merged[start : start + _FAN_IN] for start in range(0, len(merged), _FAN_IN)]
            merged = await together(self._one(group, name) for group in groups)
        return evolve(merged[0], name=name)

    async def _one(self, skills: Sequence[Skill], name: str) -> Skill:
        if len(skills) == 1:
            return skills[0]
        scripts = {path: text for skill in reversed(skills) for path, text in skill.scripts.items()}
        base = evolve(NO_SKILL, name=name, description=skills[0].description, scripts=scripts)
        problem = ""
        for attempt in range(_TRIES):
            merged, problem = read_skill(await self._text(skills, name, attempt), parent=base)
            if merged is not None:
                problem = self.refusal(merged)
                if not problem:
                    return merged
        self.unreadable(problem)
        return skills[0]

    async def _text(self, skills: Sequence[Skill], name: str, attempt: int) -> str:
        """Ask for a merged skill. Domains that merge the same skills side by side have a sample each."""
        key = content_hash([name, [skill.id for skill in skills], self.model.identity, self.seed, attempt])
        text = self.store.document("merge", key)
        if text is None:
            sampling = Sampling(
                temperature=self.temperature,
                max_tokens=self.settings.max_tokens,
                seed=derive_seed(self.seed, "merge", key),
            )
            messages = merge_messages(skills, max_words=self.settings.max_words)
            text = (await self.model.complete(messages, (), sampling)).text
            self.store.put_document("merge", key, text)
        return text


def merge_calls(sources: int) -> int:
    """How often the model is asked for one skill of so many, when each answer can be read."""
    calls = 0
    while sources > 1:
        whole, rest = divmod(sources, _FAN_IN)
        calls += whole + (rest > 1)
        sources = whole + (rest > 0)
    return calls


def merger(run: Run, unreadable: Callable[[str], None], refusal: Callable[[Skill], str]) -> Merger:
    """Make the merger that a run's configuration names."""
    return Merger(
        model=run.role(run.paying("merger"), specs(run.config)["merge_writer"]),
        store=run.store,
        settings=run.config.merge,
        seed=run.config.seed,
        temperature=run.config.training.temperature,
        unreadable=unreadable,
        refusal=refusal,
    )


async def merge(run: Run, domain: Domain, sources: Sequence[Scanned], *, label: str) -> Skill:
    """Merge a domain's skills, the best ``merge.max_sources`` of them, into one.

    When the merger writes nothing readable, the source with the highest share of passes
    stands in, and the run says so. Which tasks each merged skill came from is stored.
    """
    ranked = sorted(sources, key=lambda source: -source.share)
    skills = list({source.skill.id: source.skill for source in ranked if not source.skill.empty}.values())
    skills = skills[: run.config.merge.max_sources or None]
    if not skills:
        return NO_SKILL

    def stand_in(problem: str) -> None:
        run.display.say(
            f"{label}, {domain.name}: the merger wrote no readable skill ({problem}); the best source stands in"
        )

    def refusal(skill: Skill) -> str:
        return run.screen.refusal(skill, domain.train)

    merged = await merger(run, stand_in, refusal).merge(skills, name=slug(domain.name))
    if len(skills) > 1:
        tasks = {
            skill.id: [source.task.key for source in ranked if source.skill.id == skill.id]
            for skill in skills
        }
        run.store.put_document("sources", f"{run.staged(label)} {domain.name} {merged.id}", json.dumps(tasks))
    return merged


async def merge_all(run: Run, by_domain: Mapping[str, Sequence[Scanned]], label: str) -> Mapping[str, Skill]:
    """Merge each domain's skills into one."""
    run.display.stage(f"merging the {label} skills", len(by_domain), unit="domains")
    domains: Mapping[str, Domain] = {domain.name: domain for domain in run.domains}
    merged = await together(
        merge(run, domains[name], sources, label=label) for name, sources in by_domain.items()
    )
    return dict(zip(by_domain, merged, strict=True))
