/** One evaluation: its scores beside what they are worth, its falls and gates, and how far it is. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChangeOf } from "../core/live.js";
import { computed, unread } from "../core/signals.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { ago, clock } from "../parts/dates.js";
import { fact, folded, section, viewHead } from "../parts/layout.js";
import { nameOrId } from "../parts/names.js";
import { duration, short } from "../parts/numbers.js";
import {
  captionsPlace,
  comparePlace,
  evaluationPlace,
  evaluationTabs,
  runPlace,
  splitCrumbs,
  splitLink,
} from "../parts/places.js";
import { evaluationSentence, fallSign, mainMetric, workersProblem, worstFalls } from "../parts/sentences.js";
import { allAnswered, badge, following, labels, verdictBadge } from "../parts/states.js";
import { evaluationActions } from "./actions.js";
import { falls } from "./evaluated/falls.js";
import { fallenImages, gates, withReasons } from "./evaluated/gates.js";
import { scores } from "./evaluated/scores.js";
import { allTasks } from "./evaluated/tasks.js";
import { taskProgress, timesOf } from "./tasks.js";

const RANKED = 100; // evaluations of the first page of a leaderboard

/** @param {string} id */
export function evaluation(id) {
  const found = resource(() => place("/v1/evaluations", id));
  onChangeOf(() => id, found.refresh);
  const run = () => /** @type {Evaluation} */ (found.answer.value);
  const isThere = computed(() => found.answer.value !== null);
  const isMissing = computed(() => !isThere.value && found.refused.value?.status === 404);
  const isOpen = computed(() => isThere.value && run().finished_at === null);
  const workers = resource(() => (isOpen.value ? "/v1/workers" : null));
  const seconds = clock(workers.refresh);
  const now = () => (seconds.value, Date.now());
  const boardUrl = computed(() => (isThere.value ? boardPlace(run()) : null));
  const board = resource(() => boardUrl.value);
  const isRanked = () =>
    boardUrl.value === null || board.answer.value !== null || board.refused.value !== null;
  const hasFailed = computed(() => isThere.value && run().gates.some(({ verdict }) => verdict === "failed"));
  const drops = resource(() => (hasFailed.value ? place("/v1/evaluations", id, "drops") : null));
  const ids = computed(() => (isThere.value ? baselinesOf(run()).join(",") : ""));
  const baselines = computed(() => ids.value.split(",").filter(Boolean).map(baselineOf));
  const told = computed(() =>
    isThere.value
      ? withReasons(run(), (id) => baselines.value.find((each) => each.id === id)?.name() ?? "")
      : null,
  );
  const sentence = computed(() =>
    told.value && isRanked()
      ? evaluationSentence({
          run: told.value,
          board: board.answer.value,
        })
      : null,
  );
  const judged = () => [
    told.value && gates(told.value, sentence.value?.claim),
    fallenImages(id, drops.answer.value),
  ];
  const name = () =>
    isThere.value ? nameOrId(run().labels, run().id) : isMissing.value ? "No such evaluation" : "Evaluation";
  const content = () =>
    following(found, () =>
      allAnswered(
        [
          ...(hasFailed.value ? [drops] : []),
          ...(isOpen.value ? [workers] : []),
          ...(boardUrl.value ? [board] : []),
        ],
        () =>
          h(
            "div",
            { class: () => (isOpen.value ? null : "ended") },
            () => isOpen.value && hindrance(workers.answer.value?.items),
            () => run().warnings.length > 0 && warnings(run()),
            facts(
              run,
              () => baselines.value,
              () => (seconds.value, isOpen.value),
            ),
            evaluationActions(run, found.refresh),
            () => falls(run(), sentence.value && `${sentence.value.claim} ${sentence.value.detail}`),
            () => hasFailed.value && judged(),
            section("Scores", scores(run)),
            () => !hasFailed.value && judged(),
            section("Tasks", () => allTasks(run(), now)),
            byApi(id),
          ),
      ),
    );
  return {
    title: id,
    crumbs: () => (found.answer.value ? [...splitCrumbs(run().dataset), [name()]] : [["…"]]),
    content: h(
      "div",
      viewHead({
        name: h("span", { title: id }, name),
        sentence: () => sentence.value,
        tabs: () => isThere.value && evaluationTabs(id),
      }),
      () => (isMissing.value ? absent(id) : unread(content)),
    ),
  };
}

/** The leaderboard on which it may have a rank. @param {Evaluation} run */
function boardPlace(run) {
  const metric = run.status === "succeeded" && mainMetric(run);
  if (!metric) return null;
  const { name, version, split } = run.dataset;
  return place("/v1/datasets", `${name}@${version}`, "leaderboard", {
    ...{ split, metric, signature: run.scores[metric].signature, limit: RANKED },
  });
}

