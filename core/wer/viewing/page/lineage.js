// The revision tree: tasks with the best of each stage, then one task's skills from the seed on.

import { count, el, figure, percent, plural, svg } from "./text.js";
import { ask } from "./asking.js";
import { clipped, diff, empty, link, pager, rolloutTable, section, table, taskHead, to, verdict } from "./parts.js";

const ACROSS = 196;
const DOWN = 27;

export async function lineage(run, query) {
  if (query.task) return oneTask(run, query);
  const found = await ask(run, "tasks", { offset: query.offset });
  if (!found.total) return section("Lineage", null, empty("No skill was revised in this run (yet)."));
  const headings = [{ title: "task" }, { title: "domain" }, { title: "states", class: "number" }, { title: "best reward of each stage" }];
  const row = (each) => [
    link(to(run, "lineage", { task: each.task_key }), { class: "mono" }, each.task),
    el("span", { class: "muted" }, each.domain),
    count(each.states),
    el("span", { class: "strip" }, each.stages.map((stage) => cell(stage))),
  ];
  return section(
    "Lineage",
    `${plural(found.total, "task")} that skills were revised for`,
    table(headings, found.rows.map(row)),
    pager(found, (offset) => to(run, "lineage", { offset })),
  );
}

function cell(stage) {
  const words = `${stage.stage}: best reward ${figure(stage.best)}, best task score ${figure(stage.task)}, ${plural(stage.written, "candidate")}`;
  return el("span", { class: `heat h${heat(stage.best)}`, title: words }, figure(stage.best));
}

function heat(reward) {
  return reward === null || reward === undefined ? "x" : Math.min(9, Math.floor(reward * 10));
}

async function oneTask(run, query) {
  const found = await ask(run, "tree", { task: query.task });
  const panel = el("aside", { class: "panel", "aria-live": "polite", tabindex: "-1" }, empty("Choose a skill in the tree to see what changed in it, on seeing what, and what came of it."));
  const holder = el("div", { class: "tree scroll" });
  const open = async (candidate, moved) => {
    const place = { stage: candidate.stage, state: candidate.state, index: candidate.index };
    history.replaceState(null, "", to(run, "lineage", { task: query.task, ...place }));
    holder.querySelectorAll("[aria-current]").forEach((each) => each.removeAttribute("aria-current"));
    holder.querySelector(`[data-place="${placeOf(candidate)}"]`)?.setAttribute("aria-current", "true");
    panel.replaceChildren(await candidatePanel(run, place).catch((error) => empty(error.message)));
    if (moved) panel.focus({ preventScroll: window.innerWidth > 1000 });
  };
  const only = el("input", { type: "checkbox", change: () => draw() });
  const draw = () => holder.replaceChildren(drawn(found, only.checked, open));
  draw();
  const wanted = found.candidates.find((each) => each.stage === query.stage && each.state === query.state && String(each.index) === query.index);
  const best = found.candidates.reduce((a, b) => ((b.reward?.total ?? -1) > (a?.reward?.total ?? -1) ? b : a), null);
  if (wanted || best) await open(wanted || best, false);
  return el(
    "div",
    {},
    el("p", {}, link(to(run, "lineage"), {}, "← all tasks")),
    section("Revision tree", null, taskHead(found.task)),
    el(
      "div",
      { class: "beside" },
      el("div", {}, legend(only), holder, leftOut(found), publishedAs(run, found.published)),
      panel,
    ),
  );
}

function legend(only) {
  return el(
    "p",
    { class: "legend-line muted" },
    el("label", {}, only, " only what was retained"),
    el("span", {}, "darker: more reward"),
    el("span", { class: "ring-key" }, "retained: the next stage began from it"),
    el("span", {}, "p/n: rollouts that passed"),
  );
}

function leftOut(found) {
  const { states, candidates } = found.left_out;
  if (!states && !candidates) return null;
  return el("p", { class: "muted" }, `Not drawn: ${plural(states, "state")} and ${plural(candidates, "candidate")}.`);
}

