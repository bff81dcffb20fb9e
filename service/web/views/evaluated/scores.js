/** The scores of an evaluation, each beside its forecast and what the metric is worth. */

import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { beyondOf, forecastsOf, noneBecause } from "../../parts/forecasts.js";
import { term } from "../../parts/layout.js";
import { arrow, byUsualOrder, metricName } from "../../parts/metrics.js";
import { interval, number } from "../../parts/numbers.js";
import { mainMetric } from "../../parts/sentences.js";
import { table } from "../../parts/table.js";
import { axis, intervalBar } from "../../plots/intervals.js";
import { extent, padded, usualExtent } from "../../plots/scale.js";

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
  const columns = () => columnsOf(run(), Object.keys(forecasts.value).length > 0);
  const range = computed(() => rangeOf(postgen.value, mainMetric(run())));
  const bars = () => [...columns(), barColumn(range.value)];
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
    () =>
      isPregenThere.value &&
      h(
        "details",
        { open: !isSome.value },
        h("summary", () => `Pre-gen metrics: ${pregen.value.length}`),
        table(pregen, { name: "Table of pre-gen scores", columns, keyOf }),
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

/** From 0 to the most of most metrics, the main one among them. @param {Row[]} rows @param {string | undefined} main */
function rangeOf(rows, main) {
  const valuesOf = (/** @type {Row} */ { value, interval, forecast, health }) => [
    ...[value, ...(interval ?? []), forecast?.value, ...(forecast?.interval ?? [])],
    ...[health?.human, health?.constant],
  ];
  const mains = rows.filter(({ metric }) => metric === main).flatMap(valuesOf);
  return padded(extent([0, ...usualExtent(rows.flatMap(valuesOf)), ...mains]), 0.02);
}

/** @param {Evaluation} run @param {boolean} hasForecasts @returns {Column<Row>[]} */
const columnsOf = ({ dataset, health }, hasForecasts) => [
  {
    head: "Metric",
    kind: "name",
    cell: ({ metric, score: { signature, higher_is_better: higher } = {}, health }) => [
      metricName(metric, { signature, higher, dataset, health }),
      h("span.quiet", ` ${arrow(higher)}`),
    ],
  },
  {
    head: "Score",
    kind: "number",
    phone: "value",
    cell: ({ metric, value, estimate }) => [
      h("strong", number(value, metric)),
      estimate && h("span.sub", `of ${estimate.images} of ${estimate.of} images`),
    ],
  },
  { head: "95 %", kind: "number", cell: ({ metric, interval: ends }) => interval(ends, metric) },
  ...(hasForecasts
    ? [/** @type {Column<Row>} */ ({ head: "Forecast", kind: "number", cell: forecast })]
    : []),
  ...(health ? [healthColumn("human", "People"), healthColumn("constant", "One sentence")] : []),
];

/** @param {Row} row */
function forecast({ metric, score, forecast }) {
  if (!forecast) return "";
  if (forecast.none_because) return term("no forecast", `No forecast: ${forecast.none_because}.`);
  return [
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

/** @param {"human" | "constant"} key @param {string} head @returns {Column<Row>} */
const healthColumn = (key, head) => ({
  head: h("span", { title: MARKS[key] }, head),
  kind: "number",
  cell: ({ metric, health }) => {
    const found = health?.[key];
    return typeof found === "number" && h("span.quiet", number(found, metric));
  },
});

/** @param {[number, number]} range @returns {Column<Row>} */
const barColumn = (range) => ({
  head: [h("span.hidden", "Interval"), axis(range)],
  phone: "below",
  cell: ({ metric, value, interval, forecast, health }) =>
    intervalBar({ value, interval }, range, {
      metric,
      forecast,
      marks: { [MARKS.human]: health?.human ?? null, [MARKS.constant]: health?.constant ?? null },
    }),
});
