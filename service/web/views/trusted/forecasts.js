/** Forecasts and their cards, beside what was measured later. */

import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { query } from "../../core/urls.js";
import { beyondOf, forecastsOf, noneBecause, toldOf } from "../../parts/forecasts.js";
import { select, table } from "../../parts/layout.js";
import { evaluationLink } from "../../parts/names.js";
import { interval, number } from "../../parts/numbers.js";
import { scatter } from "../../plots/scatter.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Forecast"]} Forecast */

/** What was forecast, beside what was measured later. @param {Evaluation[]} items */
export function forecasts(items) {
  const metric = query("forecast");
  const pairs = items.flatMap(outcomes);
  const cards = new Map();
  for (const run of [...items].reverse()) {
    for (const [name, each] of Object.entries(toldOf(run))) if (each.card) cards.set(name, each);
  }
  const names = [...new Set([...cards.keys(), ...pairs.map(({ name }) => name)])];
  if (!names.length)
    return h(
      "p",
      { class: "quiet" },
      items.map(noneBecause).find(Boolean) ?? "No forecast has been made on this split.",
    );
  const shown = computed(() => (names.includes(metric.value) ? metric.value : names[0]));
  return [
    table(
      "Cards of forecasts",
      [
        "Metric",
        "Forecast from",
        "Learned from",
        "Error",
        "Without it",
        "Agreement",
        "Within runs",
        "Promised coverage",
        "Came true",
      ],
      names.map((name) =>
        card(
          name,
          cards.get(name),
          pairs.filter((each) => each.name === name),
        ),
      ),
    ),
    h(
      "label",
      "Forecast against measured: ",
      select(() => names.map((name) => [name, name]), {
        get value() {
          return shown.value;
        },
        set value(name) {
          metric.value = name;
        },
      }),
    ),
    () =>
      outcome(
        shown.value,
        pairs.filter(({ name }) => name === shown.value),
      ),
  ];
}

/** @typedef {{ name: string, run: Evaluation, forecast: Forecast, expected: number, value: number }} Outcome */

/** Forecasts of scores that were measured later. @param {Evaluation} run @returns {Outcome[]} */
function outcomes(run) {
  return Object.entries(forecastsOf(run)).flatMap(([name, forecast]) => {
    const value = run.scores[name]?.value;
    if (forecast.value === null || typeof value !== "number") return [];
    return [{ name, run, forecast, expected: forecast.value, value }];
  });
}

/** @param {string} name @param {Forecast | undefined} forecast @param {Outcome[]} pairs */
function card(name, forecast, pairs) {
  const of = forecast?.card;
  const inside = pairs.filter(isInside).length;
  return h(
    "tr",
    h("th", { scope: "row" }, name),
    h(
      "td",
      of ? `${of.predictor} (${of.fit})` : "",
      forecast?.none_because && h("span", { class: "quiet" }, ` ${forecast.none_because}`),
    ),
    h("td", of ? `${of.evaluations} evaluations of ${of.runs} runs` : ""),
    [of?.error, of?.error_without, of?.rank_agreement, of?.rank_agreement_within, of?.coverage].map((value) =>
      h("td", { class: "number" }, number(value)),
    ),
    h("td", { class: "number" }, pairs.length ? `${inside} of ${pairs.length}` : "–"),
  );
}

/** @param {Outcome} pair */
const isInside = ({ forecast: { interval: ends }, value }) =>
  ends !== null && value >= ends[0] && value <= ends[1];

/** @param {string} name @param {Outcome[]} pairs */
function outcome(name, pairs) {
  if (!pairs.length)
    return h("p", { class: "quiet" }, `No forecast of ${name} has been followed by a score yet.`);
  return [
    scatter(
      pairs.map(({ expected, value }) => ({ x: expected, y: value })),
      {
        xName: `${name}, forecast`,
        yName: "measured",
        name: `Forecasts of ${name} against what was measured`,
        what: "evaluations",
        chosen: null,
      },
    ),
    h(
      "details",
      h("summary", "As a table"),
      table(
        "Table of forecasts",
        ["Evaluation", "Forecast", "Measured", "Error"],
        pairs.map(({ run, forecast, expected, value }) =>
          h(
            "tr",
            h("th", { scope: "row" }, evaluationLink(run.id, run.labels)),
            h(
              "td",
              { class: "number" },
              `${number(forecast.value, name)} ${interval(forecast.interval, name)}`,
              h("span", { class: "quiet" }, beyondOf(forecast)),
            ),
            h("td", { class: "number" }, number(value, name)),
            h("td", { class: "number" }, number(value - expected, name)),
          ),
        ),
      ),
    ),
  ];
}
