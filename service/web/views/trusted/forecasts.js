/** Forecasts of one metric and their card, against what was measured later. */

import { h } from "../../core/dom.js";
import { beyondOf, forecastsOf, noneBecause, toldOf } from "../../parts/forecasts.js";
import { fact, term } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { evaluationLink, nameOrId } from "../../parts/names.js";
import { count, interval, number, signed } from "../../parts/numbers.js";
import { table } from "../../parts/table.js";
import { scatter } from "../../plots/scatter.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Forecast"]} Forecast */
/** @typedef {{ run: Evaluation, forecast: Forecast, expected: number, value: number }} Outcome */

/** @param {Evaluation[]} items The latest first. @param {string} metric */
export function forecasts(items, metric) {
  const pairs = items.flatMap((run) => outcomeOf(run, metric));
  const latest = items.map((run) => toldOf(run)[metric]).find((each) => each?.card);
  if (!latest && !pairs.length)
    return h(
      "p",
      { class: "quiet" },
      items.map(noneBecause).find(Boolean) ??
        `No forecast of ${titleOf(metric)} has been made on this split.`,
    );
  return [
    h(
      "div",
      { class: "beside" },
      h(
        "div",
        h("dl", { class: "facts" }, latest && cardFacts(latest, metric), cameTrue(pairs)),
        latest?.none_because && h("p", { class: "quiet" }, latest.none_because),
      ),
      pairs.length > 0 && plot(pairs, titleOf(metric)),
    ),
    pairs.length > 0 && outcomes(pairs, metric),
  ];
}

/** A forecast of a score that was measured later. @param {Evaluation} run @param {string} metric @returns {Outcome[]} */
function outcomeOf(run, metric) {
  const forecast = forecastsOf(run)[metric];
  const value = run.scores[metric]?.value;
  if (typeof forecast?.value !== "number" || typeof value !== "number") return [];
  return [{ run, forecast, expected: forecast.value, value }];
}

/** @param {Forecast} forecast @param {string} metric */
function cardFacts({ card }, metric) {
  if (!card) return null;
  const share = (/** @type {number | null} */ value) =>
    value === null ? "–" : `${Math.round(100 * value)} %`;
  return [
    fact("Forecast from", metricName(card.predictor), h("span", { class: "sub" }, `Fit: ${card.fit}`)),
    fact("Learned from", `${count(card.evaluations)} evaluations of ${count(card.runs)} runs`),
    fact(
      term(
        "Mean error",
        "In runs that the forecast has not seen; beside it the error of the mean of other runs.",
      ),
      `${number(card.error, metric)} (without it ${number(card.error_without, metric)})`,
    ),
    fact(
      term("Agreement", "Rank correlation of forecasts with scores: over all evaluations, and within runs."),
      `${number(card.rank_agreement)} over all, ${number(card.rank_agreement_within)} within runs`,
    ),
    fact(
      term(
        "Promised coverage",
        "How many scores lay within the interval, of runs that the forecast has not seen.",
      ),
      share(card.coverage),
    ),
  ];
}

/** @param {Outcome[]} pairs */
const cameTrue = (pairs) =>
  pairs.length > 0 &&
  fact("Within the interval", `${count(pairs.filter(isInside).length)} of ${count(pairs.length)}`);

/** @param {Outcome} pair */
const isInside = ({ forecast: { interval: ends }, value }) =>
  ends !== null && value >= ends[0] && value <= ends[1];

/** @param {Outcome[]} pairs @param {string} metric */
function outcomes(pairs, metric) {
  /** @type {import("../../parts/table.js").Column<Outcome>[]} */
  const columns = [
    { head: "Evaluation", kind: "name", cell: ({ run }) => evaluationLink(run.id, run.labels) },
    {
      head: "Forecast",
      kind: "number",
      phone: "below",
      cell: ({ forecast }) => [
        `${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
        h("span", { class: "sub" }, beyondOf(forecast)),
      ],
    },
    { head: "Measured", kind: "number", phone: "value", cell: ({ value }) => number(value, metric) },
    { head: "Difference", kind: "number", cell: ({ expected, value }) => signed(value - expected, metric) },
  ];
  return h(
    "details",
    h("summary", "As a table"),
    table(pairs, { name: `Forecasts of ${titleOf(metric)}`, columns, keyOf: ({ run }) => run.id }),
  );
}

/** @param {Outcome[]} pairs @param {string} title */
const plot = (pairs, title) =>
  scatter(
    pairs.map(({ run, expected, value }) => ({ x: expected, y: value, name: nameOrId(run.labels, run.id) })),
    {
      xName: `${title}, forecast`,
      yName: "measured",
      name: `Forecasts of ${title} against what was measured`,
      what: "evaluations",
    },
  );
