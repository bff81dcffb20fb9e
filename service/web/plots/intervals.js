/** Scores as ticks on bars, their intervals, on one axis that stands in the head of the column. */

import { s } from "../core/dom.js";
import { interval, number } from "../parts/numbers.js";
import { isOutside, linear, padded, ticks, usualExtent } from "./scale.js";

const WIDTH = 190;
const HEIGHT = 18;

/** @typedef {{ value: number | null, interval: [number | null, number | null] | null }} Score */

/** The range of most of them, intervals included. @param {(Score | null | undefined)[]} scores @returns {[number, number]} */
export const rangeOf = (scores) =>
  padded(usualExtent(scores.flatMap((each) => [each?.value, ...(each?.interval ?? [])])));

/** @param {[number, number]} range */
const scaleOf = (range) => linear(range, [8, WIDTH - 8]);

/** @param {[number, number]} range */
const ticksOf = (range) => ticks(range, 4);

/** @param {[number, number]} range */
export function axis(range) {
  const at = scaleOf(range);
  return s(
    "svg.interval",
    { viewBox: `0 0 ${WIDTH} 12`, width: WIDTH, height: 12, "aria-hidden": "true" },
    ticksOf(range).map((value) => s("text", { x: at(value), y: 10, "text-anchor": "middle" }, String(value))),
  );
}

/**
 * @param {Score} score
 * @param {[number, number]} range
 * @param {{ metric?: string, forecast?: Score | null, marks?: Record<string, number | null> }} [beside] `marks`: values that stand beside it, by their names.
 */
export function intervalBar(score, range, { metric = "", forecast = null, marks = {} } = {}) {
  const at = scaleOf(range);
  const inside = Object.entries(marks).filter(([, value]) => value !== null && !isOutside(range, value));
  const told = [
    `${number(score.value, metric)} ${interval(score.interval, metric)}`,
    forecast && `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
    ...inside.map(([name, value]) => `${name} ${number(value, metric)}`),
  ];
  if (score.value !== null && isOutside(range, score.value)) return offScale(score.value, range);
  return s(
    "svg.interval",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": told.filter(Boolean).join(", "),
    },
    ticksOf(range).map((value) => line("ground", at(value))),
    span("band", score, range, at, [6, 6]),
    forecast && span("forecast", forecast, range, at, [3, 12]),
    inside.map(([name, value]) =>
      line("mark", at(Number(value)), s("title", `${name} ${number(value, metric)}`)),
    ),
    score.value !== null &&
      s("rect", {
        class: ["tick", forecast && "landing"],
        x: at(score.value) - 1,
        y: 2,
        width: 2.5,
        height: HEIGHT - 4,
      }),
  );
}

/** @param {number} value @param {[number, number]} range */
export const offScale = (value, [low]) => (value < low ? "← off the scale" : "off the scale →");

/** @param {string} name @param {number} x @param {import("../core/dom.js").Child} [title] */
const line = (name, x, title) => s("line", { class: name, x1: x, x2: x, y1: 0, y2: HEIGHT }, title);

/** @param {string} name @param {Score} score @param {[number, number]} range @param {(value: number) => number} at @param {[number, number]} box Top and height. */
function span(name, { interval: ends }, [low, high], at, [y, height]) {
  if (!ends || ends[0] === null || ends[1] === null) return null;
  const [from, to] = ends.map((end) => at(Math.max(low, Math.min(high, Number(end)))));
  return s("rect", { class: name, x: from, y, width: Math.max(1, to - from), height, rx: 3 });
}
