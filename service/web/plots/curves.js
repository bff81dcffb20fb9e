/**
 * Scores over the steps of trainings: a line with a ribbon for each, forecasts as another ribbon. Several such
 * plots share a cursor: the step that is pointed at, or reached by the arrow keys, in one is marked in all.
 */

import { h, s } from "../core/dom.js";
import { onEnd, signal } from "../core/signals.js";
import { titleOf } from "../parts/metrics.js";
import { number } from "../parts/numbers.js";
import { chart } from "./chart.js";
import { extent, isOutside, outside, padded, ticks, usualExtent, widened } from "./scale.js";

/** @typedef {import("./scale.js").Range} Range */
/** @typedef {import("./chart.js").Scales} Scales */
/** @typedef {[number | null, number | null] | null | undefined} Ends */
/** @typedef {{ step: number, value: number | null, interval: Ends, forecast?: { value: number | null, interval: Ends } | null, isFallen?: boolean, isBest?: boolean }} Point */
/** @typedef {{ name: string, kind: string, points: Point[] }} Series `kind`: the class that tells its colour. */
/** @typedef {{ step: { value: number | null }, metric: { value: string | null } }} Cursor `metric`: the plot in which it is. */

const KEYS = /** @type {Record<string, number>} */ ({
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  Home: -Infinity,
  End: Infinity,
});

const ALONE = 6; // pixels at both sides of a ribbon that has one step

/** A cursor that no plot has. @returns {Cursor} */
export const newCursor = () => ({ step: signal(null), metric: signal(null) });

/**
 * @param {Series[]} series The training itself first.
 * @param {{ metric: string, isBounded: boolean, height: number, cursor: Cursor, chosen: () => number | null, choose: (step: number) => void, tooltip: (step: number) => import("../core/dom.js").Child, said: (step: number) => string }} how
 *   `isBounded`: its scores cannot explode, and all of them are in the plot's scale. `chosen`: the step whose details are open. `said`: what the tooltip shows, in words.
 */
export function curves(series, { metric, isBounded, height, cursor, chosen, choose, tooltip, said }) {
  const steps = series[0].points.map(({ step }) => step);
  const width = signal(0);
  const range = rangeOf(series, isBounded);
  const scales = { value: /** @type {Scales | null} */ (null) };
  const isHere = () => cursor.metric.value === metric && cursor.step.value !== null;
  const point = (/** @type {number | null} */ step) => {
    cursor.metric.value = step === null ? null : metric;
    cursor.step.value = step;
  };
  const nearest = (/** @type {MouseEvent} */ event) => {
    const at = event.clientX - frame.getBoundingClientRect().left;
    const away = (/** @type {number} */ step) => Math.abs((scales.value?.x(step) ?? 0) - at);
    return steps.reduce((best, step) => (away(step) < away(best) ? step : best), steps[0]);
  };
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const now = steps.indexOf(cursor.step.value ?? NaN);
    if (event.key === "Enter" && now >= 0) choose(steps[now]);
    else if (event.key === "Escape") point(null);
    else if (event.key in KEYS) point(steps[Math.max(0, Math.min(steps.length - 1, now + KEYS[event.key]))]);
    else return;
    event.preventDefault();
  };
  const now = () => cursor.step.value ?? chosen() ?? steps[steps.length - 1];
  const frame = h(
    "div.curves",
    {
      style: { height: `${height}px` },
      tabindex: "0",
      role: "slider",
      "aria-label": `Step of the plot of ${titleOf(metric)}`,
      "aria-valuemin": steps[0],
      "aria-valuemax": steps[steps.length - 1],
      "aria-valuenow": now,
      "aria-valuetext": () => said(now()),
      onpointermove: (/** @type {PointerEvent} */ event) => point(nearest(event)),
      onpointerleave: () => point(null),
      onclick: (/** @type {MouseEvent} */ event) => choose(nearest(event)),
      onfocus: () => point(chosen() ?? steps[steps.length - 1]),
      onblur: () => point(null),
      onkeydown,
    },
    () =>
      width.value > 0 &&
      draw(series, { metric, range, steps, width: width.value, height, cursor, chosen, scales }),
    () =>
      isHere() &&
      h(
        "div.tooltip",
        { style: () => side(cursor.step.value, scales.value, width.value) },
        () => cursor.step.value !== null && tooltip(cursor.step.value),
      ),
  );
  const watcher = new ResizeObserver(() => (width.value = Math.round(frame.clientWidth)));
  watcher.observe(frame);
  onEnd(() => watcher.disconnect());
  const values = series.flatMap(({ points }) =>
    points.flatMap(({ value }) => (value === null ? [] : [value])),
  );
  return [frame, outside(values.filter((value) => isOutside(range, value)).length, values.length)];
}

