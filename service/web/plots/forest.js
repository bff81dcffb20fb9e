/** Differences of two systems, a row for each metric, on one scale: how large a difference could be seen. */

import { h, s } from "../core/dom.js";
import { head } from "../parts/layout.js";
import { chance, interval, number } from "../parts/numbers.js";
import { linear } from "./scale.js";
import { span } from "./whisker.js";

const WIDTH = 260;
const HEIGHT = 22;
const FAR = 6; // differences that could be seen, beyond which an arrow is drawn

/**
 * @typedef {{ metric: string, a: number | null, b: number | null, difference: number | null, interval: [number, number] | null, p: number | null, detectable: number | null, higher: boolean | null }} Difference
 */

/**
 * Right of the middle line the first one is better. A difference of 1 is the smallest that these
 * images would show in 4 of 5 cases.
 *
 * @param {Difference[]} rows
 * @param {(row: Difference) => import("../core/dom.js").Child} nameOf
 */
export function forest(rows, nameOf) {
  const units = rows.map(inUnits);
  const most = Math.min(
    FAR,
    Math.max(
      1.5,
      ...units.flatMap((each) =>
        [each?.value ?? 0, ...(each?.interval ?? [])].map((value) => Math.abs(value ?? 0)),
      ),
    ),
  );
  const at = linear([-most, most], [6, WIDTH - 6]);
  return h(
    "table",
    { class: "forest" },
    h(
      "caption",
      "Differences with intervals of 95 %. On the right, A is better. Dotted lines: the smallest difference that a test on these images finds in 4 of 5 cases.",
    ),
    head(["Metric", "A", "B", "Difference", "Plot", "p", "Detectable from"]),
    h(
      "tbody",
      rows.map((row, place) =>
        h(
          "tr",
          { class: row.p !== null && row.p < 0.05 ? "told" : null },
          h("th", { scope: "row" }, nameOf(row)),
          h("td", { class: "number" }, number(row.a, row.metric)),
          h("td", { class: "number" }, number(row.b, row.metric)),
          h("td", { class: "number" }, differenceOf(row)),
          h("td", drawn(row, units[place], at)),
          h("td", { class: "number" }, chance(row.p)),
          h("td", { class: "number" }, number(row.detectable, row.metric)),
        ),
      ),
    ),
  );
}

/** @param {Difference} row */
const differenceOf = ({ metric, difference, interval: ends }) =>
  `${number(difference, metric)} ${interval(ends, metric)}`;

/** @param {Difference} row @returns {{ value: number | null, interval: [number, number] | null } | null} */
function inUnits({ difference, interval: ends, detectable, higher }) {
  if (difference === null || !detectable) return null;
  const unit = higher === false ? -detectable : detectable;
  const [from, to] = (ends ?? []).map((end) => end / unit).sort((a, b) => a - b);
  return { value: difference / unit, interval: ends ? [from, to] : null };
}

/** @param {Difference} row @param {ReturnType<typeof inUnits>} unit @param {(value: number) => number} at */
function drawn(row, unit, at) {
  const middle = HEIGHT / 2;
  const line = (/** @type {string} */ name, /** @type {number} */ value) =>
    s("line", { class: name, x1: at(value), x2: at(value), y1: 0, y2: HEIGHT });
  return s(
    "svg",
    {
      class: "whisker",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": `${row.metric}: ${differenceOf(row)}`,
    },
    line("zero", 0),
    line("mark", 1),
    line("mark", -1),
    unit && span(unit, (value) => at(within(value)), middle),
    unit && unit.value !== null && mark(unit.value, at, middle),
  );
}

/** @param {number} value */
const within = (value) => Math.max(-FAR, Math.min(FAR, value));

/** A dot, or an arrow to where it would be. @param {number} value @param {(value: number) => number} at @param {number} middle */
function mark(value, at, middle) {
  const x = at(within(value));
  if (Math.abs(value) <= FAR) return s("circle", { cx: x, cy: middle, r: 4 });
  const back = value > 0 ? -7 : 7;
  return s("path", { class: "beyond", d: `M${x} ${middle}l${back} -5v10z` });
}
