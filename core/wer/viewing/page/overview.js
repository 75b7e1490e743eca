// The first page: where the run stands, what it measured, what the rewards did, what it cost.

import { count, duration, el, figure, percent, plural } from "./text.js";
import { ask, inFile } from "./asking.js";
import { empty, leftOutNote, link, rolloutTable, section, table, to } from "./parts.js";
import { bar, interval, lines, scale } from "./charts.js";

const REWARDS = ["reward", "reward_task", "reward_fmt", "reward_len"];
const TERMS = { reward: "whole", reward_task: "task", reward_fmt: "format", reward_len: "length" };
let chosen = "";
const paces = [];

export async function overview(run) {
  const found = await ask(run, "overview");
  return el(
    "div",
    {},
    head(found),
    leftOutNote(),
    measured(run, found),
    rewards(found),
    await curves(run, found),
    cost(found),
    found.newest.length
      ? section("Newest rollouts", link(to(run, "rollouts"), {}, `all ${count(found.rollouts)}`), rolloutTable(run, found.newest))
      : null,
    settings(found),
  );
}

function head(found) {
  const cap = (value, words) => (value ? el("span", { class: "muted" }, ` of at most ${words}`) : null);
  const total = found.spend.reduce((sum, role) => sum + role.tokens, 0);
  const tiles = [
    ["rollouts", [count(found.rollouts), cap(found.caps.rollouts, count(found.caps.rollouts))]],
    ["candidates scored", [count(found.scored), found.written > found.scored ? el("span", { class: "muted" }, ` of ${count(found.written)} written`) : null]],
    ["tokens", [short(total), cap(found.caps.tokens, short(found.caps.tokens))]],
    ["time", duration(found.times.reduce((sum, each) => sum + (each.s || 0), 0))],
  ];
  const pace = found.at_work && !inFile ? perMinute(found.rollouts) : null;
  if (pace !== null) tiles.push(["rollouts a minute", count(Math.round(pace))]);
  return el(
    "section",
    { class: "head" },
    el("h1", {}, found.name),
    el("p", { class: "stage" }, stage(found)),
    el("dl", { class: "tiles" }, tiles.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
  );
}

function stage(found) {
  if (found.at_work) return `At work (process ${found.process})${found.stage ? `: ${found.stage}` : ""}.`;
  if (found.state !== "ended") return `Ended early; what is finished is stored, and wer ${found.settings.command || "run"} --resume goes on.`;
  return found.table.rows.length ? "Ended, with results." : "Ended.";
}

function short(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  return value >= 1e4 ? `${Math.round(value / 1e3)} k` : count(value);
}

function perMinute(rollouts) {
  paces.push([Date.now(), rollouts]);
  while (paces.length > 40) paces.shift();
  const [[then, before]] = paces;
  const minutes = (Date.now() - then) / 60000;
  return minutes > 0.05 ? (rollouts - before) / minutes : null;
}

function measured(run, found) {
  if (!found.table.rows.length) {
    return section(found.title, null, empty(found.at_work ? "Nothing is measured yet: that is the last thing that a run does." : "Nothing was measured in this run."));
  }
  return section(
    found.title,
    "95 % intervals, clustered by task; n counts tasks",
    found.table.columns.length === 1 ? oneColumn(found.table) : severalColumns(found.table),
    found.contrasts.length ? differences(run, found.contrasts) : null,
    el("ul", { class: "findings" }, found.findings.map((words) => el("li", {}, words))),
    found.choices.length ? el("details", {}, el("summary", {}, "Depth and merge"), el("pre", { class: "plain" }, found.choices.join("\n"))) : null,
  );
}

function oneColumn({ columns, rows }) {
  const headings = [{ title: "condition" }, { title: columns[0] }, { title: scale([0, 100], (value) => value), class: "drawn" }, { title: "n", class: "number" }, { title: "rollouts", class: "number wide" }];
  return table(
    headings,
    rows.map(({ title, cells: [cell] }) => [el("strong", {}, title), points(cell), interval(cell.low, cell.mean, cell.high), count(cell.tasks), count(cell.trials)]),
  );
}

function severalColumns({ columns, rows }) {
  const cell = (estimate) =>
    estimate === null
      ? "–"
      : el("div", { class: "estimate" }, points(estimate), interval(estimate.low, estimate.mean, estimate.high), el("span", { class: "muted" }, `n = ${count(estimate.tasks)}, ${plural(estimate.trials, "rollout")}`));
  return table([{ title: "condition" }, ...columns.map((title) => ({ title }))], rows.map((row) => [el("strong", {}, row.title), ...row.cells.map(cell)]), { class: "results" });
}

function points(estimate) {
  return el("span", { class: "figures nowrap" }, el("span", { class: "big" }, percent(estimate.mean)), el("span", { class: "muted" }, ` [${percent(estimate.low, 0)}, ${percent(estimate.high, 0)}]`));
}

function differences(run, contrasts) {
  const reach = Math.max(10, Math.ceil(10 * Math.max(...contrasts.flatMap((each) => [Math.abs(each.low), Math.abs(each.high)]))) * 10) / 100;
  const range = [-reach, reach];
  const words = { better: "better", worse: "worse", unclear: "can't be told apart" };
  const headings = [
    { title: "difference, points" },
    { title: "" },
    { title: scale(range, (value) => signed(value, 0)), class: "drawn" },
    { title: "p", class: "number" },
    { title: "n", class: "number wide" },
    { title: "finding" },
    { title: "" },
  ];
  const rows = contrasts.map((each) => [
    [each.titles[0], el("span", { class: "muted" }, " − "), each.titles[1]],
    el("span", { class: "figures nowrap" }, el("strong", {}, signed(each.mean, 1)), el("span", { class: "muted" }, ` [${signed(each.low, 1)}, ${signed(each.high, 1)}]`)),
    interval(each.low, each.mean, each.high, range),
    el("span", { title: each.family > 1 ? `after Holm's correction for ${each.family}` : null }, each.p === null ? "–" : each.p < 0.001 ? "< 0.001" : each.p.toPrecision(2)),
    count(each.tasks),
    el("span", { class: each.finding === "unclear" ? "muted nowrap" : each.finding }, words[each.finding]),
    link(to(run, "pairs", { base: each.base, better: each.better }), { class: "nowrap" }, "see the pairs"),
  ]);
  return table(headings, rows, { class: "below" });
}

function signed(value, digits) {
  const points = 100 * value;
  return `${points > 0 ? "+" : points < 0 ? "−" : ""}${Math.abs(points).toFixed(digits)}`;
}

function rewards(found) {
  if (!found.rewards.length) return null;
  const headings = [
    { title: "stage" },
    { title: "mean reward" },
    { title: scale([0, 1], (value) => value), class: "drawn" },
    { title: "task", class: "number" },
    { title: "format", class: "number" },
    { title: "length", class: "number" },
    { title: "candidates", class: "number" },
    { title: "states", class: "number wide" },
  ];
  const rows = found.rewards.map((each) => [
    el("span", { class: "mono" }, each.stage),
    el(
      "span",
      { class: "figures nowrap" },
      el("strong", {}, figure(each.total)),
      each.low === null ? null : el("span", { class: "muted" }, ` [${figure(each.low)}, ${figure(each.high)}]`),
    ),
    interval(each.low, each.total, each.high),
    figure(each.task),
    figure(each.fmt),
    figure(each.len),
    count(each.candidates),
    count(each.states),
  ]);
  return section("Rewards by stage", "95 % intervals over states, whose candidates resemble each other", table(headings, rows));
}

async function curves(run, found) {
  if (!found.metrics.length) return null;
  if (chosen && !found.metrics.includes(chosen)) chosen = "";
  const holder = el("div", { class: "drawing" });
  const draw = async () => {
    const names = chosen ? [chosen] : REWARDS.filter((name) => found.metrics.includes(name));
    const got = await Promise.all(names.map((name) => ask(run, "curve", { name })));
    const series = got.map((each) => ({ title: chosen ? each.name : TERMS[each.name] || each.name, points: each.points }));
    const together = got.length ? got[0].together : 1;
    holder.replaceChildren(
      el("ul", { class: "legend" }, series.map((each, at) => el("li", { class: `s${at}` }, each.title))),
      lines(series),
      el("p", { class: "muted" }, `${plural(got.length ? got[0].steps : 0, "update step")}${together > 1 ? `; each point is the mean of ${together}` : ""}`),
    );
  };
  const choice = el(
    "select",
    { "aria-label": "what is drawn", change: () => { chosen = choice.value; draw(); } },
    el("option", { value: "" }, "rewards"),
    found.metrics.map((name) => el("option", { value: name, selected: name === chosen }, name)),
  );
  await draw();
  return section("By update step", choice, holder);
}

function cost(found) {
  if (!found.spend.length && !found.times.length) return null;
  const most = Math.max(1, ...found.spend.map((each) => each.tokens));
  const spend = table(
    [
      { title: "role" },
      { title: "", class: "wide drawn" },
      { title: "calls", class: "number" },
      { title: "prompt", class: "number" },
      { title: "cached", class: "number" },
      { title: "completion", class: "number" },
      { title: "USD", class: "number" },
    ],
    found.spend.map((each) => [each.role, bar(each.tokens / most), each.calls, each.prompt, each.cached, each.completion, each.usd]),
  );
  const longest = Math.max(1, ...found.times.map((each) => each.s || 0));
  const times = table(
    [{ title: "stage" }, { title: "", class: "wide" }, { title: "time", class: "number" }],
    found.times.map((each) => [each.stage, bar((each.s || 0) / longest), duration(each.s)]),
  );
  return el(
    "div",
    { class: "two" },
    section("Cost by role", "tokens", found.spend.length ? spend : empty("No model was called yet.")),
    section("Time by stage", null, found.times.length ? times : empty("No stage has ended yet.")),
  );
}

function settings(found) {
  return section(
    "How it was run",
    null,
    el("dl", { class: "settings" }, Object.entries(found.settings).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { class: "mono" }, value)))),
  );
}
