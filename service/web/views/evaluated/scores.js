/** The scores of an evaluation, each beside its forecast and what the metric is worth. */

import { h } from "../../core/dom.js";
import { beyondOf, forecastsOf, noneBecause } from "../../parts/forecasts.js";
import { table } from "../../parts/layout.js";
import { direction, interval, number } from "../../parts/numbers.js";
import { extent, finite, isOutside, widened } from "../../plots/scale.js";
import { whisker } from "../../plots/whisker.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Forecast"]} Forecast */
/** @typedef {import("../../core/api.js").Schemas["MetricHealth"]} Health */

const FRACTIONS = /^(bleu_\d|rouge_l|meteor|spice|accord|.*normcount.*)/; // never above 1
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
  const none = noneBecause(run);
  const columns = [
    "Metric",
    "Score",
    "Interval",
    "Plot",
    Object.keys(forecasts).length > 0 && "Forecast",
    run.health && "Health",
    "Signature",
  ];
  return [
    none && h("p", { class: "quiet" }, `No forecast: when it was submitted there were ${none}`),
    table(
      "Table of scores",
      columns.filter((name) => typeof name === "string"),
      names.map((name) => scoreRow(name, run, forecasts[name])),
    ),
  ];
}

/** @param {string} name @param {Evaluation} run @param {Forecast | undefined} forecast */
function scoreRow(name, run, forecast) {
  const score = run.scores[name];
  const estimate = run.estimate?.[name];
  const health = run.health?.[name];
  const shown = score ?? { value: estimate?.value ?? null, interval: estimate?.interval ?? null };
  const hasForecasts = Object.keys(forecastsOf(run)).length > 0;
  return h(
    "tr",
    h(
      "th",
      { scope: "row" },
      name,
      score && h("span", { class: "quiet" }, ` ${direction(score.higher_is_better)}`),
    ),
    h(
      "td",
      { class: "number" },
      number(shown.value, name),
      !score && estimate && h("span", { class: "quiet" }, ` of ${estimate.images} of ${estimate.of} images`),
    ),
    h("td", { class: "number" }, interval(shown.interval, name)),
    h(
      "td",
      plot(name, shown, forecast, health),
      score && forecast?.interval && landed(score.value, forecast.interval),
    ),
    hasForecasts &&
      h(
        "td",
        { class: "number" },
        forecast &&
          (forecast.none_because ?? `${number(forecast.value, name)} ${interval(forecast.interval, name)}`),
        h("span", { class: "quiet" }, beyondOf(forecast)),
      ),
    run.health &&
      h(
        "td",
        health &&
          SHARES.flatMap(([key, told]) =>
            health[key] === null
              ? []
              : [h("span", { class: "label", title: told }, `${key} ${number(health[key])}`)],
          ),
      ),
    h("td", score && h("code", score.signature)),
  );
}

/**
 * From 0 to what there is to compare with, where that is not far off, or to the most that there can be;
 * nothing where there is neither.
 *
 * @param {string} name @param {import("../../plots/whisker.js").Score} shown @param {Forecast | undefined} forecast @param {Health | undefined} health
 */
function plot(name, shown, forecast, health) {
  const marks = {
    "people's captions": health?.human ?? null,
    "one caption for all images": health?.constant ?? null,
  };
  const beside = finite([forecast?.value, ...(forecast?.interval ?? []), ...Object.values(marks)]);
  if (!beside.length) return FRACTIONS.test(name) && whisker(shown, [0, 1]);
  const { value, interval: ends } = shown.value === null && forecast ? forecast : shown;
  const [low, high] = widened(extent([0, value, ...(ends ?? [])]), beside);
  /** @type {[number, number]} */
  const range = [low, 1.05 * high || 1];
  const away = Object.entries(marks).filter(([, each]) => each !== null && isOutside(range, each));
  return [
    whisker(shown, range, { metric: name, forecast, marks }),
    away.map(([mark, each]) =>
      h("span", { class: "quiet" }, ` ${mark}: ${number(each, name)}, outside the plot`),
    ),
  ];
}

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
