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