function publishedAs(run, published) {
  if (!published.length) return null;
  return el(
    "p",
    { class: "published" },
    "Merged with those of the domain's other tasks into: ",
    published.map((each, at) => [at ? ", " : "", link(to(run, "skills", { condition: each.condition, domain: each.domain }), {}, each.title)]),
  );
}

function placeOf(candidate) {
  return `${candidate.state}-${candidate.index}-${candidate.stage.replace(/[^\w/]/g, "")}`;
}

// A node is a skill: a seed at the left, what was written for it to its right, and so on.
function grown(found, onlyRetained) {
  const byState = new Map();
  for (const each of found.candidates) byState.set(each.state, [...(byState.get(each.state) || []), each]);
  const ids = new Set(found.candidates.map((each) => each.id));
  const byParent = new Map();
  for (const state of found.states) {
    const parent = ids.has(state.parent) ? state.parent : "";
    byParent.set(parent, [...(byParent.get(parent) || []), state]);
  }
  const known = new Set();
  const below = (states) => states.flatMap((state) => (byState.get(state.id) || []).map((candidate) => node(candidate)));
  const node = (candidate) => {
    const states = known.has(candidate.id) ? [] : byParent.get(candidate.id) || [];
    known.add(candidate.id);
    return { candidate, retained: byParent.has(candidate.id), children: below(states) };
  };
  const seeds = new Map();
  for (const state of byParent.get("") || []) seeds.set(state.skill_id, [...(seeds.get(state.skill_id) || []), state]);
  const roots = [...seeds.values()].map((states) => ({ seed: states[0], children: below(states) }));
  if (onlyRetained) roots.forEach(pruned);
  return roots;
}

function pruned(node) {
  node.children = node.children.filter((child) => child.retained);
  node.children.forEach(pruned);
}

function drawn(found, onlyRetained, open) {
  const nodes = [];
  let y = 0;
  let deepest = 0;
  const place = (node, depth) => {
    deepest = Math.max(deepest, depth);
    nodes.push(node);
    let stage = null;
    const heights = node.children.map((child) => {
      if (child.candidate.stage !== stage) {
        stage = child.candidate.stage;
        child.heading = stage;
        y += 18;
      }
      return place(child, depth + 1);
    });
    node.depth = depth;
    node.y = heights.length ? (node.candidate ? heights[0] : (heights[0] + heights[heights.length - 1]) / 2) : (y += DOWN) - DOWN / 2;
    if (!node.candidate) node.y = heights.length ? heights[0] : node.y;
    return node.y;
  };
  grown(found, onlyRetained).forEach((root) => place(root, 0));
  const width = (deepest + 1) * ACROSS + 20;
  const x = (node) => 16 + node.depth * ACROSS;
  const edges = nodes.flatMap((node) => node.children.map((child) => edge(x(node), node.y, x(child), child.y, !node.candidate)));
  return svg(
    "svg",
    { width, height: y + 16, viewBox: `0 -4 ${width} ${y + 16}`, role: "group", "aria-label": "revision tree" },
    edges,
    nodes.map((node) => (node.candidate ? leaf(node, x(node), open) : seed(node, x(node)))),
  );
}

function edge(x, y, to_x, to_y, root) {
  const from = root ? x + 9 : x + 122;
  const turn = to_x - 62;
  return svg("path", { class: "edge", d: `M${from} ${y}${to_y === y ? "" : `H${turn}C${turn + 30} ${y} ${turn + 8} ${to_y} ${turn + 38} ${to_y}`}H${to_x - 12}` });
}

function seed(node, x) {
  return svg("g", { class: "node seed" }, svg("rect", { x: x - 8, y: node.y - 8, width: 16, height: 16, rx: 4 }), svg("text", { x: x + 14, y: node.y - 7 }, node.seed.skill === "no skill" ? "no skill" : "seed skill"));
}

