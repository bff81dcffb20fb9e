/**
 * Scores over the steps of trainings: a line with a ribbon for each, forecasts as another ribbon. Several such
 * plots share a cursor: the step that is pointed at, or reached by the arrow keys, in one is marked in all.
 */

import { h, s } from "../core/dom.js";
import { computed, onEnd, signal } from "../core/signals.js";
import { titleOf } from "../parts/metrics.js";
import { number } from "../parts/numbers.js";
import { chart } from "./chart.js";
import { extent, finite, isOutside, outside, padded, ticks, usualExtent, widened } from "./scale.js";

/** @typedef {import("./scale.js").Range} Range */
/** @typedef {import("./chart.js").Scales} Scales */
/** @typedef {[number | null, number | null] | null | undefined} Ends */
/** @typedef {{ step: number, value: number | null, interval: Ends, forecast?: { interval: Ends } | null, isFallen?: boolean, isCollapsed?: boolean, isBest?: boolean }} Point */
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
const NARROW = 480; // pixels of a plot that a tooltip may cover on both sides of a point
const NOTE = { width: 250, height: 90 }; // pixels

/** A cursor that no plot has. @returns {Cursor} */
export const newCursor = () => ({ step: signal(null), metric: signal(null) });

/**
 * @param {() => Series[]} seriesOf The training itself first.
 * @param {{ metric: string, isBounded: boolean, height: number, cursor: Cursor, chosen: () => number | null, choose: (step: number) => void, tooltip: (step: number) => Child, said: (step: number) => string, note: () => { step: number, content: Child } | null }} how
 *   `isBounded`: its scores cannot explode, and all of them are in the plot's scale. `chosen`: the step whose details are open. `said`: what the tooltip shows, in words. `note`: what stands beside a point while no details are open.
 */
export function curves(seriesOf, { metric, isBounded, height, cursor, chosen, choose, tooltip, said, note }) {
  const series = computed(seriesOf);
  const steps = computed(() => series.value[0].points.map(({ step }) => step));
  const range = computed(() => rangeOf(series.value, isBounded));
  const width = signal(0);
  const marked = () => cursor.step.value ?? chosen();
  const ruled = () => marked() ?? note()?.step ?? null;
  const drawn = computed(() =>
    width.value > 0
      ? draw(series.value, { metric, range: range.value, width: width.value, height, ruled })
      : null,
  );
  let touched = /** @type {number | null | undefined} */ (undefined); // the step pointed at before a finger's touch: the first touch points, the second chooses
  const xOf = (/** @type {number} */ step) => drawn.value?.x(step) ?? 0;
  const point = (/** @type {number | null} */ step) => {
    cursor.metric.value = step === null ? null : metric;
    cursor.step.value = step;
  };
  const nearest = (/** @type {MouseEvent} */ event) => {
    const at = event.clientX - frame.getBoundingClientRect().left;
    const away = (/** @type {number} */ step) => Math.abs(xOf(step) - at);
    return steps.value.reduce((best, step) => (away(step) < away(best) ? step : best));
  };
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const all = steps.value;
    const now = all.indexOf(cursor.step.value ?? NaN);
    if (event.key === "Enter" && now >= 0) choose(all[now]);
    else if (event.key === "Escape") point(null);
    else if (event.key in KEYS) point(all[Math.max(0, Math.min(all.length - 1, now + KEYS[event.key]))]);
    else return;
    event.preventDefault();
  };
  const last = () => steps.value[steps.value.length - 1];
  const now = () => marked() ?? last();
  const tip = () => {
    const step = cursor.step.value;
    if (step === null || cursor.metric.value !== metric) return null;
    return h(
      "div.tooltip",
      { style: placeAt(xOf(step), width.value) },
      tooltip(step),
      touched !== undefined && h("div.quiet", "Tap again to see what it changed"),
    );
  };
  const frame = h(
    "div.curves",
    { style: { height: `${height}px` } },
    h(
      "div.cursor",
      {
        tabindex: "0",
        role: "slider",
        "aria-label": `Step of the plot of ${titleOf(metric)}`,
        "aria-valuemin": () => steps.value[0],
        "aria-valuemax": last,
        "aria-valuenow": now,
        "aria-valuetext": () => said(now()),
        onpointerdown: (/** @type {PointerEvent} */ { pointerType }) =>
          (touched = pointerType === "touch" ? cursor.step.value : undefined),
        onpointermove: (/** @type {PointerEvent} */ event) => point(nearest(event)),
        onpointerleave: () => point(null),
        onclick: (/** @type {MouseEvent} */ event) => {
          const step = nearest(event);
          point(step);
          if (touched === undefined || touched === step) choose(step);
        },
        onfocus: () => point(chosen() ?? last()),
        onblur: () => point(null),
        onkeydown,
      },
      () => drawn.value?.plot,
    ),
    () => drawn.value && chosen() === null && noteAt(note(), series.value[0], drawn.value, width.value),
    tip,
  );
  const watcher = new ResizeObserver(() => (width.value = Math.round(frame.clientWidth)));
  watcher.observe(frame);
  onEnd(() => watcher.disconnect());
  const away = () => {
    const values = finite(series.value.flatMap(({ points }) => points.map(({ value }) => value)));
    return outside(values.filter((value) => isOutside(range.value, value)).length, values.length);
  };
  return [frame, away];
}

