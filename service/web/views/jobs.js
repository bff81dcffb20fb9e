/** Jobs: what runs, is tried again and is queued, who works on it, what failed last; a team's limits and keys. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { computed } from "../core/signals.js";
import { place } from "../core/urls.js";
import { ago, clock, lasting, time } from "../parts/dates.js";
import { section, view } from "../parts/layout.js";
import { distinctNames, evaluationLink } from "../parts/names.js";
import { count, duration } from "../parts/numbers.js";
import { comparePlace, splitLink, splitPlace } from "../parts/places.js";
import { capitalized, jobsSentence, taskTitle } from "../parts/sentences.js";
import { answered, badge } from "../parts/states.js";
import { table } from "../parts/table.js";
import { account } from "./account.js";
import { stopButton } from "./stop.js";
import { describeRun, leftOf, stateOf, taskProgress, timesOf } from "./tasks.js";

/** @typedef {Evaluation | Schemas["Comparison"] | Schemas["Probes"] | Schemas["StudyRun"] | Schemas["Learned"]} Run */
/** @typedef {{ run: Run, url: string, name: string, link: () => Child, state: string }} Job */

const MOST = 100; // runs of each list

/** Kinds of runs by their names in events: their places, their names, and where they are shown.
 * @type {Record<string, [string, string | null, (run: any) => string | null]>} */
const KINDS = {
  evaluation: ["evaluations", null, () => null],
  comparison: ["comparisons", "Comparison", ({ a, b }) => comparePlace(a, b)],
  probes: ["probes", "Probes of metrics", trustOf],
  study: ["studies", "Study of correlations", trustOf],
  training: ["learned", "Training of a metric", () => null],
};

/** @param {Run} run */
function trustOf({ dataset }) {
  return splitPlace(dataset.name, dataset.split, "trust");
}

export function jobs() {
  const lists = Object.entries(KINDS).flatMap(([kind, [where]]) =>
    (kind === "evaluation" ? ["running", "queued"] : ["unfinished"]).map((status) => ({
      kind,
      found: resource(() => place(`/v1/${where}`, { status, limit: MOST })),
    })),
  );
  const failed = resource(() =>
    place("/v1/evaluations", { status: "failed", limit: 10, metrics: "cider_d" }),
  );
  const workers = resource(() => "/v1/workers");
  const queues = resource(() => "/v1/queues");
  const me = resource(() => "/v1/me");
  const seconds = clock(() => [workers, queues].forEach(({ refresh }) => refresh())); // they tell no changes
  onChange((told) => {
    for (const { kind, found } of lists) if (!told || told.kind === kind) found.refresh();
    [failed, workers, queues].forEach(({ refresh }) => refresh());
  });
  const names = computed(() =>
    distinctNames(
      [...lists.filter(({ kind }) => kind === "evaluation").map(({ found }) => found), failed].flatMap(
        ({ answer }) => answer.value?.items ?? [],
      ),
    ),
  );
  const all = computed(() => lists.flatMap(({ kind, found }) => jobsIn(kind, found, names.value)));
  const [running, retrying, queued] = ["running", "retrying", "queued"].map((state) =>
    computed(() => all.value.filter((job) => job.state === state)),
  );
  const failures = computed(() => jobsIn("evaluation", failed, names.value));
  const there = computed(() => workers.answer.value?.items ?? []);
  const columns = jobColumns(seconds, () => lists.forEach(({ found }) => found.refresh()));
  return view(
    {
      title: "Jobs",
      sentence: () =>
        workers.answer.value &&
        jobsSentence({
          running: running.value.length + retrying.value.length,
          queued: queued.value.length,
          workers: there.value,
        }),
      needs: [...lists.map(({ found }) => found), failed, workers, queues, me],
    },
    () => [
      jobList("Running", running, columns, "Nothing is running."),
      () => isAny(retrying) && jobList("Retrying", retrying, columns, ""),
      jobList("Queued", queued, columns, "Nothing is queued."),
      jobList("Recent failures", failures, FAILED, "No evaluation has failed."),
      h("div.beside", workerList(there, all, seconds), queueList(queues)),
      section("Your access", answered(me, account)),
    ],
  );
}

/** @param {string} kind @param {Resource} found @param {Map<string, string>} names Of evaluations, by id. @returns {Job[]} */
function jobsIn(kind, { answer }, names) {
  const [where, title, placeOf] = KINDS[kind];
  return (answer.value?.items ?? []).map((/** @type {any} */ run) => {
    const { id, labels } = run;
    const href = placeOf(run);
    const name = title ?? names.get(id) ?? id;
    return {
      run,
      name,
      link: () =>
        title ? h(href ? "a" : "span", { href, title: id }, title) : evaluationLink(id, labels, name),
      url: place(`/v1/${where}`, id),
      state: stateOf(run),
    };
  });
}

