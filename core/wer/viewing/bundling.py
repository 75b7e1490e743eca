"""A run as one HTML file: the page with its scripts and styles in it, and the answers that it will ask for."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from attrs import define, field

from wer.errors import StoreError, WerError
from wer.records import JsonObject
from wer.viewing.answers import ANSWERS
from wer.viewing.reading import PAGE, Reading, encoded, reading

MODULES = ("text", "asking", "parts", "charts", "overview", "lineage", "pairs", "skills", "rollouts", "main")
"""The page's scripts, each after those that it imports."""

_CANDIDATES = 400
_BUDGET_BYTES = 6_000_000

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_OUTER = re.compile(r'<script type="module"[^>]*></script>|<link rel="stylesheet"[^>]*>|<meta name="policy">')


def write_file(folder: Path, path: Path) -> str:
    """Write the report, whole or not at all.

    Returns:
        Where it is, and what was left out of it.

    Raises:
        WerError: The name is not that of an HTML file, it can't be written, or the run can't be read.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise WerError(
            f"a report is an HTML file, and {str(path)!r} is not named like one: end it with .html."
        )
    with reading(folder) as run:
        gathered = gather(run)
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.write_bytes(document(folder.name, gathered).encode("utf-8", "replace"))
        scratch.replace(path)
    except OSError as error:
        with suppress(OSError):
            scratch.unlink()
        raise StoreError(
            f"cannot write {str(path)!r}: {error}. Choose another place with --out, or free space there."
        ) from error
    return "\n".join([str(path), *(f"left out: {each}" for each in gathered.left_out)])


@define(kw_only=True)
class Gathered:
    """Answers by the address that the page asks for, as long as there is room for them.

    Attributes:
        left_out: What isn't here, a line each.
    """

    run: Reading
    answers: dict[str, JsonObject] = field(factory=dict)
    left_out: list[str] = field(factory=list)
    size: int = 0

    def add(self, name: str, /, **query: str) -> JsonObject | None:
        """Have an answer, and keep it if there is room."""
        address = "|".join([name, *(f"{key}={query[key]}" for key in sorted(query))])
        if address in self.answers:
            return self.answers[address]
        if self.size > _BUDGET_BYTES:
            return None
        found = ANSWERS[name](self.run, query)
        self.size += len(encoded(found))
        self.answers[address] = found
        return found

    def add_all(self, what: str, wanted: Sequence[tuple[str, Mapping[str, str]]], *, of: int) -> None:
        """Have several; what there is no room for is counted."""
        had = sum(self.add(name, **query) is not None for name, query in wanted)
        if had < of:
            self.left_out.append(f"{of - had} of {of} {what}")


def gather(run: Reading) -> Gathered:
    """Ask for what the page shows first, then for what the first page of each list leads to, while there is room."""
    gathered = Gathered(run=run)
    overview = gathered.add("overview") or {}
    for name in overview["metrics"]:
        gathered.add("curve", name=name)
    for published in (gathered.add("skills") or {})["rows"]:
        _add_skill(gathered, published)
    for contrast in overview["contrasts"]:
        _add_contrast(gathered, contrast)
    _add_evidence(gathered)
    _add_trees(gathered)
    _add_rollouts(gathered)
    return gathered


def _add_skill(gathered: Gathered, published: JsonObject) -> None:
    """A skill, with the candidates and pairs that its lines were written from."""
    found = gathered.add("skill", condition=published["condition"], domain=published["domain"])
    origins = [row["origin"] for row in (found or {"diff": ()})["diff"] if row.get("origin")]
    for origin in origins[:PAGE]:
        gathered.add("candidate", **_place(origin))
        _add_pair(gathered, origin["pair"])


def _add_contrast(gathered: Gathered, contrast: JsonObject) -> None:
    """What one condition mended and broke of another."""
    listed = gathered.add("pairs", base=contrast["base"], better=contrast["better"])
    if listed is None:
        return
    pairs = [row["rollouts"] for row in listed["rows"]]
    gathered.add_all(
        f"pairs of {contrast['better']} and {contrast['base']}", list(_pairs(pairs)), of=listed["total"]
    )


def _add_evidence(gathered: Gathered) -> None:
    listed = gathered.add("pairs")
    if listed is not None:
        pairs = [row["rollouts"] for row in listed["rows"]]
        gathered.add_all("pairs that revisions were written from", list(_pairs(pairs)), of=listed["total"])


def _add_trees(gathered: Gathered) -> None:
    """The revision trees, and of their candidates first those that were retained."""
    listed = gathered.add("tasks")
    tasks = listed["rows"] if listed else []
    wanted = [("tree", {"task": row["task_key"]}) for row in tasks]
    gathered.add_all("revision trees", wanted, of=listed["total"] if listed else 0)
    retained: list[tuple[str, Mapping[str, str]]] = []
    others: list[tuple[str, Mapping[str, str]]] = []
    for _, query in wanted:
        tree = gathered.add("tree", **query) or {"states": (), "candidates": ()}
        parents = {state["parent"] for state in tree["states"]}
        for each in tree["candidates"]:
            (retained if each["id"] in parents else others).append(("candidate", _place(each)))
    places = [*retained, *others]
    gathered.add_all("candidates", places[:_CANDIDATES], of=len(places))


def _add_rollouts(gathered: Gathered) -> None:
    """The newest rollouts as a list, and one by one those of the pairs that are here and those listed."""
    listed = gathered.add("rollouts")
    sides = [
        each[side] for each in list(gathered.answers.values()) for side in ("left", "right") if side in each
    ]
    keys = dict.fromkeys(each["key"] for each in (*sides, *(listed["rows"] if listed else ())))
    total = listed["total"] if listed else 0
    gathered.add_all("rollouts one by one", [("rollout", {"key": key}) for key in keys], of=total)
    if listed and total > len(listed["rows"]):
        gathered.left_out.append(f"{total - len(listed['rows'])} of {total} rows of the list of rollouts")


def _add_pair(gathered: Gathered, rollouts: Sequence[JsonObject]) -> None:
    for name, query in _pairs([rollouts]):
        gathered.add(name, **query)


def _pairs(pairs: Sequence[Sequence[JsonObject]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for rollouts in pairs:
        if len(rollouts) > 1:
            yield "pair", {"a": rollouts[0]["key"], "b": rollouts[1]["key"]}
        elif rollouts:
            yield "rollout", {"key": rollouts[0]["key"]}


def _place(candidate: JsonObject) -> dict[str, str]:
    return {"stage": candidate["stage"], "state": candidate["state"], "index": str(candidate["index"])}


def document(name: str, gathered: Gathered) -> str:
    """The page with everything in it; its policy allows these very scripts and styles, and no other."""
    script, style = bundle(), _read("view.css")
    data = _embedded({"run": name, "answers": gathered.answers, "left_out": gathered.left_out})
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    parts = {
        "<script": f'<script type="application/json" id="data">{data}</script>\n'
        f'<script type="module">{script}</script>',
        "<link": f"<style>{style}</style>",
        "<meta": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
    }
    return _OUTER.sub(lambda match: parts[match[0].split()[0]], _read("index.html"))


def bundle() -> str:
    """All scripts as one: each module is a function that gives what it exports."""
    return "\n".join(map(_module, MODULES))


def _module(name: str) -> str:
    source = _read(f"{name}.js")
    exported = ", ".join(match[2] for match in _EXPORT.finditer(source))
    source = _IMPORT.sub(lambda match: f"const {match[1]} = ${match[2]};", source)
    source = _EXPORT.sub(lambda match: f"{match[1]} {match[2]}", source)
    return f"const ${name} = (() => {{\n{source}\nreturn {{ {exported} }};\n}})();"


def _embedded(data: JsonObject) -> str:
    """JSON that no HTML parser takes for the end of its script, or for anything else."""
    text = encoded(data).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (resources.files("wer.viewing") / "page" / name).read_text("utf-8")
