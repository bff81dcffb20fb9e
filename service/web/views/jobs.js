/** What the service does now: what runs and waits, who works, what failed last; a team's limits. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { onEnd } from "../core/signals.js";
import { place } from "../core/urls.js";
import { section, table } from "../parts/layout.js";
import { evaluationLink } from "../parts/names.js";
import { time } from "../parts/dates.js";
import { duration, number } from "../parts/numbers.js";
import { splitLink } from "../parts/places.js";
import { answered, badge, labels } from "../parts/states.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["RunTask"]} Task */
/** @typedef {import("../core/api.js").Schemas["Me"]} Me */
/** @typedef {import("../core/api.js").Schemas["Key"]} Key */
/** @typedef {import("../core/api.js").Schemas["Comparison"]} OtherRun */
/** @typedef {import("../core/api.js").Schemas["Worker"]} Worker */
/** @typedef {import("../core/api.js").Schemas["Queue"]} Queue */

const EVERY = 5_000; // milliseconds: workers and queues tell no changes

/** Kinds of runs beside evaluations, by their places. */
const OTHERS = [
  ["comparisons", "comparison"],
  ["probes", "probes"],
  ["studies", "study"],
  ["learned", "training of a metric"],
];

export function jobs() {
  const running = resource(() => place("/v1/evaluations", { status: "running", limit: 50 }));
  const queued = resource(() => place("/v1/evaluations", { status: "queued", limit: 50 }));
  const failed = resource(() => place("/v1/evaluations", { status: "failed", limit: 10 }));
  const others = OTHERS.map(([kind]) =>
    resource(() => place(`/v1/${kind}`, { status: "running", limit: 20 })),
  );
  const workers = resource(() => "/v1/workers");
  const queues = resource(() => "/v1/queues");
  const me = resource(() => "/v1/me");
  const timer = setInterval(() => {
    if (document.hidden) return;
    workers.refresh();
    queues.refresh();
  }, EVERY);
  onEnd(() => clearInterval(timer));
  onChange(() => [running, queued, failed, ...others, workers, queues].forEach((each) => each.refresh()));
  return {
    title: "Now",
    content: h(
      "div",
      h("h1", "Now"),
      section(
        "Runs",
        answered(running, ({ items }) => list(items, "No evaluation runs.", "Table of what runs")),
      ),
      section("Comparisons, probes, studies and trainings", () =>
        otherRuns(others.map(({ answer }) => answer.value?.items ?? [])),
      ),
      section(
        "Waits",
        answered(queued, ({ items }) => list(items, "No evaluation waits.", "Table of what waits")),
      ),
      section(
        "Workers",
        answered(workers, (found) => workersTable(found, running.answer.value?.items ?? [])),
      ),
      section("Queues", answered(queues, queuesTable)),
      section(
        "Recent failures",
        answered(failed, ({ items }) => list(items, "No evaluation has failed.", "Table of what failed")),
      ),
      section("You", answered(me, about)),
    ),
  };
}

/** @param {Evaluation[]} items @param {string} none @param {string} name */
function list(items, none, name) {
  if (!items.length) return h("p", { class: "quiet" }, none);
  return table(
    name,
    ["Evaluation", "Dataset", "State", "Tasks", "Labels", "Since"],
    items.map((run) =>
      h(
        "tr",
        h("th", { scope: "row" }, evaluationLink(run.id, run.labels)),
        h("td", splitLink(run.dataset)),
        h("td", badge(run.status)),
        h(
          "td",
          run.error ? h("span", { class: "bad" }, `${run.error.code}: ${run.error.detail}`) : done(run.tasks),
        ),
        h("td", labels(run.labels)),
        h("td", time(run.created_at)),
      ),
    ),
  );
}

/** @param {OtherRun[][]} lists One for each of the other kinds. */
function otherRuns(lists) {
  const rows = lists.flatMap((items, at) =>
    items.map((run) =>
      h(
        "tr",
        h("th", { scope: "row" }, OTHERS[at][1]),
        h("td", h("code", run.id)),
        h("td", badge(run.status)),
        h("td", done(run.tasks)),
        h("td", time(run.created_at)),
      ),
    ),
  );
  return rows.length
    ? table("Table of other runs", ["Kind", "Run", "State", "Tasks", "Since"], rows)
    : h("p", { class: "quiet" }, "None runs.");
}

/** @param {Task[]} tasks */
function done(tasks) {
  const many = tasks.filter(({ status }) => status === "done").length;
  const running = tasks.filter(({ status }) => status === "running").map(({ name }) => name);
  return [
    h("progress", { max: tasks.length, value: many, "aria-label": `${many} of ${tasks.length} tasks` }),
    running.length > 0 && ` ${running.join(", ")}`,
  ];
}

/** @param {{ items: Worker[] }} found @param {Evaluation[]} running Their labels name what is worked on. */
function workersTable({ items }, running) {
  const labelsOf = new Map(running.map(({ id, labels }) => [id, labels]));
  if (!items.length)
    return h("p", { class: "notice bad" }, "No worker is there: what is submitted waits until one comes.");
  return table(
    "Table of workers",
    ["Worker", "Role", "State", "Tasks on", "Since"],
    items.map((each) =>
      h(
        "tr",
        h("th", { scope: "row" }, each.name),
        h("td", each.role),
        h("td", each.state),
        h(
          "td",
          each.task && [
            each.task.name,
            each.task.evaluation && [
              " of ",
              evaluationLink(each.task.evaluation, labelsOf.get(each.task.evaluation)),
            ],
          ],
        ),
        h("td", each.since && time(each.since)),
      ),
    ),
  );
}

/** @param {{ items: Queue[] }} found */
function queuesTable({ items }) {
  return table(
    "Table of queues",
    ["Queue", "Waiting", "Running", "Yours", "Longest wait"],
    items.map((each) =>
      h(
        "tr",
        h("th", { scope: "row" }, each.name),
        [each.waiting, each.running, each.yours].map((value) => h("td", { class: "number" }, value)),
        h("td", { class: "number" }, duration(each.oldest_seconds)),
      ),
    ),
  );
}

/** @param {Me} me */
function about({ team, scope, key, name, expires_at, limits }) {
  return [
    h(
      "p",
      `Team ${team}, scope ${scope}`,
      name && `, key “${name}”`,
      expires_at && `, until ${time(expires_at)}`,
    ),
    key && scope === "admin" && keys(),
    limits.length > 0 &&
      table(
        "Table of limits",
        ["Limit", "Used", "Of"],
        limits.map((each) =>
          h(
            "tr",
            h("th", { scope: "row" }, each.name),
            h("td", { class: "number" }, number(each.used)),
            h("td", { class: "number" }, number(each.limit)),
          ),
        ),
      ),
  ];
}

/** The keys of the team, which an admin may see. */
function keys() {
  const found = resource(() => place("/v1/keys", { limit: 200 }));
  return answered(found, (/** @type {{ items: Key[] }} */ { items }) =>
    table(
      "Table of keys",
      ["Key", "Scope", "Made", "Last used", "Ends"],
      items.map((each) =>
        h(
          "tr",
          h(
            "th",
            { scope: "row" },
            each.name || each.id,
            each.subject && h("span", { class: "quiet" }, ` ${each.subject}`),
          ),
          h("td", each.scope),
          h("td", time(each.created_at)),
          h("td", time(each.used_at) || "never"),
          h("td", each.revoked_at ? `revoked ${time(each.revoked_at)}` : time(each.expires_at) || "never"),
        ),
      ),
    ),
  );
}
