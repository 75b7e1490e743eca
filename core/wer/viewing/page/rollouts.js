// Rollouts: the list, and one from its first message to its end.

import { el, count, duration, plural } from "./text.js";
import { ask, inFile } from "./asking.js";
import { chips, empty, event, link, pager, rolloutHead, rolloutTable, section, taskHead, to } from "./parts.js";

export async function rollouts(run, query) {
  const found = await ask(run, "rollouts", query);
  const { task, skill } = query;
  const choice = (title, passed) => ({ title, address: to(run, "rollouts", { task, skill, passed }), on: (query.passed || "") === passed });
  return section(
    "Rollouts",
    `${plural(found.total, "rollout")}, the newest first`,
    inFile ? null : chips("verdicts", [choice("all", ""), choice("passed", "yes"), choice("failed", "no")]),
    task || skill ? el("p", {}, `Only those of one ${task ? "task" : "skill"}. `, link(to(run, "rollouts"), {}, "Show all")) : null,
    found.rows.length ? rolloutTable(run, found.rows) : empty("No such rollout (yet)."),
    pager(found, (offset) => to(run, "rollouts", { ...query, offset })),
  );
}

export async function rollout(run, query) {
  const found = await ask(run, "rollout", { key: query.key, offset: query.offset });
  return el(
    "div",
    {},
    el(
      "p",
      {},
      link(to(run, "rollouts"), {}, "← all rollouts"),
      inFile
        ? null
        : [
            " · ",
            link(to(run, "rollouts", { task: found.task.key }), {}, "all of this task"),
            " · ",
            link(to(run, "rollouts", { skill: found.skill_id }), {}, "all with this skill"),
          ],
      found.task.split === "train" ? [" · ", link(to(run, "lineage", { task: found.task.key }), {}, "this task's revisions")] : null,
    ),
    section("Rollout", `${duration(found.wall_s)} · ${count(found.prompt_tokens)} + ${count(found.completion_tokens)} tokens${found.executor ? ` · ${found.executor}` : ""}`, taskHead(found.task), rolloutHead(run, found)),
    el("div", { class: "events" }, found.events.map((each) => event(run, found.key, each))),
    pager(found, (offset) => to(run, "rollout", { key: query.key, offset })),
  );
}
