/** The trainings of one split: the curve of each, its latest checkpoint, and the steps that fell. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { place } from "../core/urls.js";
import { viewHead } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { runPlace, splitCrumbs, splitTabs } from "../parts/places.js";
import { trainingsSentence } from "../parts/sentences.js";
import { following } from "../parts/states.js";
import { spark } from "../plots/spark.js";

/** @typedef {import("../core/api.js").Schemas["CaptionerTraining"]} TrainingRun */

const MOST = 100;

/** @param {string} name @param {string} split */
export function trainings(name, split) {
  const dataset = `${name}/${split}`;
  const found = resource(() => place("/v1/trainings", { dataset, limit: MOST }));
  onChange((change) => {
    if (!change || change.kind === "evaluation") found.refresh();
  });
  const items = () => found.answer.value?.items ?? [];
  return {
    title: `Training runs of ${dataset}`,
    crumbs: () =>
      /** @type {import("../parts/frame.js").Crumb[]} */ ([
        ...splitCrumbs({ name, split }),
        ["training runs"],
      ]),
    content: h(
      "div",
      viewHead({
        name: "Training runs",
        sentence: () => found.answer.value && trainingsSentence(items()),
        tabs: splitTabs(name, split),
      }),
      following(found, () => [
        () =>
          items().length
            ? trainingCards(items())
            : h(
                "p",
                { class: "quiet" },
                `No evaluation on ${dataset} has the labels run and step. Submit checkpoints with --label run=NAME --label step=NUMBER.`,
              ),
      ]),
    ),
  };
}

/** @param {TrainingRun[]} items */
export const trainingCards = (items) => h("ul", { class: "cards" }, items.map(card));

/** @param {TrainingRun} training */
function card({ run, dataset, metric, checkpoints, steps, best, forecast, running }) {
  const known = steps.filter(({ value }) => value !== null);
  const [before, latest] = [known[known.length - 2], known[known.length - 1]];
  const fallen = steps.filter(({ is_fallen }) => is_fallen).map(({ step }) => step);
  const change =
    before &&
    `${signed(Number(latest.value) - Number(before.value), metric)} since step ${count(before.step)}`;
  const said = `${titleOf(metric)} over ${known.length} steps${fallen.length ? `; fallen: ${fallen.join(", ")}` : ""}`;
  return h(
    "li",
    h(
      "div",
      { class: "row" },
      h("h3", h("a", { href: runPlace(dataset.name, dataset.split, run) }, run)),
      h(
        "span",
        fallen.length > 0 &&
          h("span", { class: "badge bad" }, `step ${count(fallen[fallen.length - 1])} fell`),
        " ",
        running
          ? h("span", { class: "badge wait" }, "running")
          : !fallen.length && best && progress(best.step, latest.step),
      ),
    ),
    h(
      "span",
      { class: "sub" },
      `${dataset.name}/${dataset.split} · ${count(checkpoints)} checkpoint${checkpoints === 1 ? "" : "s"}`,
    ),
    h(
      "div",
      { class: "row value" },
      h("span", { class: "big" }, number(latest?.value, metric)),
      h(
        "span",
        { class: "quiet" },
        [
          titleOf(metric),
          forecast
            ? `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`
            : change,
        ]
          .filter(Boolean)
          .join(", "),
      ),
    ),
    spark(steps, said),
  );
}

/** @param {number} best @param {number} latest Steps. */
const progress = (best, latest) =>
  best === latest
    ? h("span", { class: "badge good" }, "improving")
    : h("span", { class: "badge" }, `best: step ${count(best)}`);
