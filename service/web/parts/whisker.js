/** A score with its interval, drawn on a scale that its neighbours share. */

import { s } from "../core/dom.js";
import { interval, number } from "./numbers.js";

const WIDTH = 160;
const HEIGHT = 16;

/**
 * @param {{ value: number | null, interval: [number | null, number | null] | null }} score
 * @param {[number, number]} range
 * @param {{ forecast?: { value: number | null, interval: [number | null, number | null] | null } | null }} [beside]
 */
export function whisker(score, [low, high], { forecast = null } = {}) {
  const at = (/** @type {number} */ value) => 4 + ((value - low) / (high - low || 1)) * (WIDTH - 8);
  const middle = HEIGHT / 2;
  const told = `${number(score.value)} ${interval(score.interval)}${forecast ? `, forecast ${number(forecast.value)} ${interval(forecast.interval)}` : ""}`;
  return s(
    "svg",
    { class: "whisker", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": told },
    forecast && span("forecast", forecast, at, middle, 6),
    span("measured", score, at, middle, 4),
    score.value !== null && s("circle", { cx: at(score.value), cy: middle, r: 3 }),
  );
}

/** @param {string} name @param {{ interval: [number | null, number | null] | null }} score @param {(value: number) => number} at @param {number} middle @param {number} height */
function span(name, { interval: ends }, at, middle, height) {
  if (!ends || ends[0] === null || ends[1] === null) return null;
  const [from, to] = [at(ends[0]), at(ends[1])];
  if (name === "forecast") return s("rect", { class: name, x: from, y: middle - height, width: Math.max(1, to - from), height: 2 * height });
  return s("path", { class: name, d: `M${from} ${middle}H${to}M${from} ${middle - height}V${middle + height}M${to} ${middle - height}V${middle + height}` });
}

/** @param {{ value: number | null, interval: [number | null, number | null] | null }[]} scores The range that holds them all. @returns {[number, number]} */
export function rangeOf(scores) {
  const values = scores.flatMap((each) => [each?.value, ...(each?.interval ?? [])]).filter((value) => typeof value === "number" && Number.isFinite(value));
  return values.length ? [Math.min(.../** @type {number[]} */ (values)), Math.max(.../** @type {number[]} */ (values))] : [0, 1];
}
