/** The card of a split: signal and noise of metrics, and how often early scores decide right. */

import { h } from "../../core/dom.js";
import { select, table } from "../../parts/layout.js";
import { number } from "../../parts/numbers.js";

/** @typedef {import("../../core/api.js").Schemas["SignalCard"]} SignalCard */
/** @typedef {import("../../core/api.js").Schemas["MetricSignal"]} MetricSignal */
/** @typedef {import("../../core/api.js").Schemas["EarlyDecision"]} EarlyDecision */

const PERCENTS = [5, 10, 25, 50];
const DECIDES = PERCENTS.map((percent) => `Right at ${percent} % of steps`);
const COLUMNS = [
  "Metric",
  "Signal",
  "Noise",
  "Signal / noise",
  "Largest noise",
  "Seen difference",
  ...DECIDES,
];
const ENOUGH = 0.9; // of pairs, for a metric to be recommended
const MANY = 20; // pairs, of which all are right whichever training is left out

/** @param {SignalCard} card @param {{ value: string }} target */
export function signals(card, target) {
  if (card.none_because) return h("p", { class: "quiet" }, `There is no card: ${card.none_because}.`);
  const targets = card.metrics.filter((each) => each.detectable !== null).map(({ metric }) => metric);
  return [
    h("p", summary(card)),
    h(
      "label",
      "Decides which training ends with the better ",
      select(() => [...new Set([card.target, ...targets])].map((each) => [each, each]), target),
    ),
    table("Card of the split", COLUMNS, card.metrics.map(row)),
  ];
}

/** The metric that decides earliest, in one sentence. @param {SignalCard} card */
export function summary({ trainings, pairs, too_close, target, metrics }) {
  const told = `${Object.keys(trainings).length} trainings make ${pairs} pairs whose final ${target} differs (${too_close} are too close to tell).`;
  for (const percent of PERCENTS) {
    const [best] = metrics
      .map((each) => ({ metric: each.metric, decision: decided(each, percent) }))
      .filter(({ decision }) => surely(decision) >= ENOUGH)
      .sort((a, b) => (b.decision?.accuracy ?? 0) - (a.decision?.accuracy ?? 0));
    if (best)
      return `${told} At ${percent} % of the steps, ${best.metric} has the final order of ${share(best.decision)} of them.`;
  }
  return `${told} No metric shown surely has the final order of ${ENOUGH * 100} % of them in the first half of the steps.`;
}

/** @param {MetricSignal} found */
const row = (found) =>
  h(
    "tr",
    h("th", { scope: "row" }, found.metric),
    [found.signal, found.noise, found.snr].map((each) => h("td", { class: "number" }, number(each))),
    h("td", found.largest_noise ?? "–"),
    h("td", { class: "number" }, number(found.detectable, found.metric)),
    PERCENTS.map((percent) => h("td", { class: "number" }, share(decided(found, percent)))),
  );

/** @param {MetricSignal} found @param {number} percent */
const decided = (found, percent) => found.decisions.find((each) => each.percent === percent);

/** The share of pairs that are surely right. @param {EarlyDecision | undefined} decision */
function surely(decision) {
  if (!decision?.accuracy) return 0;
  return decision.interval?.[0] ?? (decision.pairs >= MANY ? decision.accuracy : 0);
}

/** @param {EarlyDecision | undefined} decision */
function share(decision) {
  if (decision?.accuracy === null || decision?.accuracy === undefined) return "–";
  const [low, high] = (decision.interval ?? []).map((each) => Math.round(100 * each));
  const whole = `${Math.round(100 * decision.accuracy)} %`;
  return decision.interval ? `${whole} (${low}–${high})` : whole;
}
