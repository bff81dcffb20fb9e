/** The gates of an evaluation: the verdict, the difference against the margin, and the images that fell most. */

import { h } from "../../core/dom.js";
import { section } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { chance, interval, number, signed } from "../../parts/numbers.js";
import { evaluationPlace, imagePlace } from "../../parts/places.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { differing } from "../../parts/words.js";
import { intervalBar } from "../../plots/intervals.js";
import { extent, padded } from "../../plots/scale.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Gate"]} Gate */
/** @typedef {import("../../core/api.js").Schemas["GateScore"]} GateScore */
/** @typedef {import("../../core/api.js").Schemas["CaptionDrops"]} CaptionDrops */
/** @typedef {import("../../core/api.js").Schemas["Moved"]} Moved */
/** @typedef {GateScore & { metric: string, higher: boolean | null }} Row */

/** @param {Evaluation} run */
export const gates = (run) =>
  run.gates.length > 0 &&
  section(
    "Gates",
    run.gates.map((gate) => gateTable(gate, run)),
  );

/** @param {Gate} gate @param {Evaluation} run */
function gateTable({ gate, verdict, detail, no_baseline, baseline_failed, scores }, run) {
  const rows = Object.entries(scores).map(([metric, each]) => ({
    metric,
    higher: run.scores[metric]?.higher_is_better ?? true,
    ...each,
  }));
  const range = padded(
    extent(rows.flatMap((row) => [0, row.difference, marginOf(row), ...(row.difference_interval ?? [])])),
  );
  return h(
    "article",
    { class: "gate" },
    h("h3", h("code", gate), " ", badge(verdict)),
    detail && h("p", { class: "quiet" }, detail),
    no_baseline && h("p", { class: "quiet" }, "There was no baseline to compare with."),
    baseline_failed && h("p", { class: "quiet" }, "The baseline failed its own gates."),
    table(rows, {
      name: `Table of the gate ${gate}`,
      columns: [
        { head: "Metric", kind: "name", cell: ({ metric }) => metricName(metric, { dataset: run.dataset }) },
        {
          head: "Score",
          kind: "number",
          phone: "value",
          cell: ({ metric, value, interval: ends }) => [
            h("strong", number(value, metric)),
            h("span", { class: "sub" }, interval(ends, metric)),
          ],
        },
        { head: "Baseline", kind: "number", cell: baseline },
        {
          head: "Difference",
          kind: "number",
          cell: ({ metric, difference, difference_interval: ends }) => [
            signed(difference, metric),
            h("span", { class: "sub" }, interval(ends, metric)),
          ],
        },
        { head: "Against the margin", phone: "below", cell: (row) => bar(row, range) },
        { head: "p", kind: "number", cell: ({ p }) => chance(p) },
        {
          head: "Detectable from",
          kind: "number",
          cell: ({ metric, minimum_detectable: least }) => number(least, metric),
        },
      ],
    }),
  );
}

/** The difference at which the gate fails. @param {Row} row */
const marginOf = ({ margin, higher }) => (margin === null ? null : higher ? -margin : margin);

/** @param {Row} row @param {[number, number]} range */
const bar = (row, range) =>
  row.difference !== null &&
  intervalBar({ value: row.difference, interval: row.difference_interval }, range, {
    metric: row.metric,
    marks: { "no difference": 0, "the margin": marginOf(row) },
  });

/** @param {Row} row */
const baseline = ({ metric, evaluation, baseline }) =>
  evaluation
    ? h("a", { href: evaluationPlace(evaluation) }, number(baseline, metric))
    : number(baseline, metric);

/** The images that fell most against the baseline of a failed gate. @param {string} id @param {CaptionDrops | null} drops */
export function fallenImages(id, drops) {
  const { metric = null, baseline = null, images = [] } = drops ?? {};
  if (!metric || !baseline || !images.length) return null;
  const score = (/** @type {Moved} */ { scores }, /** @type {"a" | "b" | "difference"} */ side) =>
    scores[metric]?.[side] ?? null;
  return section(
    `Images that fell most by ${titleOf(metric)}`,
    table(images, {
      name: "Images that fell most",
      columns: [
        {
          head: "Image",
          kind: "name",
          cell: ({ image }) =>
            h("a", { class: "main", href: imagePlace(id, image, { with: baseline }) }, image),
        },
        {
          head: "Difference",
          kind: "number",
          phone: "value",
          cell: (row) => h("strong", signed(score(row, "difference"), metric)),
        },
        { head: "Here", kind: "number", cell: (row) => number(score(row, "a"), metric) },
        { head: "Baseline", kind: "number", cell: (row) => number(score(row, "b"), metric) },
        {
          head: "Caption here",
          phone: "below",
          cell: ({ a, b }) => h("span", { class: "say" }, differing(a, b)),
        },
        { head: "Caption of the baseline", cell: ({ a, b }) => h("span", { class: "say" }, differing(b, a)) },
      ],
    }),
  );
}