function leaf(node, x, open) {
  const { candidate } = node;
  const reward = candidate.reward;
  const words = `${candidate.stage}, candidate ${candidate.index}: ${reward ? `reward ${figure(reward.total)}, ${candidate.passed} of ${candidate.rollouts} passed` : "not scored yet"}${candidate.readable ? "" : ", no readable skill"}${node.retained ? ", retained" : ""}`;
  const act = (happened) => { happened.preventDefault(); open(candidate, true); };
  return svg(
    "g",
    {},
    node.heading ? svg("text", { x: x - 8, y: node.y - 14, class: "stage" }, svg("title", {}, node.heading), within(node.heading)) : null,
    svg(
      "a",
      { href: "#", class: `node${node.retained ? " retained" : ""}${candidate.readable ? "" : " unreadable"}`, "data-place": placeOf(candidate), "aria-label": words, click: act },
      svg("title", {}, words),
      svg("rect", { class: "reach", x: x - 13, y: node.y - 12, width: 130, height: 24, rx: 6 }),
      node.retained ? svg("circle", { cx: x, cy: node.y, r: 10, class: "ring" }) : null,
      svg("circle", { cx: x, cy: node.y, r: 7, class: `h${heat(reward?.total)}` }),
      svg("text", { x: x + 15, y: node.y + 4 }, reward ? figure(reward.total) : "…", reward ? svg("tspan", { class: "soft", dx: 7 }, candidate.readable ? `${candidate.passed}/${candidate.rollouts}` : "unreadable") : null),
    ),
  );
}

// A stage's name as far as there is room above a node: its beginning tells the method, its end the round.
function within(stage) {
  return stage.length > 27 ? `${stage.slice(0, 12)}…${stage.slice(-14)}` : stage;
}

export async function candidatePanel(run, place) {
  const found = await ask(run, "candidate", place);
  const reward = found.reward;
  return el(
    "div",
    {},
    el("h3", {}, found.after || "No readable skill"),
    el("p", { class: "muted" }, el("span", { class: "mono" }, found.stage), ` · candidate ${found.index}`, found.retained.length ? " · retained" : ""),
    reward
      ? el("dl", { class: "tiles small" }, [["reward", reward.total], ["task", reward.task], ["format", reward.fmt], ["length", reward.len]].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, figure(value)))))
      : empty("Not scored yet."),
    found.problem ? el("p", { class: "problem" }, found.problem) : null,
    el("h4", {}, "Written on seeing"),
    seen(run, found.evidence),
    found.diff.length ? [el("h4", {}, `What changed in ${found.before}`), found.description ? el("p", { class: "muted" }, found.description) : null, diff(found.diff)] : null,
    found.text.text ? [el("h4", {}, "What was written"), el("pre", {}, clipped(found.text))] : null,
    found.reasoning.text ? el("details", {}, el("summary", {}, "Reasoning"), el("pre", {}, clipped(found.reasoning))) : null,
    el("h4", {}, "What came of it"),
    found.rollouts.length ? outcomes(run, found.rollouts) : empty("It was not run."),
    found.scripts.length ? el("p", { class: "muted" }, `Scripts: ${found.scripts.join(", ")}`) : null,
  );
}

function seen(run, evidence) {
  if (!evidence.length) return empty("No rollout: from the task and its tools alone.");
  const list = el("ul", { class: "plain-list" }, evidence.map((each) => el("li", {}, verdict(each.passed), " ", link(to(run, "rollout", { key: each.key }), { class: "mono" }, each.key.slice(0, 8)), el("span", { class: "muted" }, ` ${plural(each.steps, "step")} · ${each.said || each.end}`))));
  if (evidence.length < 2) return list;
  const [a, b] = evidence;
  return [list, link(to(run, "pair", { a: a.key, b: b.key }), { class: "button" }, "see the pair side by side")];
}

function outcomes(run, rollouts) {
  const passed = rollouts.filter((each) => each.passed).length;
  return [
    el("p", { class: "muted" }, `${passed} of ${rollouts.length} passed (${percent(passed / rollouts.length, 0)} %)`),
    el("ul", { class: "plain-list" }, rollouts.map((each) => el("li", {}, verdict(each.passed), " ", link(to(run, "rollout", { key: each.key }), { class: "mono" }, each.key.slice(0, 8)), el("span", { class: "muted" }, ` ${plural(each.steps, "step")}${each.said ? ` · ${each.said}` : ""}`)))),
  ];
}
