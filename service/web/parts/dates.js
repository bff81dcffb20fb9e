/** Dates: how long ago, with the exact date as the title. */

import { h } from "../core/dom.js";
import { onEnd, signal } from "../core/signals.js";
import { duration } from "./numbers.js";

/** The exact date. @param {string | null | undefined} text RFC 3339. */
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  return Number.isNaN(at.valueOf()) ? text : `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

const UNITS = /** @type {[number, string][]} */ ([
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
]);
const MONTH = 30 * 86_400; // seconds after which the date itself is shown

/** Rounded up from three quarters of a unit on. @param {string} text RFC 3339. @param {number} [now] Milliseconds. */
export function relative(text, now = Date.now()) {
  const seconds = (now - new Date(text).valueOf()) / 1000;
  if (Number.isNaN(seconds)) return text;
  if (seconds > MONTH) return text.slice(0, 10);
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [0, ""];
  if (!size) return "just now";
  const many = Math.floor(seconds / size + 0.25);
  return many === 1 && unit === "day" ? "yesterday" : `${many} ${unit}${many === 1 ? "" : "s"} ago`;
}

/** @param {string | null | undefined} text */
export const ago = (text) => text && h("time", { datetime: text, title: time(text) }, relative(text));

/** How long something has been going on. @param {string} text */
export const lasting = (text) => duration((Date.now() - new Date(text).valueOf()) / 1000);

const TICK = 5_000; // milliseconds

/** Seconds since the view was drawn, read where something is told of the time that passes. @param {() => void} [onTick] */
export function clock(onTick) {
  const seconds = signal(0);
  const timer = setInterval(() => {
    if (document.hidden) return;
    onTick?.();
    seconds.value += TICK / 1000;
  }, TICK);
  onEnd(() => clearInterval(timer));
  return seconds;
}
