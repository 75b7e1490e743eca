"""One skill a domain out of many, written by a model in the merger's role."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from wer.loop.opening import Domain, Run
from wer.loop.seeding import Scanned
from wer.records import NO_SKILL, Sampling, Skill, content_hash, derive_seed
from wer.skills import slug
from wer.together import together
from wer.writing import merge_messages, read_skill

_FAN_IN = 8
_TRIES = 3


async def merge(run: Run, domain: Domain, sources: Sequence[Scanned], *, label: str) -> Skill:
    """Merge a domain's skills, the best ``merge.max_sources`` of them, at most eight at a time, into one.

    When the merger writes nothing readable in three tries, the source with the highest
    share of passes stands in, and the run says so.
    """
    ranked = sorted(sources, key=lambda source: -source.share)
    skills = list({source.skill.id: source.skill for source in ranked if not source.skill.empty}.values())
    skills = skills[: run.config.merge.max_sources or None]
    if not skills:
        return NO_SKILL
    while len(skills) > 1:
        groups = [skills[i : i + _FAN_IN] for i in range(0, len(skills), _FAN_IN)]
        skills = await together(_merged(run, domain, group, label) for group in groups)
    return evolve(skills[0], name=slug(domain.name))


async def _merged(run: Run, domain: Domain, skills: Sequence[Skill], label: str) -> Skill:
    if len(skills) == 1:
        return skills[0]
    spec = run.config.merge_writer or run.config.writer or run.config.executor
    model = run.role("merger", spec)
    base = evolve(NO_SKILL, name=slug(domain.name), description=skills[0].description)
    for attempt in range(_TRIES):
        key = content_hash([[skill.id for skill in skills], model.identity, run.config.seed, attempt])
        text = run.store.document("merge", key)
        if text is None:
            sampling = Sampling(
                temperature=run.config.training.temperature,
                max_tokens=run.config.merge.max_tokens,
                seed=derive_seed(run.config.seed, "merge", key),
            )
            messages = merge_messages(skills, max_words=run.config.merge.max_words)
            text = (await model.complete(messages, (), sampling)).text
            run.store.put_document("merge", key, text)
        merged, problem = read_skill(text, parent=base)
        if merged is not None:
            return merged
    run.display.say(
        f"{label}, {domain.name}: the merger wrote no readable skill ({problem}); the best source stands in"
    )
    return skills[0]
