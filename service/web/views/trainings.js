/** The trainings of one split: the curve of each, its latest checkpoint, and the steps that are worse than expected. */

import { resource } from "../core/api.js";
import { h, s } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { place } from "../core/urls.js";
import { view } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { runPlace, splitCrumbs, splitTabs } from "../parts/places.js";
import { collapsedSince, fallSign, fallSize, plural, trainingsSentence } from "../parts/sentences.js";
import { extent, finite, linear } from "../plots/scale.js";

/** @typedef {Schemas["CaptionerTraining"]} TrainingRun */

const MOST = 100;
const SPARK = { width: 298, height: 56, room: 6 }; // pixels

/** @param {string} name @param {string} split */
export function trainings(name, split) {
  const dataset = `${name}/${split}`;
  const found = resource(() => place("/v1/trainings", { dataset, limit: MOST }));
  onChange(found.refresh, "evaluation");
  const items = () => found.answer.value?.items ?? [];
  const none = `No evaluation on ${dataset} has the labels run and step. Submit checkpoints with --label run=NAME --label step=NUMBER.`;
  return view(
    {
      title: `Training runs of ${dataset}`,
      name: "Training runs",
      crumbs: () => [...splitCrumbs({ name, split }), ["training runs"]],
      sentence: () => found.answer.value && trainingsSentence(items()),
      tabs: splitTabs(name, split),
      needs: [found],
    },
    () => () => (items().length ? trainingCards(items()) : h("p.quiet", none)),
  );
}

/** Curves of one metric on one split have one scale. @param {TrainingRun[]} items */
export function trainingCards(items) {
  const has = (/** @type {(step: TrainingRun["steps"][number]) => boolean} */ test) =>
    items.some(({ steps }) => steps.some(test));
  /** @type {Map<string, number[]>} */
  const values = new Map();
  for (const item of items)
    values.set(scaleOf(item), [...(values.get(scaleOf(item)) ?? []), ...valuesOf(item)]);
  return [
    h(
      "ul.legend",
      h("li", "Curves of one metric on one split have one scale"),
      has((step) => step.is_fallen) && h("li", h("span.swatch.fell"), "worse than expected in this metric"),
      has((step) => step.is_collapsed) && h("li", h("span.swatch.collapsed"), "one caption for most images"),
    ),
    h(
      "ul.cards",
      items.map((item) => card(item, extent(values.get(scaleOf(item)) ?? []))),
    ),
  ];
}

/** @param {TrainingRun} training */
const scaleOf = ({ metric, dataset: { name, split } }) => [metric, name, split].join("/");

/** @param {TrainingRun} training */
const valuesOf = ({ steps }) => finite(steps.map(({ value }) => value));

/** @param {TrainingRun} training @param {import("../plots/scale.js").Range} range */
function card(training, range) {
  const { run, dataset, metric, checkpoints, steps } = training;
  const known = steps.filter(({ value }) => value !== null);
  const about = [titleOf(metric), progress(training, known)].filter(Boolean).join(", ");
  return h(
    "li",
    h(
      "div.row",
      h("strong", h("a", { href: runPlace(dataset.name, dataset.split, run) }, run)),
      signs(training, known),
    ),
    h("span.sub", `${dataset.name}/${dataset.split} · ${plural(checkpoints, "checkpoint")}`),
    h("div.row.value", h("span.big", number(known[known.length - 1]?.value, metric)), h("span.quiet", about)),
    spark(known, `${titleOf(metric)} over ${plural(known.length, "step")}`, range),
  );
}

/** What is expected, or what the latest step changed. @param {TrainingRun} training @param {TrainingRun["steps"]} known */
function progress({ metric, forecast }, known) {
  if (forecast) return `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`;
  const [before, latest] = known.slice(-2);
  return (
    latest &&
    `${signed(Number(latest.value) - Number(before.value), metric)} since step ${count(before.step)}`
  );
}

/** How it goes. @param {TrainingRun} training @param {TrainingRun["steps"]} known */
function signs({ metric, steps, best, running }, known) {
  const last = known[known.length - 1];
  const collapsed = collapsedSince(known, (step) => step.is_collapsed);
  const fall = steps.findLast((step) => step.fall)?.fall;
  const isBest = best?.step === last?.step;
  return h(
    "span",
    fall && [h("span.badge.bad", `step ${count(fall.step)} ${fallSign(fall, metric)}`), " "],
    collapsed && [h("span.badge.wait", `collapsed since step ${count(collapsed.step)}`), " "],
    running > 0 && h("span.badge.wait", "running"),
    !running &&
      !fall &&
      !collapsed &&
      best &&
      (isBest ? h("span.badge.good", "improving") : h("span.badge", `best: step ${count(best.step)}`)),
  );
}

/** A small curve without axes: its last point is marked, and steps that are worse than expected or collapsed. @param {TrainingRun["steps"]} steps With a score. @param {string} said @param {import("../plots/scale.js").Range} range */
function spark(steps, said, range) {
  const { width, height, room } = SPARK;
  const places = steps.map(({ step }) => step);
  const x = places.map(linear(extent(places), [room, width - room]));
  const y = steps.map(({ value }) => Number(value)).map(linear(range, [height - room, room]));
  return s(
    "svg.plot.spark",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    s("polyline.line", { points: steps.map((_, at) => `${x[at]},${y[at]}`).join(" ") }),
    steps.map((item, at) => {
      const { step, is_collapsed: hasCollapsed } = item;
      const fall = item.is_fallen && item.fall; // by the metric of the curve
      if (!fall && !hasCollapsed && at < steps.length - 1) return null;
      return s(
        "circle",
        {
          class: ["point", fall && "fallen", hasCollapsed && "collapsed"],
          ...{ cx: x[at], cy: y[at], r: fall || hasCollapsed ? 5 : 4 },
        },
        hasCollapsed
          ? s("title", `step ${count(step)} says one caption for most images`)
          : fall && s("title", `step ${count(step)} is ${fallSize(fall)}`),
      );
    }),
  );
}