/** @param {string} id */
const absent = (id) => [
  h("p", "This service shows you no evaluation ", h("code", id), "."),
  h("p", "It was deleted, another team has it, or its address is wrong."),
  h("p", "Go to ", h("a", { href: "/" }, "Home"), "."),
];

/** That what it waits for may not come. @param {Schemas["Worker"][] | undefined} workers */
function hindrance(workers) {
  const problem = workers && workersProblem(workers);
  if (!problem) return null;
  const meaning = workers.length ? "Its tasks may wait." : "Its tasks wait until one starts.";
  return h(
    "p.notice.bad",
    { role: "status" },
    `${problem}. ${meaning} `,
    h("a", { href: "/ui/now" }, "Workers"),
  );
}

/** @param {string} id */
const byApi = (id) =>
  h(
    "section.last",
    { "aria-label": "By API" },
    folded(
      "By API",
      command(`curl ${location.origin}${place("/v1/evaluations", id)}`, "Ask for this evaluation by curl"),
    ),
  );

/** @param {Evaluation} run */
const warnings = (run) =>
  h(
    "ul.notice",
    { "aria-label": "Warnings" },
    run.warnings.map(({ code, image, detail }) =>
      h(
        "li",
        h("strong", { title: code }, titleOfWarning(code)),
        image && ` (${image})`,
        ": ",
        withCode(detail),
      ),
    ),
  );

/** `Few distinct captions`. @param {string} code */
const titleOfWarning = (code) => `${code[0].toUpperCase()}${code.slice(1)}`.replaceAll("_", " ");

/** What stands between backticks is code. @param {string} text */
const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", part) : part));

/** @param {() => Evaluation} run @param {() => Baseline[]} baselines @param {() => boolean} isOpen Read again as time passes. */
function facts(run, baselines, isOpen) {
  const { id, dataset, checkpoint, columns, created_at } = run();
  const training = () => run().labels.run;
  return h(
    "dl.facts.panel",
    fact("State", () => [
      h("span", { title: run().error?.code }, badge(run().status)),
      ...[" ", verdictBadge(run().verdict), " ", fallBadge(run()), " ", collapsed(run())],
    ]),
    () => isOpen() && fact("Progress", taskProgress(run().tasks), h("span.sub", timesOf(run()))),
    fact("Dataset", splitLink(dataset), h("span.quiet", { title: dataset.digest }, ` ${dataset.version}`)),
    fact("Submitted", ago(created_at), () => run().finished_at && `, took ${lasted(run())}`),
    checkpoint && fact("Checkpoint", h("code", { title: checkpoint }, short(checkpoint))),
    columns && fact("Columns", h("code", { title: columns }, short(columns))),
    () =>
      training() &&
      fact("Training", h("a", { href: runPlace(dataset.name, dataset.split, training()) }, training())),
    () =>
      baselines().map(({ id: other, name }) =>
        fact(
          "Baseline",
          h("a", { href: evaluationPlace(other), title: other }, name),
          ", ",
          h("a", { href: comparePlace(id, other) }, "compare"),
        ),
      ),
    fact("Labels", () => (Object.keys(run().labels).length ? labels(run().labels) : "none")),
    () => run().note && fact("Note", run().note),
  );
}

/** @param {Evaluation} run */
function fallBadge({ falls }) {
  const [worst] = worstFalls(falls);
  return worst && h("span.badge.bad", `▼ ${fallSign(worst)}`);
}

/** @param {Evaluation} run */
const collapsed = (run) =>
  run.collapsed && [badge("collapsed"), " ", h("a", { href: captionsPlace(run.id) }, "its captions")];

/** @param {Evaluation} run */
const lasted = ({ created_at, finished_at }) =>
  duration((new Date(finished_at ?? "").valueOf() - new Date(created_at).valueOf()) / 1000);

/** Ids of the evaluations that gates compare it with. @param {Evaluation} run */
const baselinesOf = ({ gates }) => [
  ...new Set(
    gates
      .flatMap((gate) => Object.values(gate.scores).map((each) => each.evaluation))
      .filter((each) => each !== null),
  ),
];

/** @param {string} id */
function baselineOf(id) {
  const { answer, refused } = resource(() => place("/v1/evaluations", id, { metrics: "cider_d" }));
  return {
    id,
    name: () => (answer.value || refused.value ? nameOrId(answer.value?.labels, id) : "its baseline"),
  };
}

/** @typedef {ReturnType<typeof baselineOf>} Baseline */
