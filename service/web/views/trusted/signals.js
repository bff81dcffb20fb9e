/** The card of a split: signal and noise of metrics, and how often early scores decide right. */

import { h } from "../../core/dom.js";
import { folded, term } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { count, number } from "../../parts/numbers.js";
import { decidedShare, decisionAt, earlyFinding, FEW, PERCENTS, plural } from "../../parts/sentences.js";
import { table } from "../../parts/table.js";
import { filled } from "./filled.js";

/** @typedef {Schemas["MetricSignal"]} MetricSignal */

const SIGNAL = "The difference of the best and the worst training run, as a share of their mean.";
const NOISE = "How much the last checkpoints of one training run differ, as a share of their mean.";
const MEANING =
  "Signal: how much the training runs differ in a metric. Noise: how much it changes between the last checkpoints of one run. Where the noise is as large as the signal, the metric does not tell runs apart.";
const LARGEST = "Which of three differs most: checkpoints, seeds, or the choice of images.";
const SHOWN = "The smallest difference of two training runs that a test shows in 95 of 100 cases.";
const early = (/** @type {number} */ percent) =>
  `Pairs of training runs whose final order this metric's scores have in the first ${percent} % of the steps, with the interval that leaves out each training run once.`;

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
    cell: (/** @type {MetricSignal} */ found) => decidedShare(decisionAt(found.decisions, percent)),
  })),
];

/** Metrics that a test can tell apart come first; the others are folded. @param {Schemas["SignalCard"]} card */
export function signals(card) {
  if (card.none_because) return h("p.quiet", `Nothing to compare yet: ${card.none_because}.`);
  const isTested = (/** @type {MetricSignal} */ { metric, detectable }) =>
    detectable !== null || metric === card.target;
  const others = card.metrics.filter((each) => !isTested(each));
  const tables = [
    h("p.quiet", MEANING),
    h("p.quiet.on-phone", "Beside each metric: signal / noise."),
    signalTable("Metrics that decide early", card.metrics.filter(isTested)),
    others.length > 0 &&
      folded(
        `${count(others.length)} more metrics, without a test`,
        signalTable("Metrics without a test", others),
      ),
  ];
  return [
    h("p", summary(card)),
    card.pairs < FEW ? folded("Signal and noise of each metric", ...tables) : tables,
  ];
}

/** @param {string} name @param {readonly MetricSignal[]} items */
const signalTable = (name, items) =>
  table(items, { name, columns: filled(columns(), items), keyOf: ({ metric }) => metric });

/** How many pairs there are, and what they tell. @param {Schemas["SignalCard"]} card */
function summary(card) {
  const { trainings, pairs, too_close: close, target } = card;
  const left = close > 0 ? `; ${plural(close, "pair")} ${close === 1 ? "is" : "are"} too close to tell` : "";
  return `${plural(Object.keys(trainings).length, "training run")} make ${plural(pairs, "pair")} whose final ${titleOf(target)} differs${left}. ${earlyFinding(card)}`;
}