/** @param {{ value: readonly unknown[] }} rows */
const isAny = (rows) => computed(() => rows.value.length > 0).value;

/** @param {string} title @param {{ value: Job[] }} rows @param {Column<Job>[]} columns @param {string} none */
const jobList = (title, rows, columns, none) =>
  section(title, () =>
    isAny(rows)
      ? table(rows, { name: `Table: ${title}`, columns, keyOf: ({ run }) => run.id })
      : h("p.quiet", none),
  );

/** @type {Column<Job>[]} */
const ABOUT = [
  { head: "Job", kind: "name job", once: true, cell: ({ link }) => link() },
  { head: "Dataset", kind: "job-dataset", cell: ({ run }) => splitLink(run.dataset) },
];

/** @param {{ value: number }} seconds @param {() => void} refresh @returns {Column<Job>[]} */
const jobColumns = (seconds, refresh) => [
  ...ABOUT,
  { head: "State", kind: "job-state", phone: "value", cell: ({ state }) => badge(state) },
  {
    head: "Progress",
    kind: "job-progress",
    phone: "below",
    cell: ({ run }) => (seconds.value, [taskProgress(run.tasks), h("span.sub.on-phone", timesOf(run))]),
  },
  {
    head: "Since submission",
    kind: "number job-time",
    cell: ({ run }) => (
      seconds.value,
      [h("span", { title: time(run.created_at) }, lasting(run.created_at)), h("span.sub", leftOf(run.tasks))]
    ),
  },
  {
    head: "",
    kind: "job-stop",
    phone: "below",
    once: true,
    cell: ({ name, url, run }) =>
      stopButton(
        name,
        () => url,
        refresh,
        () => describeRun(name, run),
      ),
  },
];

/** @type {Column<Job>[]} */
const FAILED = [
  ...ABOUT,
  {
    head: "Why",
    kind: "wide",
    phone: "below",
    cell: ({ run: { error } }) => error && h("span", { title: error.code }, capitalized(error.detail)),
  },
  { head: "Failed", kind: "narrow", phone: "value", cell: ({ run }) => ago(run.finished_at) },
];

/** Since when the time of a worker is counted. @type {Record<string, string>} */
const SINCE = { busy: "on it for ", idle: "connected for " };

/** @param {{ value: Schemas["Worker"][] }} workers @param {{ value: Job[] }} all @param {{ value: number }} seconds */
function workerList(workers, all, seconds) {
  const linkOf = (/** @type {string} */ id) => all.value.find(({ run }) => run.id === id)?.link();
  /** @type {Column<Schemas["Worker"]>[]} */
  const columns = [
    {
      head: "Worker",
      kind: "name",
      cell: ({ name }) => {
        const [role, host] = name.split(/(?=@)/);
        return [role, host && h("span.host", host)];
      },
    },
    { head: "State", kind: "narrow", phone: "value", cell: ({ state }) => badge(state) },
    {
      head: "Task",
      phone: "below",
      cell: ({ task }) =>
        task && [taskTitle(task.name), task.evaluation && [" of ", linkOf(task.evaluation)]],
    },
    {
      head: "Time",
      kind: "number",
      cell: ({ since, state }) => (seconds.value, [SINCE[state], lasting(since)]),
    },
  ];
  return section("Workers", () =>
    isAny(workers)
      ? table(workers, { name: "Table of workers", columns, keyOf: ({ name }) => name })
      : h("p.notice.bad", "No worker is running. Jobs wait until one starts."),
  );
}

/** @type {Column<Schemas["Queue"]>[]} */
const QUEUE = [
  { head: "Queue", kind: "name", cell: ({ name }) => name },
  {
    head: "Waiting",
    kind: "number",
    phone: "value",
    cell: ({ waiting }) => [count(waiting), h("span.on-phone", waiting === 1 ? " waits" : " wait")],
  },
  { head: "Running", kind: "number", cell: ({ running }) => count(running) },
  { head: "Of your team", kind: "number", cell: ({ yours }) => count(yours) },
  { head: "Longest wait", kind: "number", cell: ({ oldest_seconds }) => duration(oldest_seconds) },
];

/** @param {Resource} queues */
const queueList = ({ answer }) =>
  section(
    "Task queues",
    table(
      computed(() => answer.value?.items ?? []),
      { name: "Table of queues", columns: QUEUE, keyOf: ({ name }) => name },
    ),
    h(
      "p.quiet",
      "Queues count each part of a task: captions of many images, for example, are made in parts.",
    ),
  );
