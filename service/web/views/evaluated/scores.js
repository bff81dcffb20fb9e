/** The scores of an evaluation, each beside its forecast and what the metric is worth. */

import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { beyondOf, forecastsOf, noneBecause } from "../../parts/forecasts.js";
import { term } from "../../parts/layout.js";
import { arrow, byUsualOrder, metricName, titleOf, wordsOf } from "../../parts/metrics.js";
import { interval, number } from "../../parts/numbers.js";
import { capitalized } from "../../parts/sentences.js";
import { table } from "../../parts/table.js";
import { intervalBar } from "../../plots/intervals.js";
import { extent, padded } from "../../plots/scale.js";

/** @typedef {Schemas["Forecast"]} Forecast */
/** @typedef {import("../../plots/intervals.js").Score & { metric: string, score?: Schemas["Score"], estimate?: Schemas["Estimate"], forecast?: Forecast, health?: Schemas["MetricHealth"] }} Row `value`, `interval`: of some images, while captions are made. */

/** Why there will be no scores, by the status. @type {Record<string, string>} */
const NONE = { failed: "None: the evaluation failed.", canceled: "None: the evaluation was stopped." };

const MARKS = { human: "people's own captions", constant: "one caption for all images" };

/** Scores that are measured, and those that are only forecast yet; pre-gen scores are folded. @param {() => Evaluation} run */
export function scores(run) {
  const forecasts = computed(() => forecastsOf(run()));
  const names = computed(() =>
    byUsualOrder([...new Set([...Object.keys(run().scores), ...Object.keys(forecasts.value)])]),
  );
  const isPregen = (/** @type {string} */ metric) => run().scores[metric]?.family === "pregen";
  const rowOf = (/** @type {string} */ metric) => readRow(run(), metric, forecasts.value[metric]);
  const postgen = computed(() => names.value.filter((each) => !isPregen(each)).map(rowOf));
  const pregen = computed(() => names.value.filter(isPregen).map(rowOf));
  const columns = (/** @type {Row[]} */ rows) =>
    columnsOf(run(), rows, Object.keys(forecasts.value).length > 0);
  const bars = () => [...columns(postgen.value), ...(postgen.value.some(isCompared) ? [BARS] : [])];
  const keyOf = (/** @type {Row} */ { metric }) => metric;
  const isSome = computed(() => postgen.value.length > 0);
  const isPregenThere = computed(() => pregen.value.length > 0);
  return [
    () => !names.value.length && h("p.quiet", NONE[run().status] ?? "None yet."),
    () => {
      const reason = run().status in NONE ? null : noneBecause(run());
      return reason && h("p.quiet", `No forecast: ${reason}.`);
    },
    () => isSome.value && table(postgen, { name: "Table of scores", columns: bars, keyOf }),
    () => legend(postgen.value),
    () =>
      isPregenThere.value &&
      h(
        "details",
        { open: !isSome.value },
        h("summary", () => `Pre-gen metrics: ${pregen.value.length}`),
        table(pregen, { name: "Table of pre-gen scores", columns: () => columns(pregen.value), keyOf }),
      ),
  ];
}

/** @param {Evaluation} run @param {string} metric @param {Forecast | undefined} forecast @returns {Row} */
function readRow({ scores, estimate: estimates, health }, metric, forecast) {
  const score = scores[metric];
  const estimate = score ? undefined : estimates?.[metric];
  const { value = null, interval: ends = null } = score ?? estimate ?? {};
  return { metric, value, interval: ends, score, estimate, forecast, health: health?.[metric] };
}

/** @param {Row[]} rows */
function legend(rows) {
  const told = [
    "each score is drawn on its own scale",
    rows.some(({ forecast }) => typeof forecast?.value === "number") && "dotted box: forecast",
    rows.some(({ health }) => health) && "dashed lines: one caption for all images, people's captions",
  ];
  return rows.some(isCompared) && h("p.quiet", `${capitalized(told.filter(Boolean).join("; "))}.`);
}

/** What a score is drawn against. @param {Row} row */
const besideOf = ({ forecast, health }) => [forecast?.value, health?.human, health?.constant];

/** @param {Row} row */
const isCompared = (row) => besideOf(row).some((each) => typeof each === "number");

/** Its own scale: metrics have no common one. @param {Row} row */
const rangeOf = (row) =>
  padded(extent([row.value, ...(row.interval ?? []), ...(row.forecast?.interval ?? []), ...besideOf(row)]));

/** @param {Evaluation} run @param {Row[]} rows @param {boolean} hasForecasts @returns {Column<Row>[]} */
const columnsOf = ({ dataset }, rows, hasForecasts) => [
  {
    head: "Metric",
    kind: "name",
    cell: ({ metric, score: { signature, higher_is_better: higher } = {}, health }) => [
      metricName(metric, { signature, higher, dataset, health }),
      h("span.quiet", ` ${arrow(higher)}`),
      wordsOf(metric) !== titleOf(metric) && h("span.sub", wordsOf(metric)),
    ],
  },
  {
    head: "Score",
    kind: "number",
    phone: "value",
    cell: ({ metric, value, interval: ends, estimate }) => [
      h("strong", number(value, metric)),
      ends && h("span.on-phone.quiet", ` ${interval(ends, metric)}`),
      estimate && h("span.sub", `of ${estimate.images} of ${estimate.of} images`),
    ],
  },
  { head: "95 %", kind: "number", cell: ({ metric, interval: ends }) => interval(ends, metric) },
  ...(hasForecasts
    ? [/** @type {Column<Row>} */ ({ head: "Forecast", kind: "number", phone: "below", cell: forecast })]
    : []),
  ...(hasHealth(rows, "human") ? [healthColumn("human", "People")] : []),
  ...(hasHealth(rows, "constant") ? [healthColumn("constant", "One sentence")] : []),
];

/** @param {Row} row */
function forecast({ metric, score, forecast }) {
  if (!forecast) return "";
  if (forecast.none_because) return term("no forecast", `No forecast: ${forecast.none_because}.`);
  return [
    h("span.on-phone.quiet", "forecast "),
    `${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
    h("span.sub", score && landing(score.value, forecast.interval), beyondOf(forecast)),
  ];
}

/** @param {number | null} value @param {[number, number] | null} ends */
function landing(value, ends) {
  if (value === null || !ends) return "";
  if (value < ends[0]) return "measured below it";
  return value > ends[1] ? "measured above it" : "measured within it";
}

/** @param {Row[]} rows @param {"human" | "constant"} key */
const hasHealth = (rows, key) => rows.some(({ health }) => typeof health?.[key] === "number");

/** @param {"human" | "constant"} key @param {string} head @returns {Column<Row>} */
const healthColumn = (key, head) => ({
  head: h("span", { title: MARKS[key] }, head),
  kind: "number",
  cell: ({ metric, health }) => {
    const found = health?.[key];
    return typeof found === "number" && h("span.quiet", number(found, metric));
  },
});

/** @type {Column<Row>} */
const BARS = {
  head: h("span.hidden", "Interval"),
  phone: "below",
  cell: (row) =>
    isCompared(row) &&
    intervalBar(row, rangeOf(row), {
      metric: row.metric,
      forecast: row.forecast,
      marks: { [MARKS.human]: row.health?.human ?? null, [MARKS.constant]: row.health?.constant ?? null },
      hasTicks: false,
    }),
};
