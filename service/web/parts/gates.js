/** Gates in words: their conditions, and the reasons of their verdicts, from the language of gates. */

import { titleOf } from "./metrics.js";
import { number } from "./numbers.js";

/** @typedef {Schemas["Gate"]} Gate */

const RELATIONS = /** @type {Record<string, string>} */ ({
  ">=": "at least",
  "<=": "at most",
  ">": "above",
  "<": "below",
});
const THRESHOLD = /^\s*([A-Za-z_][\w@:]*)\s*(>=|<=|>|<)\s*(.+?)\s*$/;
const TEST = /^\s*(not_worse|better|no_significant_drop)\s*\((.+)\)\s*$/;
const MEASURED = /^([A-Za-z_][\w@:]*) (?:(between) (\S+) and )?(\S+) (>=|<=|>|<) ([^\s;]+)/;

/** @param {string} text */
const withMinus = (text) => text.replaceAll("-", "−");

/** @param {string[]} metrics */
const titlesOf = (metrics) =>
  [metrics.slice(0, -1).map(titleOf).join(", "), titleOf(metrics[metrics.length - 1])]
    .filter(Boolean)
    .join(" and ");

/** Its condition: "CIDEr-D at least 9". @param {string} gate As it was submitted. */
export function gateName(gate) {
  const [, metric, relation, bound] = THRESHOLD.exec(gate) ?? [];
  if (metric)
    return `${titleOf(metric)} ${RELATIONS[relation]} ${withMinus(bound).replace("baseline", "the baseline")}`;
  const [, test, list] = TEST.exec(gate) ?? [];
  const given = (list ?? "").split(",").map((each) => each.trim());
  if (test === "not_worse")
    return `not worse than the baseline by more than ${given[given.length - 1]} in ${titlesOf(given.slice(0, -1))}`;
  if (test === "better") return `better than the baseline in ${titlesOf(given)}`;
  if (test) return `no significant drop in ${titlesOf(given)} against the baseline`;
  return gate;
}

/** Why it was decided so, without ids: "CIDEr-D 0.168 is below 9". @param {Gate} gate */
export function gateReason({ detail, scores }) {
  const measured = detail?.replace(
    MEASURED,
    (_, metric, between, low, high, relation, bound) =>
      `${titleOf(metric)} ${between ? `between ${rounded(low, bound, metric)} and ` : ""}${rounded(high, bound, metric)} is ${RELATIONS[relation]} ${withMinus(bound)}`,
  );
  const named = Object.keys(scores).reduce(
    (text, metric) => text?.replaceAll(new RegExp(`\\b${metric}\\b`, "g"), titleOf(metric)),
    measured?.replace(/ \(ev_[^()]*\)/g, ""),
  );
  return named ? named.replace(/([^.])$/, "$1.") : null;
}

/** As scores are shown, unless that hides the difference from the bound. @param {string} text @param {string} bound @param {string} metric */
function rounded(text, bound, metric) {
  const shown = number(Number(text), metric);
  return shown === number(Number(bound), metric) || shown === "NaN" ? withMinus(text) : shown;
}
