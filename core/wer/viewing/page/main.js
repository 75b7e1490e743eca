// Which page is shown, and that it follows the run while that is at work.

import { el } from "./text.js";
import { ask, inFile, runs } from "./asking.js";
import { empty, link, pager, table, section, to } from "./parts.js";
import { overview } from "./overview.js";
import { lineage } from "./lineage.js";
import { pair, pairs } from "./pairs.js";
import { skills } from "./skills.js";
import { rollout, rollouts } from "./rollouts.js";

const PAGES = { overview, lineage, pairs, pair, skills, rollouts, rollout };
const TABS = { overview: "Overview", lineage: "Lineage", pairs: "Pairs", skills: "Skills", rollouts: "Rollouts" };
const WITHIN = { pair: "pairs", rollout: "rollouts" };
const LIVE = ["overview", "rollouts"];
const SOON_MS = 2000;
const LATER_MS = 8000;

const main = document.getElementById("main");
const top_ = document.getElementById("top");
let first = "";
let pulse = null;
let drawing = 0;
let failed = false; // what is shown is why nothing is shown
let lost = false; // the server did not answer when last asked

function here() {
  const [path, words] = location.hash.replace(/^#\/?/, "").split("?");
  const [run, page] = path.split("/").map(decoded);
  const known = page === "runs" || Object.hasOwn(PAGES, page);
  return { run: run || first, page: known ? page : "overview", query: Object.fromEntries(new URLSearchParams(words || "")) };
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

async function show({ moved = true } = {}) {
  const mine = ++drawing;
  const { run, page, query } = here();
  bar(run, page);
  if (moved) main.setAttribute("aria-busy", "true");
  let content;
  try {
    content = page === "runs" ? await runList(query) : await PAGES[page](run, query);
    failed = false;
  } catch (error) {
    failed = true;
    content = el("div", { class: "problem" }, el("p", {}, error.message), el("p", {}, link(to(run, "overview"), {}, "Overview")));
  }
  if (mine !== drawing) return;
  const keep = moved ? () => {} : unfolded();
  main.replaceChildren(content);
  keep();
  main.removeAttribute("aria-busy");
  document.title = `${TABS[WITHIN[page] || page] || "Runs"} · ${run} · WER`;
  if (moved) {
    window.scrollTo(0, 0);
    main.querySelector("#parting")?.scrollIntoView({ block: "center" });
    main.focus({ preventScroll: true });
  }
}

// What a reader has opened and where the keyboard is, to have it again when the same page is drawn anew.
function unfolded() {
  const open = [...main.querySelectorAll("details")].map((each) => each.open);
  const at = main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  return () => {
    main.querySelectorAll("details").forEach((each, place) => { each.open = open[place] || false; });
    if (at) [...main.querySelectorAll("a")].find((each) => each.getAttribute("href") === at)?.focus({ preventScroll: true });
  };
}

function standing() {
  if (lost) return "no answer";
  return pulse === null ? "" : pulse.at_work ? "at work" : "ended";
}

function bar(run, page) {
  const tab = ([name, title]) => link(to(run, name), { "aria-current": (WITHIN[page] || page) === name ? "page" : null }, title);
  const state = inFile
    ? el("span", { class: "state" }, "report")
    : el("span", { class: pulse?.at_work && !lost ? "state live" : "state" }, standing());
  top_.replaceChildren(
    el(
      "div",
      { class: "bar" },
      link(inFile ? to(run, "overview") : to(run, "runs"), { class: "mark", title: inFile ? null : "all runs" }, "WER"),
      el("span", { class: "run mono", title: run }, run),
      state,
      el("nav", { "aria-label": "pages of the run" }, Object.entries(TABS).map(tab)),
    ),
  );
}

async function runList(query) {
  const found = await runs({ offset: query.offset || "0" });
  const headings = [{ title: "run" }, { title: "state" }, { title: "command" }, { title: "environment" }, { title: "backend", class: "wide" }, { title: "rollouts", class: "number" }, { title: "begun", class: "wide" }];
  const row = (each) => [
    link(to(each.name, "overview"), { class: "mono" }, each.name),
    each.at_work ? el("span", { class: "state live" }, "at work") : "",
    each.problem ? el("span", { class: "muted" }, each.problem) : each.command,
    each.environment || "",
    each.backend || "",
    each.rollouts === undefined ? "" : each.rollouts.toLocaleString("en-US"),
    el("span", { class: "muted nowrap" }, (each.begun || "").replace("T", " ").slice(0, 16)),
  ];
  return section("Runs", "the newest first", found.rows.length ? table(headings, found.rows.map(row)) : empty("No runs."), pager(found, (offset) => to(here().run, "runs", { offset })));
}

async function follow() {
  const { run, page, query } = here();
  let wait = LATER_MS;
  if (!document.hidden && page !== "runs") {
    try {
      const now = await ask(run, "pulse");
      const known = pulse && pulse.run === run;
      const turned = !known || now.at_work !== pulse.at_work || lost;
      const news = lost || (known && (turned || now.version !== pulse.version));
      pulse = { ...now, run };
      lost = false;
      if (turned) bar(run, page);
      const live = LIVE.includes(page) && !query.offset && !main.contains(document.activeElement?.closest("select"));
      if (news && (live || failed)) await show({ moved: false });
      wait = now.at_work ? SOON_MS : LATER_MS;
    } catch {
      lost = true;
      bar(run, page);
    }
  }
  setTimeout(follow, wait);
}

async function begin() {
  try {
    first = (await runs()).first;
  } catch (error) {
    main.replaceChildren(el("p", { class: "problem" }, error.message));
    main.removeAttribute("aria-busy");
    return;
  }
  window.addEventListener("hashchange", () => show());
  document.querySelector(".skip").addEventListener("click", (happened) => {
    happened.preventDefault();
    main.focus();
  });
  await show();
  if (!inFile) follow();
}

begin();
