/** Differences of two systems on one scale, whose axis stands in the head: how large a difference could be seen. */

import { s } from "../core/dom.js";
import { interval, signed } from "../parts/numbers.js";
import { across, band, drawing, line, tick } from "./intervals.js";
import { clamped } from "./scale.js";

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
  return clamped([-most, most], across(WIDTH));
}

/** @typedef {ReturnType<typeof forestScale>} ForestScale */

/** @param {ForestScale} at @param {string} a @param {string} b */
export const forestAxis = (at, a, b) =>
  drawing(
    WIDTH,
    12,
    { "aria-hidden": "true" },
    s("text", { x: at(0) - 14, y: 10, "text-anchor": "end" }, `← ${b} better`),
    s("text", { x: at(0), y: 10, "text-anchor": "middle" }, "0"),
    s("text", { x: at(0) + 14, y: 10 }, `${a} better →`),
  );

/** Beyond the scale there is an arrow. @param {Difference} row @param {ForestScale} at */
export function forestBar(row, at) {
  const unit = inUnits(row);
  const told = `${row.metric}: ${signed(row.difference, row.metric)} ${interval(row.interval, row.metric)}`;
  return drawing(
    WIDTH,
    HEIGHT,
    { role: "img", "aria-label": told },
    unit && s("rect.unseen", { x: at(-1), y: 0, width: at(1) - at(-1), height: HEIGHT }),
    line("origin", at(0), HEIGHT),
    unit?.interval && band("band", unit.interval.map(at), HEIGHT / 2 - 3, 6),
    unit && (Math.abs(unit.value) <= FAR ? tick(at(unit.value), HEIGHT) : arrow(unit.value, at(unit.value))),
  );
}

/** @param {number} value @param {number} x */
const arrow = (value, x) => s("path.tick", { d: `M${x} ${HEIGHT / 2}l${value > 0 ? -7 : 7} -5v10z` });

/** @param {Difference} row */
function inUnits({ difference, interval: ends, detectable, higher }) {
  if (difference === null || !detectable) return null;
  const unit = higher === false ? -detectable : detectable;
  return {
    value: difference / unit,
    interval: ends && ends.map((end) => end / unit).sort((a, b) => a - b),
  };
}
