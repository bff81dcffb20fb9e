/** One evaluation: what was asked, how far it is, its scores beside their forecasts, its gates. */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChangeOf } from "../core/live.js";
import { signal } from "../core/signals.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { fact, section } from "../parts/layout.js";
import { nameOf, nameOrId } from "../parts/names.js";
import { time } from "../parts/dates.js";
import { short } from "../parts/numbers.js";
import { captionsPlace, runPlace, splitLink, splitPlace } from "../parts/places.js";
import { badge, failure, following, labels, refusal } from "../parts/states.js";
import { gates } from "./evaluated/gates.js";
import { scores } from "./evaluated/scores.js";
import { allTasks } from "./evaluated/tasks.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */

/** @param {string} id */
export function evaluation(id) {
  const found = resource(() => place("/v1/evaluations", id));
  onChangeOf(() => id, found.refresh);
  return {
    title: id,
    content: h(
      "div",
      h("h1", () => nameOf(found.answer.value?.labels) || "Evaluation", " ", h("code", id)),
      following(found, () => parts(found)),
    ),
  };
}

/** Each part is made once, and follows the answer. @param {import("../parts/states.js").Resource} found */
function parts(found) {
  const run = () => /** @type {Evaluation} */ (found.answer.value);
  return [
    heading(run, found.refresh),
    () => places(run()),
    () => failure(run().error),
    section("Scores", () => scores(run())),
    section("Tasks", () => allTasks(run())),
    () => run().gates.length > 0 && section("Gates", () => gates(run())),
    () =>
      run().warnings.length > 0 &&
      section("Warnings", () =>
        h(
          "ul",
          run().warnings.map((each) =>
            h("li", h("strong", each.code), ` ${each.image ?? ""} ${each.detail}`),
          ),
        ),
      ),
    section("By API", () =>
      command(
        `curl ${location.origin}${place("/v1/evaluations", run().id)}`,
        "Ask for this evaluation by curl",
      ),
    ),
  ];
}

/** Where one goes from here. @param {Evaluation} run */
function places({ id, dataset: { name, split }, labels, gates, tasks }) {
  const baselines = new Set(
    gates
      .flatMap((gate) => Object.values(gate.scores).map((each) => each.evaluation))
      .filter((each) => each !== null),
  );
  const hasCaptions = !tasks.some((task) => task.name === "captions" && task.status !== "done");
  return h(
    "nav",
    { class: "places", "aria-label": "Views of this evaluation" },
    hasCaptions && h("a", { href: captionsPlace(id) }, "Captions"),
    h("a", { href: splitPlace(name, split) }, "Leaderboard"),
    labels.run && h("a", { href: runPlace(name, split, labels.run) }, `Training ${labels.run}`),
    [...baselines].map((baseline) => compareLink(id, baseline)),
    h("a", { href: place("/ui/compare", { a: id }) }, "Compare…"),
  );
}

/** @param {string} id @param {string} baseline The id of another evaluation. */
function compareLink(id, baseline) {
  const found = resource(() => place("/v1/evaluations", baseline));
  const name = () => `Compare with the baseline ${nameOrId(found.answer.value?.labels, baseline)}`;
  return h("a", { href: place("/ui/compare", { a: id, b: baseline }) }, name);
}

/** @param {() => Evaluation} run @param {() => void} refresh */
function heading(run, refresh) {
  const { dataset, checkpoint, columns, created_at } = run();
  return h(
    "dl",
    { class: "facts" },
    fact("State", () => [
      badge(run().status),
      " ",
      run().verdict && badge(run().verdict),
      " ",
      stop(run, refresh),
    ]),
    fact(
      "Dataset",
      splitLink(dataset),
      ` ${dataset.version} `,
      h("code", { title: dataset.digest }, short(dataset.digest)),
    ),
    checkpoint && fact("Checkpoint", h("code", { title: checkpoint }, short(checkpoint))),
    columns && fact("Columns", h("code", { title: columns }, short(columns))),
    fact("Labels", () => (Object.keys(run().labels).length ? labels(run().labels) : "none")),
    () => run().note && fact("Note", run().note),
    fact("Submitted", time(created_at)),
    fact("Ended", () => time(run().finished_at) || "not yet"),
  );
}

/** @param {() => Evaluation} run @param {() => void} refresh */
function stop(run, refresh) {
  const why = signal(/** @type {Refused | null} */ (null));
  const cancel = async () => {
    try {
      await ask(`${place("/v1/evaluations", run().id)}/cancel`, { method: "POST" });
      refresh();
    } catch (error) {
      if (error instanceof Refused) why.value = error;
    }
  };
  return [
    () => !run().finished_at && h("button", { type: "button", onclick: cancel }, "Cancel"),
    () => why.value && refusal(why.value),
  ];
}
