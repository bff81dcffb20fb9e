/** The scores of an evaluation, each beside its forecast and what the metric is worth. */

import { h } from "../../core/dom.js";
import { forecastsOf, noneBecause } from "../../parts/forecasts.js";
import { head, scrolled } from "../../parts/layout.js";
import { direction, interval, number } from "../../parts/numbers.js";
import { rangeOf, whisker } from "../../plots/whisker.js";

/** @typedef {import("../../core/api.js").Schemas["EvaluationOut"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["ScoreOut"]} Score */
/** @typedef {import("../../core/api.js").Schemas["ForecastOut"]} Forecast */
/** @typedef {import("../../core/api.js").Schemas["MetricHealth"]} Health */
/** @typedef {import("../../core/api.js").Schemas["EstimateOut"]} Estimate */

/** @type {["human" | "constant", string][]} */
const SHARES = [
  ["human", "people's own captions"],
  ["constant", "one caption for all images"],
];

/** Scores that are measured, and those that are only forecast yet. @param {Evaluation} run */
export function scores(run) {
  const forecasts = forecastsOf(run);
  const names = [...new Set([...Object.keys(run.scores), ...Object.keys(forecasts)])];
  if (!names.length) return h("p", { class: "quiet" }, "None yet.");
  return [
    noneBecause(run) && h("p", { class: "quiet" }, `No forecast: ${noneBecause(run)}`),
    scrolled(
      "Table of scores",
      h(
        "table",
        {},
        head(["Metric", "Score", "Interval", "Drawn", "Forecast", "Health", "Signature"]),
        h(
          "tbody",
          {},
          names.map((name) =>
            scoreRow(name, run.scores[name], forecasts[name], run.health?.[name], run.estimate?.[name]),
          ),
        ),
      ),
    ),
  ];
}

/** @param {string} name @param {Score | undefined} score @param {Forecast | undefined} forecast @param {Health | undefined} health @param {Estimate | undefined} estimate */
function scoreRow(name, score, forecast, health, estimate) {
  const shown = score ?? { value: estimate?.value ?? null, interval: estimate?.interval ?? null };
  const marks = {
    "people's captions": health?.human ?? null,
    "one caption for all images": health?.constant ?? null,
  };
  const known = [shown, forecast, ...Object.values(marks).map((value) => ({ value, interval: null }))];
  const range = fromZero(rangeOf(known.filter((each) => each !== undefined)));
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      name,
      score && h("span", { class: "quiet" }, ` ${direction(score.higher_is_better)}`),
    ),
    h(
      "td",
      { class: "number" },
      number(shown.value),
      !score && estimate && h("span", { class: "quiet" }, ` of ${estimate.images} of ${estimate.of} images`),
    ),
    h("td", { class: "number" }, interval(shown.interval)),
    h(
      "td",
      {},
      whisker(shown, range, { forecast, marks }),
      score && forecast?.interval && landed(score.value, forecast.interval),
    ),
    h(
      "td",
      { class: "number" },
      forecast && (forecast.none_because ?? `${number(forecast.value)} ${interval(forecast.interval)}`),
    ),
    h(
      "td",
      {},
      health &&
        SHARES.flatMap(([key, told]) =>
          health[key] === null
            ? []
            : [h("span", { class: "label", title: told }, `${key} ${number(health[key])}`)],
        ),
    ),
    h("td", {}, score && h("code", {}, score.signature)),
  );
}

/** Scores are drawn from zero on, so that lengths can be compared. @param {[number, number]} range @returns {[number, number]} */
const fromZero = ([low, high]) => [Math.min(0, low), Math.max(0, high) || 1];

/** @param {number | null} value @param {[number, number]} ends */
function landed(value, [from, to]) {
  if (value === null) return null;
  return h(
    "span",
    { class: "quiet" },
    value >= from && value <= to
      ? " as forecast"
      : value < from
        ? " below the forecast"
        : " above the forecast",
  );
}
