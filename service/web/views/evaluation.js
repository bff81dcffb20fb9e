/** One evaluation: its scores beside what they are worth, its falls and gates, and how far it is. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChangeOf } from "../core/live.js";
import { computed } from "../core/signals.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { ago } from "../parts/dates.js";
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
import { evaluationSentence } from "../parts/sentences.js";
import { allAnswered, badge, following, labels } from "../parts/states.js";
import { evaluationActions } from "./actions.js";
import { falls } from "./evaluated/falls.js";
import { fallenImages, gates, withReasons } from "./evaluated/gates.js";
import { scores } from "./evaluated/scores.js";
import { allTasks } from "./evaluated/tasks.js";

/** @param {string} id */
export function evaluation(id) {
  const found = resource(() => place("/v1/evaluations", id));
  onChangeOf(() => id, found.refresh);
  const run = () => /** @type {Evaluation} */ (found.answer.value);
  const isThere = computed(() => found.answer.value !== null);
  const hasFailed = computed(() => isThere.value && run().gates.some(({ verdict }) => verdict === "failed"));
  const drops = resource(() => (hasFailed.value ? place("/v1/evaluations", id, "drops") : null));
  const ids = computed(() => (isThere.value ? baselinesOf(run()).join(",") : ""));
  const baselines = computed(() => ids.value.split(",").filter(Boolean).map(baselineOf));
  const told = computed(() =>
    isThere.value
      ? withReasons(run(), (id) => baselines.value.find((each) => each.id === id)?.name() ?? "")
      : null,
  );
  const sentence = computed(() => told.value && evaluationSentence({ run: told.value }));
  const name = () => (isThere.value ? nameOrId(run().labels, id) : "Evaluation");
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
      following(found, () =>
        allAnswered(hasFailed.value ? [drops] : [], () => [
          facts(run, () => baselines.value),
          evaluationActions(run, found.refresh),
          () => falls(run()),
          section("Scores", scores(run)),
          () => told.value && gates(told.value, sentence.value?.detail),
          () => fallenImages(id, drops.answer.value),
          section("Tasks", () => allTasks(run())),
          () => run().warnings.length > 0 && section("Warnings", warnings(run())),
          folded(
            "By API",
            command(
              `curl ${location.origin}${place("/v1/evaluations", id)}`,
              "Ask for this evaluation by curl",
            ),
          ),
        ]),
      ),
    ),
  };
}

/** @param {Evaluation} run */
const warnings = (run) =>
  h(
    "ul",
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

/** @param {() => Evaluation} run @param {() => Baseline[]} baselines */
function facts(run, baselines) {
  const { id, dataset, checkpoint, columns, created_at } = run();
  const training = () => run().labels.run;
  return h(
    "dl.facts.panel",
    fact("State", () => [
      badge(run().status),
      " ",
      run().verdict && badge(run().verdict),
      " ",
      collapsed(run()),
    ]),
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
