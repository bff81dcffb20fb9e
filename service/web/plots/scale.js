/** Scales and their round ticks: what all plots are drawn on. */

import { h } from "../core/dom.js";
import { count } from "../parts/numbers.js";

/** @typedef {[number, number]} Range */
/** @typedef {(value: number) => number} Scale */

/** @param {Range} from @param {Range} to @returns {Scale} */
export function linear([low, high], [start, end]) {
  const width = high - low || 1;
  return (value) => start + ((value - low) / width) * (end - start);
}

/** The values that are numbers. @param {Iterable<number | null | undefined>} values */
export const finite = (values) =>
  /** @type {number[]} */ (
    [...values].filter((value) => typeof value === "number" && Number.isFinite(value))
  );

/** The same, where what lies outside the range is drawn at its edge. @param {Range} range @param {Range} to @returns {Scale} */
export function clamped(range, to) {
  const scale = linear(range, to);
  return (value) => scale(Math.max(range[0], Math.min(range[1], value)));
}

/** @param {Range} range @param {number} value */
export const isOutside = ([low, high], value) => value < low || value > high;

/** From the lowest to the highest, or 0 to 1 where there is none. @param {Iterable<number | null | undefined>} values @returns {Range} */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of finite(values)) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

/** 0 where there is none. @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : 0;
}

const FAR = 5; // median distances from the median
const ROOM = 2; // widths beside a range in which others are taken in

/** Wider by those of the values that lie near. @param {Range} range @param {Iterable<number | null | undefined>} values @returns {Range} */
export function widened([low, high], values) {
  const room = ROOM * (high - low);
  return extent([
    low,
    high,
    ...finite(values).filter((value) => !isOutside([low - room, high + room], value)),
  ]);
}

/**
 * The range of most of the values: without those so far from the others that these would lie in less than
 * a third of the plot.
 *
 * @param {Iterable<number | null | undefined>} values @returns {Range}
 */
export function usualExtent(values) {
  const all = finite(values);
  const middle = median(all);
  const far = FAR * median(all.map((value) => Math.abs(value - middle)));
  return far > 0 ? widened(extent(all.filter((value) => Math.abs(value - middle) <= far)), all) : extent(all);
}

/** A sentence on what lies outside a plot's range, or nothing. @param {number} many @param {number} all */
export const outside = (many, all) =>
  many > 0 &&
  h("p.quiet", `Outside the scale, and drawn hollow at its edge: ${count(many)} of ${count(all)}.`);

/** With room at both ends. @param {Range} range @param {number} [share] @returns {Range} */
export function padded([low, high], share = 0.05) {
  const room = (high - low) * share || Math.abs(low) * share || share;
  return [low - room, high + room];
}

/** Round values within, about as many as asked for. @param {Range} range @param {number} [many] */
export function ticks([low, high], many = 5) {
  const rough = (high - low) / many;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough) ?? 10);
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
