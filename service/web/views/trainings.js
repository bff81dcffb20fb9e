/** The trainings of one split: the curve of each, its latest checkpoint, and the steps that fell. */

import { resource } from "../core/api.js";
import { h, s } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { place } from "../core/urls.js";
import { viewHead } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { runPlace, splitCrumbs, splitTabs } from "../parts/places.js";
import { trainingsSentence } from "../parts/sentences.js";
import { following } from "../parts/states.js";

/** @typedef {import("../core/api.js").Schemas["CaptionerTraining"]} TrainingRun */

const MOST = 100;
const SPARK = { width: 298, height: 56, room: 6 }; // pixels

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
                "p.quiet",
                `No evaluation on ${dataset} has the labels run and step. Submit checkpoints with --label run=NAME --label step=NUMBER.`,
              ),
      ]),
    ),
  };
}

/** @param {TrainingRun[]} items */
export const trainingCards = (items) => h("ul.cards", items.map(card));

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
      "div.row",
      h("strong", h("a", { href: runPlace(dataset.name, dataset.split, run) }, run)),
      h(
        "span",
        fallen.length > 0 && h("span.badge.bad", `step ${count(fallen[fallen.length - 1])} fell`),
        " ",
        running
          ? h("span.badge.wait", "running")
          : !fallen.length && best && progress(best.step, latest.step),
      ),
    ),
    h(
      "span.sub",
      `${dataset.name}/${dataset.split} · ${count(checkpoints)} checkpoint${checkpoints === 1 ? "" : "s"}`,
    ),
    h(
      "div.row.value",
      h("span.big", number(latest?.value, metric)),
      h(
        "span.quiet",
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
  best === latest ? h("span.badge.good", "improving") : h("span.badge", `best: step ${count(best)}`);

/** A small curve without axes: its last point is marked, and the steps that fell. @param {TrainingRun["steps"]} steps @param {string} said */
function spark(steps, said) {
  const { width, height, room } = SPARK;
  const known = steps.filter(({ value }) => value !== null);
  const x = along(
    known.map(({ step }) => step),
    room,
    width - room,
  );
  const y = along(
    known.map(({ value }) => Number(value)),
    height - room,
    room,
  );
  const places = known.map(({ step, value }) => [x(step), y(Number(value))]);
  return s(
    "svg.plot.spark",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    s("path.line", { d: places.map((place, at) => `${at ? "L" : "M"}${place}`).join("") }),
    known.map(({ is_fallen }, at) => {
      if (!is_fallen && at < known.length - 1) return null;
      const [cx, cy] = places[at];
      return s("circle", { class: ["point", is_fallen && "fallen"], cx, cy, r: is_fallen ? 5 : 4 });
    }),
  );
}

/** A scale over all of the values. @param {number[]} values @param {number} start @param {number} end */
function along(values, start, end) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (/** @type {number} */ value) => start + ((value - low) / (high - low || 1)) * (end - start);
}
