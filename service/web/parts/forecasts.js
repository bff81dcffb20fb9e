/** An answer's `forecast` is one for each metric, or says why there is none at all. */

import { precise } from "./numbers.js";

/** @typedef {Schemas["Forecast"]} Forecast */
/** @typedef {Schemas["NoForecast"]} NoForecast */

/** @param {Evaluation["forecast"]} forecast @returns {forecast is NoForecast} */
const isNone = (forecast) => typeof forecast?.none_because === "string";

/** Those that there are, by metric. @param {Evaluation} run @returns {Record<string, Forecast>} */
export const forecastsOf = ({ forecast }) => (forecast && !isNone(forecast) ? forecast : {});

/** All that is told of forecasts, by metric; also of those that there are not. @param {Evaluation} run @returns {Record<string, Forecast>} */
export const toldOf = ({ forecast }) => (isNone(forecast) ? forecast.metrics : (forecast ?? {}));

/** @param {Evaluation} run */
export const noneBecause = ({ forecast }) => (isNone(forecast) ? forecast.none_because : null);

/** That a forecast goes beyond what other runs have shown, in words; empty where it does not. @param {Forecast | null | undefined} forecast */
export const beyondOf = (forecast) =>
  typeof forecast?.beyond === "number"
    ? ` beyond what other runs have shown (${forecast.card?.predictor} is better by ${precise(forecast.beyond)})`
    : "";

const PLAIN = /** @type {[RegExp, string][]} */ ([
  [/^outside the fitted range/, "its pre-gen scores lie outside those of earlier training runs"],
  [
    /^not enough evidence: training runs hardly overlap/,
    "training runs have too few pre-gen scores in a common range",
  ],
  [
    /^(\d+) finished evaluations? of other checkpoints on this split, .*at least (\d+) are needed/,
    "it needs $2 earlier evaluations on this split, computed in the same way; there were $1",
  ],
  [/^not enough evidence/, "too few evaluations have finished to measure the error of a forecast"],
]);

/** Why there is no forecast, in plain words. @param {string} reason As the service tells it, with all its numbers. */
export function plainly(reason) {
  const [pattern, text] = PLAIN.find(([pattern]) => pattern.test(reason)) ?? [];
  return pattern && text ? text.replace(/\$(\d)/g, (_, at) => pattern.exec(reason)?.[at] ?? "") : reason;
}
