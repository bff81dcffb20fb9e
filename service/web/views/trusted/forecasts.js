/** Forecasts of one metric and their card, against what was measured later. */

import { h } from "../../core/dom.js";
import { beyondOf, forecastsOf, noneBecause, toldOf } from "../../parts/forecasts.js";
import { fact, folded, term } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { evaluationLink, nameOrId } from "../../parts/names.js";
import { count, interval, number, signed } from "../../parts/numbers.js";
import { FEW, forecastsSentence, plural } from "../../parts/sentences.js";
import { table } from "../../parts/table.js";
import { scatter } from "../../plots/scatter.js";

/** @typedef {Schemas["Forecast"]} Forecast */
/** @typedef {{ run: Evaluation, forecast: Forecast, expected: number, value: number }} Outcome */

/** @param {Evaluation[]} items The latest first. @param {string} metric @param {string | undefined} best The metric that predicts it best over models. */
export function forecasts(items, metric, best) {
  const pairs = items.flatMap((run) => outcomeOf(run, metric));
  const latest = items.map((run) => toldOf(run)[metric]).find((each) => each?.card);
  if (!latest && !pairs.length)
    return none(
      `No forecast of ${titleOf(metric)} has been made on this split.`,
      items.map(noneBecause).find(Boolean),
    );
  const next =
    latest?.none_because &&
    none(`The next evaluations get no forecast of ${titleOf(metric)}.`, latest.none_because);
  const facts = h("dl.facts", latest && cardFacts(latest, metric, best), cameTrue(pairs));
  if (pairs.length < FEW)
    return [
      h("p", forecastsSentence({ metric, pairs })),
      next,
      latest && folded("What forecasts are made from", facts),
    ];
  return [
    h("div.beside", h("div", facts, next), plot(pairs, titleOf(metric))),
    folded("As a table", outcomes(pairs, metric)),
  ];
}

/** @param {string} claim @param {string | null | undefined} reason As the service tells it, with its numbers. */
const none = (claim, reason) => [h("p.quiet", claim), reason && folded("Why not", h("p.quiet", reason))];

/** A forecast of a score that was measured later. @param {Evaluation} run @param {string} metric @returns {Outcome[]} */
function outcomeOf(run, metric) {
  const forecast = forecastsOf(run)[metric];
  const value = run.scores[metric]?.value;
  if (typeof forecast?.value !== "number" || typeof value !== "number") return [];
  return [{ run, forecast, expected: forecast.value, value }];
}

const ERROR = "In runs that the forecast has not seen; beside it the error of the mean of other runs.";
const AGREEMENT = "Rank correlation of forecasts with scores: over all evaluations, and within runs.";
const COVERAGE = "How many scores lay within the interval, of runs that the forecast has not seen.";
const NOT_BEST =
  "A forecast takes what errs least on training runs left out, not what agrees most over models";

/** @param {Forecast} forecast @param {string} metric @param {string | undefined} best */
function cardFacts({ card }, metric, best) {
  if (!card) return null;
  const { predictor, fit, evaluations, runs, error, error_without, coverage } = card;
  return [
    fact(
      "Forecast from",
      metricName(predictor),
      h("span.sub", `Fit: ${fit}`),
      best && best !== predictor && h("span.sub", `${NOT_BEST} (${titleOf(best)})`),
    ),
    fact("Learned from", `${plural(evaluations, "evaluation")} of ${plural(runs, "training run")}`),
    fact(term("Mean error", ERROR), `${number(error, metric)} (without it ${number(error_without, metric)})`),
    fact(
      term("Agreement", AGREEMENT),
      `${number(card.rank_agreement)} over all, ${number(card.rank_agreement_within)} within runs`,
    ),
    fact(
      term("Within the interval when checked", COVERAGE),
      coverage === null ? "–" : `${Math.round(100 * coverage)} %`,
    ),
  ];
}

/** @param {Outcome[]} pairs */
const cameTrue = (pairs) =>
  pairs.length >= FEW &&
  fact("Within the interval", `${count(pairs.filter(isInside).length)} of ${count(pairs.length)}`);

/** @param {Outcome} pair */
const isInside = ({ forecast: { interval: ends }, value }) =>
  ends !== null && value >= ends[0] && value <= ends[1];

/** @param {Outcome[]} pairs @param {string} metric */
function outcomes(pairs, metric) {
  /** @type {Column<Outcome>[]} */
  const columns = [
    { head: "Evaluation", kind: "name", cell: ({ run }) => evaluationLink(run.id, run.labels) },
    {
      head: "Forecast",
      kind: "number",
      phone: "below",
      cell: ({ forecast }) => [
        `${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
        h("span.sub", beyondOf(forecast)),
      ],
    },
    { head: "Measured", kind: "number", phone: "value", cell: ({ value }) => number(value, metric) },
    { head: "Difference", kind: "number", cell: ({ expected, value }) => signed(value - expected, metric) },
  ];
  return table(pairs, { name: `Forecasts of ${titleOf(metric)}`, columns, keyOf: ({ run }) => run.id });
}

/** @param {Outcome[]} pairs @param {string} title */
const plot = (pairs, title) =>
  scatter(
    pairs.map(({ run, forecast, expected, value }) => ({
      x: expected,
      y: value,
      ends: forecast.interval,
      name: nameOrId(run.labels, run.id),
    })),
    {
      xName: `${title}, forecast`,
      yName: "measured",
      name: `Forecasts of ${title} against what was measured`,
      what: "evaluations",
    },
  );
