// What several pages are made of: links, badges, tables, pagers, diffs, events.

import { count, el, figure, plural, short } from "./text.js";
import { ask, inFile, leftOut } from "./asking.js";

export function to(run, page, query = {}) {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const words = entries.length ? `?${new URLSearchParams(entries)}` : "";
  return `#/${encodeURIComponent(run)}/${page}${words}`;
}

export function link(address, given, ...children) {
  return el("a", { href: address, ...given }, children);
}

export function verdict(passed) {
  return el("span", { class: passed ? "verdict passed" : "verdict failed" }, passed ? "passed" : "failed");
}

export function section(title, note, ...children) {
  return el(
    "section",
    {},
    el("div", { class: "heading" }, el("h2", {}, title), note ? el("p", { class: "muted" }, note) : null),
    children,
  );
}

export function empty(words) {
  return el("p", { class: "empty" }, words);
}

export function table(headings, rows, given = {}) {
  const cells = (row) => row.map((cell, at) => el("td", { class: headings[at].class }, cell));
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      given,
      el("thead", {}, el("tr", {}, headings.map((each) => el("th", { scope: "col", class: each.class }, each.title)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))),
    ),
  );
}

export function pager(found, address) {
  if (found.total <= found.limit && !found.offset) return null;
  const last = Math.min(found.total, found.offset + found.limit);
  const previous = Math.max(0, found.offset - found.limit);
  const step = (words, offset, there) =>
    there ? link(address(offset), { class: "button" }, words) : el("span", { class: "button off" }, words);
  return el(
    "nav",
    { class: "pager", "aria-label": "pages" },
    step("← earlier", previous, found.offset > 0),
    el("span", { class: "figures" }, `${count(found.offset + 1)}–${count(last)} of ${count(found.total)}`),
    step("later →", last, last < found.total),
  );
}

export function chips(label, choices) {
  return el(
    "nav",
    { class: "chips", "aria-label": label },
    choices.map(({ title, address, on }) => link(address, { class: "chip", "aria-current": on ? "true" : null }, title)),
  );
}

export function rolloutTable(run, rows) {
  const headings = [
    { title: "verdict" },
    { title: "task" },
    { title: "skill" },
    { title: "steps", class: "number" },
    { title: "score", class: "number" },
    { title: "ended", class: "wide" },
    { title: "what the verifier found", class: "wide said" },
  ];
  const row = (each) => [
    verdict(each.passed),
    link(to(run, "rollout", { key: each.key }), { class: "mono" }, each.task),
    el("span", { class: "nowrap" }, each.skill, " ", each.skill === "no skill" ? null : el("span", { class: "muted mono" }, short(each.skill_id))),
    count(each.steps),
    figure(each.score),
    each.end,
    el("span", { class: "muted" }, each.said),
  ];
  return table(headings, rows.map(row), { class: "rollouts" });
}

export function diff(rows, origin = () => null) {
  const names = { "+": "added", "-": "removed", "=": "kept", "…": "rest" };
  return el(
    "ol",
    { class: "diff" },
    rows.map((row) =>
      el(
        "li",
        { class: names[row.sign] },
        el("span", { class: "sign", "aria-label": names[row.sign] }, row.sign === "=" ? "" : row.sign === "-" ? "−" : row.sign),
        el("span", { class: "line" }, row.text || "\u00a0", row.more ? el("span", { class: "muted" }, ` … ${plural(row.more, "more character")}`) : null),
        origin(row),
      ),
    ),
  );
}

export function clipped(found, ask_more = null) {
  const body = el("span", {}, found.text);
  if (!found.more) return body;
  const words = `… ${plural(found.more, "more character")}`;
  if (inFile || !ask_more) return el("span", {}, body, el("span", { class: "muted" }, words));
  const button = el("button", {
    type: "button",
    class: "more",
    click: async () => {
      button.disabled = true;
      const length = [...found.text].length; // the server counts characters, and not their halves
      const rest = await ask_more(length);
      button.replaceWith(clipped(rest, (more) => ask_more(length + more)));
    },
  }, words);
  return el("span", {}, body, button);
}

export function event(run, key, each, body = null) {
  const more = (from) => ask(run, "event", { key, at: each.at, from });
  return el(
    "div",
    { class: `event ${each.kind.replace(/[^a-z]/g, "-")}` },
    el("span", { class: "kind" }, each.kind),
    el("div", { class: "words" }, body || clipped(each, more)),
  );
}

export function rolloutHead(run, found, label) {
  return el(
    "div",
    { class: "rollout-head" },
    el("div", {}, verdict(found.passed), " ", label ? el("strong", {}, label, " ") : null, link(to(run, "rollout", { key: found.key }), { class: "mono" }, short(found.key))),
    el(
      "p",
      { class: "muted" },
      found.skill,
      found.skill === "no skill" ? null : [" ", el("span", { class: "mono" }, short(found.skill_id))],
      ` · seed ${found.seed} · ${plural(found.steps, "step")} · score ${figure(found.score)}`,
    ),
    found.diagnostics && found.diagnostics.length
      ? el("ul", { class: "diagnostics" }, found.diagnostics.map((words) => el("li", {}, words)))
      : null,
  );
}

export function taskHead(task) {
  return el(
    "div",
    { class: "task" },
    el("p", { class: "muted" }, el("span", { class: "mono" }, task.id), ` · ${task.domain} · ${task.split} split`),
    task.turns.map((turn) => el("blockquote", {}, clipped(turn))),
    task.marks.map((mark) => el("p", { class: "muted" }, `Note: ${mark}.`)),
  );
}

export function leftOutNote() {
  if (!leftOut.length) return null;
  return el(
    "details",
    { class: "left-out" },
    el("summary", {}, "What is left out of this file"),
    el("ul", {}, leftOut.map((each) => el("li", {}, each))),
  );
}
