/** Tables of differences between two evaluations: one row a metric, or one row an image. */

import { h } from "../../core/dom.js";
import { metricName } from "../../parts/metrics.js";
import { chance, interval, number, signed } from "../../parts/numbers.js";
import { table } from "../../parts/table.js";
import { differing } from "../../parts/words.js";
import { thumbnail } from "../pictures.js";

/** @typedef {import("../../plots/forest.js").Difference} Difference */
/** @typedef {{ image: string, captions: [string, string], exchanges: [string, string][], a: number | null, b: number | null, difference: number | null }} ImageRow */

/**
 * @template {Difference} Row
 * @param {Row[]} rows
 * @param {{ name: string, heads: Child[], bar: { head: Child, cell: (row: Row) => Child }, aboutOf: (row: Row) => import("../../parts/metrics.js").About }} how `heads`: of A, B and the difference.
 */
export const differenceTable = (rows, { name, heads: [a, b, difference], bar, aboutOf }) =>
  table(rows, {
    name,
    tone: ({ p }) => (p !== null && p < 0.05 ? "told" : null),
    columns: [
      { head: "Metric", kind: "name", cell: (row) => metricName(row.metric, aboutOf(row)) },
      { head: a, kind: "number", cell: (row) => number(row.a, row.metric) },
      { head: b, kind: "number", cell: (row) => number(row.b, row.metric) },
      {
        head: difference,
        kind: "number difference",
        phone: "value",
        cell: (row) => [
          signed(row.difference, row.metric),
          h("span.sub", interval(row.interval, row.metric)),
        ],
      },
      { ...bar, phone: "below" },
      { head: "p", kind: "number", cell: ({ p }) => chance(p) },
      { head: "Detectable from", kind: "number", cell: (row) => number(row.detectable, row.metric) },
    ],
  });

/** A and B, with their names as titles. @param {{ a: string, b: string }} names */
export const sideHeads = ({ a, b }) => [h("span", { title: a }, "A"), h("span", { title: b }, "B")];

/** @param {Schemas["Moved"]} moved @param {string} metric @returns {ImageRow} */
export const imageRow = ({ image, a, b, scores, exchanges }, metric) => ({
  ...{ image, captions: [a, b], exchanges: /** @type {[string, string][]} */ (exchanges) },
  ...(scores[metric] ?? { a: null, b: null, difference: null }),
});

/** @param {Child[]} heads Of A, B, the difference, and both captions. @param {() => string} metric @param {(row: ImageRow) => string} placeOf @param {string[]} [sides] Before captions, where no head stands above them. @param {string | null} [pictures] The dataset whose pictures are shown. @returns {Column<ImageRow>[]} */
export const imageColumns = (
  [a, b, difference, captionA, captionB],
  metric,
  placeOf,
  [sideA, sideB] = ["A", "B"],
  pictures = null,
) => [
  {
    head: "Image",
    kind: "name",
    cell: (row) => [
      pictures && thumbnail(pictures, row.image),
      h("a.main", { href: placeOf(row) }, row.image),
    ],
  },
  { head: a, kind: "number", cell: (row) => number(row.a, metric()) },
  { head: b, kind: "number", cell: (row) => number(row.b, metric()) },
  {
    head: difference,
    kind: "number",
    phone: "value",
    cell: (row) => h("strong", signed(row.difference, metric())),
  },
  captionColumn(captionA, sideA, ({ captions }) => captions),
  captionColumn(captionB, sideB, ({ captions: [a, b] }) => [b, a]),
];

/** @param {Child} head @param {string} side @param {(row: ImageRow) => [string, string]} captionsOf This side's, then the other's. @returns {Column<ImageRow>} */
const captionColumn = (head, side, captionsOf) => ({
  head,
  kind: "wide",
  phone: "below",
  cell: (row) => [
    h("b.on-phone", `${side} `),
    h("bdi", { title: captionsOf(row)[0] }, differing(...captionsOf(row))),
  ],
});
