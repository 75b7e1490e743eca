// Published skills: what changed in them, and the rollouts that each new line was written from.

import { el, percent, plural } from "./text.js";
import { ask, inFile } from "./asking.js";
import { chips, clipped, diff, empty, link, section, to, verdict } from "./parts.js";

const ORDER = ["refined", "untrained", "new", "skill", "seed"];

export async function skills(run, query) {
  const { rows } = await ask(run, "skills");
  if (!rows.length) return section("Skills", null, empty("This run has published no skill (yet): that comes before the last measurement."));
  const best = [...rows].sort((a, b) => rank(a) - rank(b))[0];
  const now = rows.find((each) => each.condition === query.condition && each.domain === query.domain) || best;
  const domains = [...new Set(rows.map((each) => each.domain))];
  const found = await ask(run, "skill", { condition: now.condition, domain: now.domain, base: query.base });
  const here = rows.filter((each) => each.domain === now.domain);
  return el(
    "div",
    {},
    section(
      "Skills",
      null,
      domains.length > 1 ? chips("domains", domains.map((domain) => ({ title: domain, address: to(run, "skills", { domain, condition: rows.find((each) => each.domain === domain).condition }), on: domain === now.domain }))) : null,
      chips("conditions", here.map((each) => ({ title: each.title, address: to(run, "skills", { domain: now.domain, condition: each.condition }), on: each.condition === now.condition }))),
    ),
    el("div", { class: "two uneven" }, changes(run, found), whole(found)),
  );
}

function rank({ condition }) {
  const at = ORDER.indexOf(condition);
  return at < 0 ? ORDER.length : at;
}

function changes(run, found) {
  const traced = found.diff.filter((row) => row.sign === "+" && row.text.trim());
  const known = traced.filter((row) => row.origin);
  const note = `${known.length} of ${plural(traced.length, "new line")} traced to a revision`;
  const others = [{ condition: "none", title: "no skill" }, ...found.bases];
  const compared = ({ condition, title }) => ({ title: `from ${title}`, address: to(run, "skills", { domain: found.domain, condition: found.condition, base: condition }), on: condition === found.base.condition });
  return section(
    found.base.condition === "none" ? "Its lines" : `Changes to the ${found.base.title}`,
    traced.length && found.revised ? note : null,
    inFile || others.length < 2 ? null : chips("compared with", others.map(compared)),
    found.diff.length ? diff(found.diff, (row) => (found.revised && row.sign === "+" && row.text.trim() ? origin(run, row.origin) : null)) : empty("The two are equal."),
  );
}

function origin(run, from) {
  if (!from) return el("p", { class: "origin muted" }, "written in the merge: no revision has a line like it");
  const how = from.likeness === 1 ? "from" : `reworded (${percent(from.likeness, 0)} % alike) from`;
  const [a, b] = from.pair;
  return el(
    "p",
    { class: "origin" },
    el("span", { class: "muted" }, `${how} `),
    link(to(run, "lineage", { task: from.task_key, stage: from.stage, state: from.state, index: from.index }), {}, `${from.stage}, ${from.task}`),
    el("span", { class: "muted" }, ` · ${from.passed} of ${from.rollouts} passed after it · on seeing `),
    b
      ? link(to(run, "pair", { a: a.key, b: b.key }), {}, "a matched pair ", verdict(a.passed), " ", verdict(b.passed))
      : a ? link(to(run, "rollout", { key: a.key }), {}, "one rollout ", verdict(a.passed)) : "no rollout",
  );
}

function whole(found) {
  return section(
    found.name || "unnamed",
    `${plural(found.words, "word")} · ${found.skill_id}`,
    el("pre", { class: "skill" }, clipped(found.text)),
    found.scripts.length ? el("p", { class: "muted" }, `Scripts: ${found.scripts.join(", ")}`) : null,
  );
}
