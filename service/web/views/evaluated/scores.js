/** The scores of an evaluation, each beside its forecast and what the metric is worth. */

import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { beyondOf, forecastsOf, noneBecause } from "../../parts/forecasts.js";
import { arrow, metricName } from "../../parts/metrics.js";
import { interval, number } from "../../parts/numbers.js";
import { table } from "../../parts/table.js";
import { intervalBar } from "../../plots/intervals.js";
import { extent, finite, widened } from "../../plots/scale.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Forecast"]} Forecast */
/** @typedef {import("../../plots/intervals.js").Score} Shown */
/** @typedef {{ metric: string, run: Evaluation, forecast: Forecast | undefined }} Row */
/** @typedef {import("../../parts/table.js").Column<Row>} Column */

const FRACTIONS = /^(bleu_\d|rouge_l|meteor|spice|accord|.*normcount.*)/; // never above 1

/** Scores that are measured, and those that are only forecast yet; pre-gen scores are folded. @param {() => Evaluation} run */
export function scores(run) {
  const forecasts = computed(() => forecastsOf(run()));
  const names = computed(() => [...new Set([...Object.keys(run().scores), ...Object.keys(forecasts.value)])]);
  const isPregen = (/** @type {string} */ metric) => run().scores[metric]?.family === "pregen";
  const rowOf = (/** @type {string} */ metric) => ({ metric, run: run(), forecast: forecasts.value[metric] });
  const postgen = computed(() => names.value.filter((each) => !isPregen(each)).map(rowOf));
  const pregen = computed(() => names.value.filter(isPregen).map(rowOf));
  const columns = () => columnsOf(run(), Object.keys(forecasts.value).length > 0);
  const list = (/** @type {{ value: Row[] }} */ rows, /** @type {string} */ name) =>
    table(rows, { name, columns, keyOf: ({ metric }) => metric });
  const isSome = computed(() => postgen.value.length > 0);
  const isPregenThere = computed(() => pregen.value.length > 0);
  return [
    () => !names.value.length && h("p.quiet", "None yet."),
    () =>
      noneBecause(run()) &&
      h("p.quiet", `No forecast: when it was submitted there were ${noneBecause(run())}`),
    () => isSome.value && list(postgen, "Table of scores"),
    () =>
      isPregenThere.value &&
      h(
        "details",
        { open: !isSome.value },
        h("summary", () => `Pre-gen metrics: ${pregen.value.length}`),
        list(pregen, "Table of pre-gen scores"),
      ),
  ];
}

/** @param {Evaluation} run @param {boolean} hasForecasts @returns {Column[]} */
function columnsOf(run, hasForecasts) {
  const { dataset, health } = run;
  return [
    {
      head: "Metric",
      kind: "name",
      cell: ({ metric, run: { scores, health } }) => {
        const { signature, higher_is_better: higher } = scores[metric] ?? {};
        return [
          metricName(metric, { signature, higher, dataset, health: health?.[metric] }),
          h("span.quiet", ` ${arrow(higher)}`),
        ];
      },
    },
    { head: "Score", kind: "number", phone: "value", cell: value },
    {
      head: "95 %",
      kind: "number",
      cell: ({ metric, run }) => interval(shownOf(run, metric).interval, metric),
    },
    ...(hasForecasts ? [/** @type {Column} */ ({ head: "Forecast", kind: "number", cell: forecast })] : []),
    ...(health ? [healthColumn("human", "People"), healthColumn("constant", "One sentence")] : []),
    { head: h("span.hidden", "Interval"), phone: "below", cell: bar },
  ];
}

/** What there is of a score: of some images, while captions are made. @param {Evaluation} run @param {string} metric @returns {Shown} */
function shownOf({ scores, estimate }, metric) {
  const { value = null, interval: ends = null } = scores[metric] ?? estimate?.[metric] ?? {};
  return { value, interval: ends };
}

/** @param {Row} row */
function value({ metric, run }) {
  const estimate = run.scores[metric] ? null : run.estimate?.[metric];
  return [
    h("strong", number(shownOf(run, metric).value, metric)),
    estimate && h("span.sub", `of ${estimate.images} of ${estimate.of} images`),
  ];
}

/** @param {Row} row */
function forecast({ metric, run, forecast }) {
  if (!forecast) return "";
  if (forecast.none_because) return h("span.quiet", forecast.none_because);
  const score = run.scores[metric];
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

/** @param {"human" | "constant"} key @param {string} head @returns {Column} */
const healthColumn = (key, head) => ({
  head: h("span", { title: MARKS[key] }, head),
  kind: "number",
  cell: ({ metric, run }) => {
    const found = run.health?.[metric]?.[key];
    return typeof found === "number" && h("span.quiet", number(found, metric));
  },
});

const MARKS = { human: "people's own captions", constant: "one caption for all images" };

/**
 * From 0 to what there is to compare with, where that is not far off, or to the most that there can be.
 *
 * @param {Row} row
 */
function bar({ metric, run, forecast }) {
  const shown = shownOf(run, metric);
  const health = run.health?.[metric];
  const marks = { [MARKS.human]: health?.human ?? null, [MARKS.constant]: health?.constant ?? null };
  const beside = finite([forecast?.value, ...(forecast?.interval ?? []), ...Object.values(marks)]);
  if (!beside.length && FRACTIONS.test(metric)) return intervalBar(shown, [0, 1], { metric });
  const { value, interval: ends } = shown.value === null && forecast ? forecast : shown;
  const [low, high] = widened(extent([0, value, ...(ends ?? [])]), beside);
  return intervalBar(shown, [low, 1.05 * high || 1], { metric, forecast, marks });
}
