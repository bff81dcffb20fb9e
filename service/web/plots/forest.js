/** Differences of two systems on one scale, whose axis stands in the head: how large a difference could be seen. */

import { s } from "../core/dom.js";
import { interval, signed } from "../parts/numbers.js";
import { linear } from "./scale.js";

const WIDTH = 280;
const HEIGHT = 20;
const FAR = 6; // differences that could be seen, beyond which an arrow is drawn
const LEAST = 1.5;

/**
 * @typedef {{ metric: string, a: number | null, b: number | null, difference: number | null, interval: [number, number] | null, p: number | null, detectable: number | null, higher: boolean | null }} Difference
 */

/**
 * The scale of all: right of its middle the first one is better. A difference of 1 is the smallest that these
 * images would show in 4 of 5 cases.
 *
 * @param {readonly Difference[]} rows
 */
export function forestScale(rows) {
  const ends = rows.map(inUnits).flatMap((each) => (each ? [each.value, ...(each.interval ?? [])] : []));
  const most = Math.min(FAR, Math.max(LEAST, ...ends.map(Math.abs)));
  return linear([-most, most], [8, WIDTH - 8]);
}

/** @typedef {ReturnType<typeof forestScale>} ForestScale */

/** @param {ForestScale} at @param {string} a @param {string} b */
export const forestAxis = (at, a, b) =>
  drawing(
    12,
    { "aria-hidden": "true" },
    s("text", { x: at(0) - 8, y: 10, "text-anchor": "end" }, `← ${b} better`),
    s("text", { x: at(0) + 8, y: 10 }, `${a} better →`),
  );

/** @param {Difference} row @param {ForestScale} at */
export function forestBar(row, at) {
  const unit = inUnits(row);
  const told = `${row.metric}: ${signed(row.difference, row.metric)} ${interval(row.interval, row.metric)}`;
  return drawing(
    HEIGHT,
    { role: "img", "aria-label": told },
    line("ground", at(0)),
    unit && [line("mark", at(1)), line("mark", at(-1))],
    unit?.interval && band(unit.interval, at),
    unit && tick(unit.value, at),
  );
}

/** @param {Difference} row */
function inUnits({ difference, interval: ends, detectable, higher }) {
  if (difference === null || !detectable) return null;
  const unit = higher === false ? -detectable : detectable;
  const [from, to] = (ends ?? []).map((end) => end / unit).sort((a, b) => a - b);
  return { value: difference / unit, interval: ends ? /** @type {[number, number]} */ ([from, to]) : null };
}

/** @param {number} height @param {import("../core/dom.js").Attributes} attributes @param {...import("../core/dom.js").Child} content */
const drawing = (height, attributes, ...content) =>
  s("svg.interval", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, ...attributes }, ...content);

/** @param {string} name @param {number} x */
const line = (name, x) => s("line", { class: name, x1: x, x2: x, y1: 0, y2: HEIGHT });

/** @param {number} value */
const within = (value) => Math.max(-FAR, Math.min(FAR, value));

/** @param {[number, number]} ends @param {ForestScale} at */
function band(ends, at) {
  const [from, to] = ends.map((end) => at(within(end)));
  return s("rect.band", { x: from, y: HEIGHT / 2 - 3, width: Math.max(1, to - from), height: 6, rx: 3 });
}

/** A tick, or an arrow to where it would be. @param {number} value @param {ForestScale} at */
function tick(value, at) {
  const x = at(within(value));
  if (Math.abs(value) <= FAR) return s("rect.tick", { x: x - 1, y: 3, width: 2.5, height: HEIGHT - 6 });
  return s("path.tick", { d: `M${x} ${HEIGHT / 2}l${value > 0 ? -7 : 7} -5v10z` });
}
