"""``wer merge``: several skills into one, by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from attrs import evolve
from cyclopts import Parameter, validators
from rich.console import Console

from wer import plugins
from wer.contracts import Model
from wer.errors import SkillError
from wer.records import NO_SKILL, Sampling, Skill, derive_seed
from wer.skills import load_skill, save_skill, slug
from wer.writing import merge_messages, read_skill

_TRIES = 3


def merge(
    *skills: Path,
    writer: Annotated[str, Parameter(help="The model that merges, provider/name[@url].")],
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Folder of the merged skill; its name is the skill's.")
    ],
    max_words: Annotated[int, Parameter(validator=validators.Number(gte=20))] = 400,
    seed: int = 0,
) -> None:
    """Merge skills of one family of tasks into one. Nothing is run: measure the result with `wer eval`.

    Args:
        skills: Two or more SKILL.md files or their folders.
        max_words: Length that the merger is asked to keep to.
        seed: Of the merger's sampling.
    """
    if len(skills) < 2:
        raise SkillError(f"{len(skills)} skill given; merging needs at least two")
    if out.exists() or slug(out.name) != out.name:
        raise SkillError(
            f"--out {str(out)!r} must be a new folder whose name can be a skill's: lowercase letters, digits and "
            "single hyphens, such as merged-skill"
        )
    sources = [load_skill(path) for path in skills]
    model = plugins.load().model(writer)
    merged = asyncio.run(_merge(model, sources, max_words=max_words, seed=seed))
    path = save_skill(evolve(merged, name=slug(out.name)), out.parent)
    Console(soft_wrap=True).print(str(path), markup=False)


async def _merge(model: Model, sources: Sequence[Skill], *, max_words: int, seed: int) -> Skill:
    problem = ""
    try:
        for attempt in range(_TRIES):
            sampling = Sampling(max_tokens=4 * max_words, seed=derive_seed(seed, "merge", attempt))
            reply = await model.complete(merge_messages(sources, max_words=max_words), (), sampling)
            base = evolve(NO_SKILL, name=sources[0].name, description=sources[0].description)
            merged, problem = read_skill(reply.text, parent=base)
            if merged is not None:
                return merged
    finally:
        await model.close()
    raise SkillError(
        f"the merger wrote no readable skill in {_TRIES} tries: {problem}. Try another --writer."
    )
