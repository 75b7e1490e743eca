"""Hierarchical consolidation: patches become one, level by level, and prevalence is counted by program [Eq. 7]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import evolve, field, frozen

from wer.chat import dumps
from wer.errors import PromptTooLong
from wer.records import Json, JsonObject, Message, Sampling, Skill, Usage, content_hash, derive_seed
from wer.skills.cleaning import harmless, plain
from wer.together import together
from wer_trace2skill.asking import Reading, Refusal, Writer, parsed
from wer_trace2skill.conflicts import Patch, conflicts, peaceful, ranked, united
from wer_trace2skill.edits import DEEPENING, KEYS, OPERATIONS, Edit, Operation, read_edit
from wer_trace2skill.telling import edit_schema, told_operations, told_skill

_TURNS = 2

_SYSTEM = """\
You merge patches of the base skill of a frozen tool-using agent, which analysts proposed independently, each from one \
trajectory, into one patch. Reason inductively: an edit with many trajectories behind it ("support"), or one that \
several patches propose in other words, shows a systematic property of the tasks; keep these, and word them generally. \
An edit of one trajectory alone is probably idiosyncratic: leave it out unless it is unique and clearly general. Unite \
duplicates, and settle each conflict, so that no two of your edits contradict each other or change the same place.
{mode}
Answer with one JSON object: "skill": "{skill}" (the base skill's name), {description}"edits", at most {edits}, \
each with "op", "section", "anchor", "text", "lesson" and "from" (the ids of the given edits that it was made from), \
and "dropped" (the ids of recurring edits that you leave out because another one contradicts them):
{operations}"""

_DEEPEN = "The base skill is good: keep what you don't have a reason to change."
_CREATE = (
    "The base skill is a weak draft, or empty: write whole sections where that makes a clear procedure, a numbered "
    '"Workflow" first of all.'
)


@frozen(kw_only=True)
class Merged:
    """What became of a group of patches.

    Attributes:
        counts: What was refused, withheld or done without a model, by kind.
    """

    patch: Patch
    texts: tuple[str, ...] = ()
    usage: Usage = field(factory=Usage)
    counts: Counter[str] = field(factory=Counter)
    levels: int = 0


@frozen(kw_only=True)
class Merger:
    """The merge operator over one base skill."""

    writer: Writer
    base: Skill
    create: bool
    fan_in: int
    max_edits: int
    temperature: float
    max_tokens: int
    seed: int

    async def consolidate(self, patches: Sequence[Patch]) -> Merged:
        """Merge at least one patch, at most ``fan_in`` a call, until one is left.

        Raises:
            ModelError: The model's own failure.
        """
        pool = list(patches)
        texts: list[str] = []
        usage = Usage()
        counts: Counter[str] = Counter()
        levels = 0
        while len(pool) > 1:
            groups = [pool[start : start + self.fan_in] for start in range(0, len(pool), self.fan_in)]
            merged = await together(self._group(group) for group in groups)
            pool = [each.patch for each in merged]
            texts += [text for each in merged for text in each.texts]
            usage = sum((each.usage for each in merged), usage)
            counts.update(sum((each.counts for each in merged), Counter()))
            levels += 1
        last, withheld = peaceful(united(pool[0].edits, self.base.body), self.base.body)
        counts["conflicts withheld"] += len(withheld)
        patch = evolve(pool[0], edits=last[: self.max_edits])
        return Merged(patch=patch, texts=tuple(texts), usage=usage, counts=counts, levels=levels)

    async def _group(self, patches: Sequence[Patch]) -> Merged:
        """One merge; a group that is too long for one request is merged by halves."""
        if len(patches) == 1:
            return Merged(patch=patches[0])
        given = [edit for patch in patches for edit in patch.edits]
        edits = ranked(united(given, self.base.body))
        counts = Counter({"duplicates": len(given) - len(edits)})
        try:
            settled = await self.writer.settle(
                "merger",
                self._messages(edits),
                self._sampling(edits),
                lambda text: self._read(text, edits),
                turns=_TURNS,
            )
        except PromptTooLong:
            return await self._halves(patches, edits, counts)
        counts.update(refusal.kind for refusal in settled.reading.refused)
        said = Merged(patch=Patch(edits=()), texts=settled.texts, usage=settled.usage, counts=counts)
        if settled.reading.value is None:
            return self._by_program(edits, said)
        patch, seen = settled.reading.value
        return self._kept(patch, edits, seen, said)

    async def _halves(self, patches: Sequence[Patch], edits: Sequence[Edit], counts: Counter[str]) -> Merged:
        if len(patches) == 2:
            return self._by_program(edits, Merged(patch=Patch(edits=()), counts=counts))
        middle = len(patches) // 2
        halves = await together(self._group(half) for half in (patches[:middle], patches[middle:]))
        whole = await self._group([half.patch for half in halves])
        return evolve(
            whole,
            texts=tuple(text for each in (*halves, whole) for text in each.texts),
            usage=sum((each.usage for each in halves), whole.usage),
            counts=sum((each.counts for each in halves), whole.counts),
        )

    def _by_program(self, edits: Sequence[Edit], said: Merged) -> Merged:
        """Without a usable answer: what goes together, the most prevalent first."""
        taken, withheld = peaceful(edits, self.base.body)
        counts = said.counts + Counter({"conflicts withheld": len(withheld), "merged by program": 1})
        return evolve(said, patch=Patch(edits=taken[: self.max_edits]), counts=counts)

    def _kept(self, patch: Patch, given: Sequence[Edit], seen: frozenset[int], said: Merged) -> Merged:
        """Add the recurring lessons that the merger neither kept nor dropped, and withhold what clashes."""
        forgotten = [
            edit for number, edit in enumerate(given) if len(edit.support) > 1 and number not in seen
        ]
        body = self.base.body
        taken, withheld = peaceful(united((*patch.edits, *forgotten), body), body)
        counts = said.counts + Counter({"conflicts withheld": len(withheld), "carried over": len(forgotten)})
        return evolve(said, patch=evolve(patch, edits=taken[: self.max_edits]), counts=counts)

    @property
    def _operations(self) -> tuple[Operation, ...]:
        return OPERATIONS if self.create else DEEPENING

    def _sampling(self, edits: Sequence[Edit]) -> Sampling:
        shown = [[edit.op, edit.section, edit.anchor, edit.text, sorted(edit.support)] for edit in edits]
        return Sampling(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=derive_seed(self.seed, "merge", content_hash(shown)),
            json_schema=_schema(self._operations, self.max_edits, create=self.create),
        )

    def _messages(self, edits: Sequence[Edit]) -> tuple[Message, ...]:
        system = _SYSTEM.format(
            skill=self.base.name,
            mode=_CREATE if self.create else _DEEPEN,
            description='"description" (one line on the family of tasks), ' if self.create else "",
            edits=self.max_edits,
            operations=told_operations(self._operations),
        )
        listed = "\n".join(
            dumps(
                {
                    "id": f"E{number}",
                    "support": len(edit.support),
                    **{key: getattr(edit, key) for key in KEYS},
                }
            )
            for number, edit in enumerate(edits, 1)
        )
        clashes = [f"E{one + 1} and E{other + 1}" for one, other in conflicts(edits, self.base.body)]
        parts = [told_skill(self.base), f"# Edits\n{harmless(listed)}"]
        if clashes:
            parts.append("# Conflicts (they change the same place)\n" + "\n".join(clashes))
        return (Message(role="system", content=system), Message(role="user", content="\n\n".join(parts)))

    def _read(self, text: str, given: Sequence[Edit]) -> Reading[tuple[Patch, frozenset[int]]]:
        try:
            found = parsed(text, skill=self.base.name)
            listed = found.get("edits")
            if not isinstance(listed, list) or len(listed) > self.max_edits:
                raise Refusal("nonsense", f"'edits' must be a list of at most {self.max_edits} edits")
        except Refusal as refusal:
            return Reading(value=None, refused=(refusal,))
        edits: list[Edit] = []
        refused: list[Refusal] = []
        seen = _numbers(found.get("dropped"), len(given))
        for each in listed:
            try:
                edits.append(self._edit(each, given))
                seen += _numbers(each["from"], len(given))
            except Refusal as refusal:
                refused.append(refusal)
        body = self.base.body
        for one, other in conflicts(edits, body):
            refused.append(Refusal("conflict", f"edits {one + 1} and {other + 1} change the same place"))
        described = found.get("description")
        description = (
            " ".join(harmless(plain(described)).split())[:1024] if isinstance(described, str) else ""
        )
        patch = Patch(edits=tuple(edits), description=description if self.create else "")
        usable = patch if edits or not refused else None
        value = None if usable is None else (usable, frozenset(seen))
        return Reading(value=value, refused=tuple(refused))

    def _edit(self, found: Json, given: Sequence[Edit]) -> Edit:
        """Read one merged edit; behind it are the trajectories behind all that it was made from."""
        edit = read_edit(found, self.base.body, operations=self._operations)
        sources = _numbers(found.get("from"), len(given))
        if not sources:
            raise Refusal("invented", f"an edit is made from none of the given ones: {edit.text[:80]!r}")
        return evolve(edit, support=frozenset().union(*(given[number].support for number in sources)))


def _numbers(ids: Json, count: int) -> list[int]:
    """Positions of the ids that there are."""
    known = {f"E{number + 1}": number for number in range(count)}
    return (
        [known[each] for each in ids if isinstance(each, str) and each in known]
        if isinstance(ids, list)
        else []
    )


def _schema(operations: tuple[Operation, ...], max_edits: int, *, create: bool) -> JsonObject:
    ids = {"type": "array", "items": {"type": "string"}}
    edit = edit_schema(operations, **{"from": ids})
    properties = {
        "skill": {"type": "string"},
        **({"description": {"type": "string"}} if create else {}),
        "edits": {"type": "array", "maxItems": max_edits, "items": edit},
        "dropped": ids,
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
