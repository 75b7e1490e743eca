// Matched pairs: one task, two rollouts, one of which passed; side by side, from where they part.

import { count, el, figure, plural } from "./text.js";
import { ask, inFile } from "./asking.js";
import { chips, clipped, empty, event, link, pager, rolloutHead, section, table, taskHead, to, verdict } from "./parts.js";

export async function pairs(run, query) {
  const [found, { contrasts }] = await Promise.all([
    ask(run, "pairs", { base: query.base, better: query.better, outcome: query.outcome, offset: query.offset }),
    ask(run, "overview"),
  ]);
  const kinds = [
    { title: "what revisions were written from", address: to(run, "pairs"), on: !query.base },
    ...contrasts.map(({ better, base, titles }) => ({ title: titles.join(" against "), address: to(run, "pairs", { base, better }), on: query.base === base && query.better === better })),
  ];
  const titles = contrasts.find(({ better, base }) => query.base === base && query.better === better)?.titles || [query.better, query.base];
  const listed = query.base ? between(run, query, found, titles) : written(run, found);
  return section(
    "Matched pairs",
    query.base ? "the same task and seed, ended differently" : "two rollouts of one task that a revision was written from: a success and a failure, where there were both",
    chips("kinds of pairs", kinds),
    listed,
    pager(found, (offset) => to(run, "pairs", { ...query, offset })),
  );
}

function written(run, found) {
  if (!found.rows.length) return empty("No revision of this run was written from two rollouts (yet).");
  const headings = [{ title: "task" }, { title: "written from it" }, { title: "best reward", class: "number" }, { title: "what the failure was", class: "wide said" }, { title: "", class: "wide" }];
  return table(headings, found.rows.map((row) => [
    link(pairOf(run, row.rollouts), { class: "mono" }, row.task),
    row.written ? [link(to(run, "lineage", { task: row.rollouts[0].task_key, stage: row.stage, state: row.state, index: 0 }), {}, plural(row.written, "candidate")), el("span", { class: "muted mono" }, ` ${row.stage}`)] : el("span", { class: "muted" }, "nothing yet"),
    figure(row.best),
    el("span", { class: "muted" }, row.rollouts[1].passed ? "" : row.rollouts[1].said),
    link(pairOf(run, row.rollouts), { class: "button nowrap" }, "side by side"),
  ]));
}

function between(run, query, found, [titleOfBetter, titleOfBase]) {
  const { base, better } = query;
  const choice = (title, outcome) => ({ title, address: to(run, "pairs", { base, better, outcome }), on: (query.outcome || "") === outcome });
  const headings = [{ title: "task" }, { title: "trial", class: "number" }, { title: titleOfBase }, { title: titleOfBetter }, { title: "what the failure was", class: "wide said" }, { title: "", class: "wide" }];
  return [
    inFile ? el("p", { class: "muted" }, `${count(found.mended)} mended, ${count(found.broken)} broken`) : chips("outcomes", [choice(`all ${count(found.mended + found.broken)}`, ""), choice(`mended ${count(found.mended)}`, "mended"), choice(`broken ${count(found.broken)}`, "broken")]),
    found.rows.length
      ? table(headings, found.rows.map((row) => [
          link(pairOf(run, row.rollouts), { class: "mono" }, row.task),
          count(row.trial + 1),
          verdict(row.rollouts[0].passed),
          verdict(row.rollouts[1].passed),
          el("span", { class: "muted" }, row.rollouts.find((each) => !each.passed)?.said || ""),
          link(pairOf(run, row.rollouts), { class: "button nowrap" }, "side by side"),
        ]))
      : empty("No trial ended differently."),
  ];
}

function pairOf(run, [a, b]) {
  return to(run, "pair", { a: a.key, b: b.key });
}

export async function pair(run, query) {
  const found = await ask(run, "pair", { a: query.a, b: query.b, offset: query.offset });
  const before = found.first;
  const from = found.offset;
  const last = from + found.rows.length;
  return el(
    "div",
    {},
    el("p", {}, link(to(run, "pairs"), {}, "← all pairs")),
    section("Matched pair", before ? `the same for ${plural(before, "event")}, then apart` : "apart from the first event on", taskHead(found.task)),
    el(
      "div",
      { class: "pair" },
      el("div", { class: "sides" }, side(found.left, rolloutHead(run, found.left)), side(found.right, rolloutHead(run, found.right))),
      from > 0 ? el("p", { class: "fold" }, link(to(run, "pair", { a: query.a, b: query.b, offset: "0" }), {}, `${plural(from, "equal event")} before this`)) : null,
      found.rows.map((row, at) => [from + at === before ? el("p", { class: "parting", id: "parting" }, "here they part") : null, sides(run, found, row)]),
      last < found.total ? el("p", { class: "fold" }, link(to(run, "pair", { a: query.a, b: query.b, offset: last }), {}, `${plural(found.total - last, "event")} after this`)) : null,
    ),
  );
}

function sides(run, found, [left, right]) {
  if (left && right && left.kind === right.kind && left.text === right.text) {
    return el("div", { class: "row same" }, event(run, found.left.key, left), event(run, found.right.key, right));
  }
  const paired = left && right && left.kind === right.kind && !left.more && !right.more;
  const [a, b] = paired ? marked(left.text, right.text) : [null, null];
  return el(
    "div",
    { class: "row apart" },
    left ? side(found.left, event(run, found.left.key, left, a)) : el("div", { class: "gap" }),
    right ? side(found.right, event(run, found.right.key, right, b)) : el("div", { class: "gap" }),
  );
}

function side(rollout, ...children) {
  return el("div", { class: rollout.passed ? "side of-passed" : "side of-failed" }, children);
}

// What two texts do not share, between their common beginning and their common end.
function marked(left_text, right_text) {
  const [left, right] = [[...left_text], [...right_text]]; // whole characters: halves of two cannot be shown
  let from = 0;
  const shortest = Math.min(left.length, right.length);
  while (from < shortest && left[from] === right[from]) from += 1;
  let to_end = 0;
  while (to_end < shortest - from && left[left.length - 1 - to_end] === right[right.length - 1 - to_end]) to_end += 1;
  if (from + to_end < shortest / 3) return [null, null];
  const part = (text, start, end) => text.slice(start, end).join("");
  const one = (text) => el("span", {}, part(text, 0, from), el("mark", {}, part(text, from, text.length - to_end)), part(text, text.length - to_end));
  return [one(left), one(right)];
}
