/** The card of a split: signal and noise of metrics, and how often early scores decide right. */

import { h } from "../../core/dom.js";
import { folded, term } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { count, number } from "../../parts/numbers.js";
import { table } from "../../parts/table.js";

/** @typedef {Schemas["MetricSignal"]} MetricSignal */
/** @typedef {Schemas["EarlyDecision"]} EarlyDecision */

const PERCENTS = [5, 10, 25, 50];
const ENOUGH = 0.9; // of pairs, for a metric to be recommended
const MANY = 20; // pairs, of which all are right whichever training is left out
const SIGNAL = "The difference of the best and the worst training, as a share of their mean.";
const NOISE = "How much the last checkpoints of one training differ, as a share of their mean.";
const LARGEST = "Which of three differs most: checkpoints, seeds, or the choice of images.";
const SHOWN = "The smallest difference of two trainings that a test shows in 95 of 100 cases.";
const early = (/** @type {number} */ percent) =>
  `Pairs of trainings whose final order this metric's scores have in the first ${percent} % of the steps, with the interval that leaves out each training once.`;

/** @returns {Column<MetricSignal>[]} */
const columns = () => [
  { head: "Metric", kind: "name", cell: ({ metric }) => metricName(metric) },
  { head: term("Signal", SIGNAL), kind: "number", cell: ({ signal }) => number(signal) },
  { head: term("Noise", NOISE), kind: "number", cell: ({ noise }) => number(noise) },
  { head: "Signal / noise", kind: "number", phone: "value", cell: ({ snr }) => number(snr) },
  { head: term("Largest noise", LARGEST), cell: ({ largest_noise }) => largest_noise ?? "–" },
  {
    head: term("Shown difference", SHOWN),
    kind: "number",
    cell: ({ metric, detectable }) => number(detectable, metric),
  },
  ...PERCENTS.map((percent) => ({
    head: term(`At ${percent} %`, early(percent)),
    kind: "number",
    cell: (/** @type {MetricSignal} */ found) => share(decided(found, percent)),
  })),
];

/** Metrics that a test can tell apart come first; the others are folded. @param {Schemas["SignalCard"]} card */
export function signals(card) {
  if (card.none_because) return h("p.quiet", `There is no card: ${card.none_because}.`);
  const isTested = (/** @type {MetricSignal} */ { metric, detectable }) =>
    detectable !== null || metric === card.target;
  const others = card.metrics.filter((each) => !isTested(each));
  return [
    h("p", summary(card)),
    signalTable("Metrics that decide early", card.metrics.filter(isTested)),
    others.length > 0 &&
      folded(
        `${count(others.length)} more metrics, without a test`,
        signalTable("Metrics without a test", others),
      ),
  ];
}

/** @param {string} name @param {readonly MetricSignal[]} items */
const signalTable = (name, items) =>
  table(items, { name, columns: columns(), keyOf: ({ metric }) => metric });

/** The metric that decides earliest, in one sentence. @param {Schemas["SignalCard"]} card */
export function summary({ trainings, pairs, too_close, target, metrics }) {
  const told = `${count(Object.keys(trainings).length)} trainings make ${count(pairs)} pairs whose final ${titleOf(target)} differs (${count(too_close)} ${too_close === 1 ? "is" : "are"} too close to tell).`;
  for (const percent of PERCENTS) {
    const [best] = metrics
      .map((each) => ({ metric: each.metric, decision: decided(each, percent) }))
      .filter(({ decision }) => surely(decision) >= ENOUGH)
      .sort((a, b) => (b.decision?.accuracy ?? 0) - (a.decision?.accuracy ?? 0));
    if (best)
      return `${told} At ${percent} % of the steps, ${titleOf(best.metric)} has the final order of ${share(best.decision)} of them.`;
  }
  return `${told} No metric shown surely has the final order of ${ENOUGH * 100} % of them in the first half of the steps.`;
}

/** @param {MetricSignal} found @param {number} percent */
const decided = (found, percent) => found.decisions.find((each) => each.percent === percent);

/** The share of pairs that are surely right. @param {EarlyDecision | undefined} decision */
function surely(decision) {
  if (!decision?.accuracy) return 0;
  return decision.interval?.[0] ?? (decision.pairs >= MANY ? decision.accuracy : 0);
}

/** @param {EarlyDecision | undefined} decision */
function share(decision) {
  const { accuracy, interval } = decision ?? {};
  if (typeof accuracy !== "number") return "–";
  const [whole, low, high] = [accuracy, ...(interval ?? [])].map((each) => Math.round(100 * each));
  return interval ? `${whole} % (${low}–${high})` : `${whole} %`;
}