/** @param {Series[]} series @param {boolean} isBounded @returns {Range} */
function rangeOf(series, isBounded) {
  const points = series.flatMap((each) => each.points);
  const measured = points.flatMap(({ value, interval }) => [value, ...(interval ?? [])]);
  const forecasts = points.flatMap(({ forecast }) => forecast?.interval ?? []);
  return padded(widened((isBounded ? extent : usualExtent)(measured), forecasts), 0.06);
}

/** Where the tooltip is: beside the cursor, on the side that has more room. @param {number | null} step @param {Scales | null} scales @param {number} width */
function side(step, scales, width) {
  const x = scales && step !== null ? scales.x(step) : 0;
  const isLeft = x < width / 2;
  return { left: isLeft ? `${x + 14}px` : "auto", right: isLeft ? "auto" : `${width - x + 14}px` };
}

/**
 * @param {Series[]} series
 * @param {{ metric: string, range: Range, steps: number[], width: number, height: number, cursor: Cursor, chosen: () => number | null, scales: { value: Scales | null } }} how `scales`: told to the frame.
 */
function draw(series, { metric, range, steps, width, height, cursor, chosen, scales }) {
  const all = extent(steps);
  const marks = steps.length <= 10 ? steps : ticks(all, 8);
  const best = series[0].points.find(({ isBest }) => isBest);
  const { plot } = chart(
    {
      width,
      height,
      x: { name: "step", range: padded(all, 0.03), ticks: marks },
      y: { name: titleOf(metric), range },
      kind: "curve",
      said: `${titleOf(metric)} over ${steps.length} steps; best: step ${best?.step ?? "not known"}`,
    },
    (found) => {
      scales.value = found;
      return [
        [...series].reverse().map((each) => ribbons(each, found)),
        [...series].reverse().map((each) => line(each, found)),
        () => rule(cursor.step.value ?? chosen(), found),
        [...series].reverse().map((each) => points(each, found, range)),
      ];
    },
  );
  return plot;
}

/** The step that is pointed at, or whose details are open. @param {number | null} step @param {Scales} scales */
const rule = (step, { x, box }) =>
  step !== null && s("line.crosshair", { x1: x(step), x2: x(step), y1: box.top, y2: box.bottom });

/** @param {Series} series @param {Scales} scales */
const ribbons = ({ kind, points }, scales) => [
  ribbon(`ribbon ${kind}`, points, scales),
  ribbon(
    "ribbon forecast",
    points.flatMap(({ step, forecast }) => (forecast ? [{ step, ...forecast }] : [])),
    scales,
  ),
];

/** @param {string} name @param {{ step: number, interval: Ends }[]} points @param {Scales} scales */
function ribbon(name, points, { x, y }) {
  const known = points.flatMap(({ step, interval }) =>
    interval && interval[0] !== null && interval[1] !== null
      ? [{ step, low: interval[0], high: interval[1] }]
      : [],
  );
  if (!known.length) return null;
  const half = known.length > 1 ? 0 : ALONE;
  const edge = (/** @type {"low" | "high"} */ side) =>
    known.flatMap((each) => [-half, half].map((away) => `${x(each.step) + away} ${y(each[side])}`));
  return s("path", { class: name, d: `M${[...edge("high"), ...edge("low").reverse()].join("L")}Z` });
}

/** @param {Series} series @param {Scales} scales */
function line({ kind, points }, { x, y }) {
  const known = points.filter(({ value }) => value !== null);
  return s("path", {
    class: `line ${kind}`,
    d: known.map(({ step, value }, at) => `${at ? "L" : "M"}${x(step)} ${y(Number(value))}`).join(""),
  });
}

/** @param {Series} series @param {Scales} scales @param {Range} range */
const points = ({ name, kind, points }, { x, y }, range) =>
  points.map(
    ({ step, value, isFallen, isBest }) =>
      value !== null &&
      s(
        "circle",
        {
          class: ["point", kind, isFallen && "fallen", isBest && "best", isOutside(range, value) && "away"],
          cx: x(step),
          cy: y(value),
          r: isFallen || isBest ? 6 : 4,
        },
        s("title", `${name}, step ${step}: ${number(value)}`),
      ),
  );
