/** A score with its interval, drawn on a scale that its neighbours share. */

import { s } from "../core/dom.js";
import { interval, number } from "../parts/numbers.js";
import { clamped, isOutside, usualExtent } from "./scale.js";

const WIDTH = 160;
const HEIGHT = 16;

/** @typedef {{ value: number | null, interval: [number | null, number | null] | null }} Score */

/**
 * @param {Score} score
 * @param {[number, number]} range
 * @param {{ metric?: string, forecast?: Score | null, marks?: Record<string, number | null> }} [beside] `marks`: values that stand beside it, by their names.
 */
export function whisker(score, range, { metric = "", forecast = null, marks = {} } = {}) {
  const at = clamped(range, [4, WIDTH - 4]);
  const middle = HEIGHT / 2;
  const known = Object.entries(marks).filter(([, value]) => typeof value === "number");
  const told = [
    `${number(score.value, metric)} ${interval(score.interval, metric)}`,
    forecast && `forecast ${number(forecast.value, metric)} ${interval(forecast.interval, metric)}`,
    ...known.map(([name, value]) => `${name} ${number(value, metric)}`),
  ];
  return s(
    "svg",
    {
      class: "whisker",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": told.filter(Boolean).join(", "),
    },
    s("line", { class: "ground", x1: 4, x2: WIDTH - 4, y1: HEIGHT - 1, y2: HEIGHT - 1 }),
    forecast && band(forecast, at, middle),
    known.map(([name, value]) => {
      const x = at(Number(value));
      const title = s("title", `${name} ${number(value, metric)}`);
      return isOutside(range, Number(value))
        ? s("circle", { class: "away", cx: x, cy: middle, r: 3 }, title)
        : s("line", { class: "mark", x1: x, x2: x, y1: 1, y2: HEIGHT - 1 }, title);
    }),
    span(score, at, middle),
    score.value !== null &&
      s("circle", {
        class: [forecast && "landing", isOutside(range, score.value) && "away"],
        cx: at(score.value),
        cy: middle,
        r: 3,
      }),
  );
}

/** @param {Score} score @param {(value: number) => number} at @param {number} middle */
export function span({ interval: ends }, at, middle) {
  if (!ends || ends[0] === null || ends[1] === null) return null;
  const [from, to] = [at(ends[0]), at(ends[1])];
  return s("path", {
    class: "measured",
    d: `M${from} ${middle}H${to}M${from} ${middle - 4}V${middle + 4}M${to} ${middle - 4}V${middle + 4}`,
  });
}

/** @param {Score} forecast @param {(value: number) => number} at @param {number} middle */
function band({ interval: ends }, at, middle) {
  if (!ends || ends[0] === null || ends[1] === null) return null;
  return s("rect", {
    class: "forecast",
    x: at(ends[0]),
    y: middle - 6,
    width: Math.max(1, at(ends[1]) - at(ends[0])),
    height: 12,
  });
}

/** The range of most of them, intervals included. @param {Score[]} scores */
export const rangeOf = (scores) =>
  usualExtent(scores.flatMap((each) => [each?.value, ...(each?.interval ?? [])]));