/** @param {Series[]} series @param {boolean} isBounded @returns {Range} */
function rangeOf(series, isBounded) {
  const points = series.flatMap((each) => each.points);
  const measured = points.flatMap(({ value, interval }) => [value, ...(interval ?? [])]);
  const forecasts = points.flatMap(({ forecast }) => forecast?.interval ?? []);
  return padded(widened((isBounded ? extent : usualExtent)(measured), forecasts), 0.06);
}

/** Beside a point; where a plot is narrow, over it and within the plot. @param {number} x @param {number} width */
function placeAt(x, width) {
  if (width < NARROW) return { left: `${x}px`, transform: `translateX(${(-100 * x) / width}%)` };
  return x < width / 2 ? { left: `${x + 14}px` } : { right: `${width - x + 14}px` };
}

/** Below its point, at its right if there is room. @param {{ step: number, content: Child } | null} note @param {Series} series @param {Scales} scales @param {number} width */
function noteAt(note, { points }, { x, y, box }, width) {
  const value = points.find(({ step }) => step === note?.step)?.value;
  if (!note || typeof value !== "number") return null;
  const [before, after] = [x(note.step) - 14 - NOTE.width, x(note.step) + 14];
  const left = after + NOTE.width < width ? after : Math.max(0, before);
  const top = Math.min(y(value) + 14, box.bottom - NOTE.height);
  const style = { left: `${left}px`, top: `${top}px`, width: `${NOTE.width}px` };
  return h("div.tooltip.note", { style }, note.content);
}

/** @param {Series[]} series @param {{ metric: string, range: Range, width: number, height: number, ruled: () => number | null }} how `ruled`: the step with a line. */
function draw(series, { metric, range, width, height, ruled }) {
  const steps = series[0].points.map(({ step }) => step);
  const all = extent(steps);
  const best = series[0].points.find(({ isBest }) => isBest);
  const below = [...series].reverse(); // the training itself is drawn over the others
  const x = { name: "step", range: padded(all, 0.03), ticks: steps.length <= 10 ? steps : ticks(all, 8) };
  const said = `${titleOf(metric)} over ${steps.length} steps; best: step ${best?.step ?? "not known"}`;
  return chart({ width, height, x, y: { name: "", range }, kind: "curve", said }, (scales) => [
    below.map((each) => ribbons(each, scales)),
    below.map((each) => line(each, scales)),
    () => rule(ruled(), scales),
    below.map((each) => points(each, scales, range)),
  ]);
}

/** @param {number | null} step @param {Scales} scales */
const rule = (step, { x, box }) =>
  step !== null && s("line.crosshair", { x1: x(step), x2: x(step), y1: box.top, y2: box.bottom });

/** @param {Series} series @param {Scales} scales */
const ribbons = ({ kind, points }, scales) => [
  ribbon(`ribbon ${kind}`, points, scales),
  ribbon(
    "ribbon forecast",
    points.map(({ step, forecast }) => ({ step, interval: forecast?.interval })),
    scales,
  ),
];

/** @param {string} name @param {{ step: number, interval: Ends }[]} points @param {Scales} scales */
function ribbon(name, points, { x, y }) {
  const known = points.flatMap(({ step, interval }) => {
    const [low, high] = finite(interval ?? []);
    return high === undefined ? [] : [{ step, low, high }];
  });
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
    ({ step, value, isFallen, isCollapsed, isBest }) =>
      value !== null &&
      s(
        "circle",
        {
          class: [
            ...["point", kind, isCollapsed && "collapsed", isFallen && "fallen", isBest && "best"],
            isOutside(range, value) && "away",
          ],
          cx: x(step),
          cy: y(value),
          r: isFallen || isCollapsed || isBest ? 6 : 4,
        },
        s("title", `${name}, step ${step}: ${number(value)}`),
      ),
  );
