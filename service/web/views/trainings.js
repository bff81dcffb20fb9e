/** The trainings of one split: the curve of each, its latest checkpoint, and the steps that are worse than expected. */

import { resource } from "../core/api.js";
import { h, s } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { place } from "../core/urls.js";
import { view } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { runPlace, splitCrumbs, splitTabs } from "../parts/places.js";
import { fallSign, fallSize, plural, trainingsSentence } from "../parts/sentences.js";

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

/** @param {TrainingRun[]} items */
export const trainingCards = (items) => h("ul.cards", items.map(card));

/** @param {TrainingRun} training */
function card(training) {
  const { run, dataset, metric, checkpoints, steps } = training;
  const known = steps.filter(({ value }) => value !== null);
  const about = [titleOf(metric), told(training, known)].filter(Boolean).join(", ");
  return h(
    "li",
    h(
      "div.row",
      h("strong", h("a", { href: runPlace(dataset.name, dataset.split, run) }, run)),
      signs(training, known),
    ),
    h("span.sub", `${dataset.name}/${dataset.split} · ${plural(checkpoints, "checkpoint")}`),
    h("div.row.value", h("span.big", number(known[known.length - 1]?.value, metric)), h("span.quiet", about)),
    spark(known, `${titleOf(metric)} over ${plural(known.length, "step")}`),
  );
}

/** What is expected, or what the latest step changed. @param {TrainingRun} training @param {TrainingRun["steps"]} known */
function told({ metric, forecast }, known) {
  if (forecast) return `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`;
  const [before, latest] = known.slice(-2);
  return (
    latest &&
    `${signed(Number(latest.value) - Number(before.value), metric)} since step ${count(before.step)}`
  );
}

/** How it goes. @param {TrainingRun} training @param {TrainingRun["steps"]} known */
function signs({ steps, best, running }, known) {
  const fallen = steps.findLast(({ fall }) => fall);
  const isBest = best?.step === known[known.length - 1]?.step;
  return h(
    "span",
    fallen?.fall && [h("span.badge.bad", `step ${count(fallen.step)} ${fallSign(fallen.fall)}`), " "],
    running > 0 && h("span.badge.wait", "running"),
    !running &&
      !fallen &&
      best &&
      (isBest ? h("span.badge.good", "improving") : h("span.badge", `best: step ${count(best.step)}`)),
  );
}

/** A small curve without axes: its last point is marked, and the steps that are worse than expected. @param {TrainingRun["steps"]} steps With a score. @param {string} said */
function spark(steps, said) {
  const { width, height, room } = SPARK;
  const values = steps.map(({ value }) => Number(value));
  const places = steps.map(({ step }) => step);
  const x = along(places, room, width - room);
  const y = along(values, height - room, room);
  return s(
    "svg.plot.spark",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    s("polyline.line", { points: steps.map((_, at) => `${x[at]},${y[at]}`).join(" ") }),
    steps.map(({ step, fall }, at) => {
      if (!fall && at < steps.length - 1) return null;
      return s(
        "circle",
        { class: ["point", fall && "fallen"], cx: x[at], cy: y[at], r: fall ? 5 : 4 },
        fall && s("title", `step ${count(step)} is ${fallSize(fall)}`),
      );
    }),
  );
}

/** The places of values between two ends. @param {number[]} values @param {number} start @param {number} end */
function along(values, start, end) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => start + ((value - low) / (high - low || 1)) * (end - start));
}
