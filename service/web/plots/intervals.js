/** Scores as ticks on bars, their intervals, on one axis that stands in the head of the column. */

import { s } from "../core/dom.js";
import { interval, number } from "../parts/numbers.js";
import { clamped, isOutside, linear, padded, ticks, usualExtent } from "./scale.js";

const WIDTH = 190;
const HEIGHT = 18;
const EDGE = 8;
const LABELS = 4; // of an axis, about

/** @typedef {import("./scale.js").Range} Range */
/** @typedef {import("./scale.js").Scale} Scale */
/** @typedef {{ value: number | null, interval: [number | null, number | null] | null }} Score */

/** The range of most of them, intervals included. @param {(Score | null | undefined)[]} scores @returns {Range} */
export const rangeOf = (scores) =>
  padded(usualExtent(scores.flatMap((each) => [each?.value, ...(each?.interval ?? [])])));

/** @param {number} width @returns {Range} */
export const across = (width) => [EDGE, width - EDGE];

/** @param {number} width @param {number} height @param {import("../core/dom.js").Attributes} attributes @param {...Child} content */
export const drawing = (width, height, attributes, ...content) =>
  s("svg.interval", { viewBox: `0 0 ${width} ${height}`, width, height, ...attributes }, ...content);

/** @param {string} name @param {number} x @param {number} height @param {Child} [title] */
export const line = (name, x, height, title) =>
  s("line", { class: name, x1: x, x2: x, y1: 0, y2: height }, title);

/** @param {string} name @param {number[]} ends @param {number} y @param {number} height */
export const band = (name, [from, to], y, height) =>
  s("rect", { class: name, x: from, y, width: Math.max(1, to - from), height, rx: 3 });

/** Of ranges, which many rows share. @type {WeakMap<Range, number[]>} */
const known = new WeakMap();

/** Three to five, where round values allow it. @param {Range} range */
function ticksOf(range) {
  const found =
    known.get(range) ??
    [2, 3, 4, 5, 6, 8]
      .map((many) => ticks(range, many))
      .reduce((best, each) =>
        Math.abs(each.length - LABELS) < Math.abs(best.length - LABELS) ? each : best,
      );
  known.set(range, found);
  return found;
}

/** @param {Range} range */
export function axis(range) {
  const at = linear(range, across(WIDTH));
  const values = ticksOf(range);
  const digits = Math.max(...values.map((value) => (String(value).split(".")[1] ?? "").length));
  return drawing(
    WIDTH,
    12,
    { "aria-hidden": "true" },
    values.map((value) =>
      s("text", { x: at(value), y: 10, "text-anchor": "middle" }, value.toFixed(digits).replace("-", "−")),
    ),
  );
}

/**
 * @param {Score} score
 * @param {Range} range
 * @param {{ metric?: string, forecast?: Score | null, marks?: Record<string, number | null>, hasTicks?: boolean }} [beside] `marks`: values that stand beside it, by their names. `hasTicks`: those of an axis in the head.
 */
export function intervalBar(
  score,
  range,
  { metric = "", forecast = null, marks = {}, hasTicks = true } = {},
) {
  if (score.value !== null && isOutside(range, score.value)) return offScale(score.value, range);
  const at = clamped(range, across(WIDTH));
  const inside = Object.entries(marks).filter(([, value]) => value !== null && !isOutside(range, value));
  const told = [
    `${number(score.value, metric)} ${interval(score.interval, metric)}`,
    forecast && `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
    ...inside.map(([name, value]) => `${name} ${number(value, metric)}`),
  ];
  return drawing(
    WIDTH,
    HEIGHT,
    { role: "img", "aria-label": told.filter(Boolean).join(", ") },
    hasTicks && ticksOf(range).map((value) => line("ground", at(value), HEIGHT)),
    span("band", score, at, 6, 6),
    forecast && span("forecast", forecast, at, 3, 12),
    inside.map(([name, value]) =>
      line(
        value === 0 ? "mark origin" : "mark",
        at(Number(value)),
        HEIGHT,
        s("title", `${name} ${number(value, metric)}`),
      ),
    ),
    score.value !== null && tick(at(score.value), HEIGHT, forecast && "landing"),
  );
}

/** The margin and 0, named below the bar in which they are marked, away from each other. @param {number | null} margin @param {string} metric @param {Range} range */
export function markLabels(margin, metric, range) {
  const at = clamped(range, across(WIDTH));
  const label = (/** @type {string} */ text, /** @type {number} */ value, /** @type {string} */ anchor) =>
    s("text", { x: at(value), y: 10, "text-anchor": anchor }, text);
  const [inner, outer] = (margin ?? 0) > 0 ? ["end", "start"] : ["start", "end"];
  return drawing(
    WIDTH,
    12,
    { "aria-hidden": "true" },
    label("0", 0, margin === null ? "middle" : inner),
    margin !== null && label(`margin ${number(margin, metric)}`, margin, outer),
  );
}

/** @param {number} x @param {number} height @param {string | null} [kind] */
export const tick = (x, height, kind) =>
  s("rect", { class: ["tick", kind], x: x - 1, y: 2, width: 2.5, height: height - 4 });

/** @param {number} value @param {Range} range */
export const offScale = (value, [low]) => (value < low ? "← off the scale" : "off the scale →");

/** @param {string} name @param {Score} score @param {Scale} at @param {number} y @param {number} height */
const span = (name, { interval: ends }, at, y, height) =>
  ends && ends[0] !== null && ends[1] !== null && band(name, [at(ends[0]), at(ends[1])], y, height);
