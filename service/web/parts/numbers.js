/** Numbers, times and names as they are shown. */

const PRODUCT = /_prob_/; // metrics that are products of probabilities: the only scores that are small by nature
const SHOWN = 0.0005; // what is nearer to 0 is 0 to three digits

/** Whether three digits tell it from 0. @param {number | null | undefined} value */
export const isShown = (value) => typeof value === "number" && Math.abs(value) >= SHOWN;

/**
 * Three digits, as tables of scores have them. What they cannot show is 0, but for scores that are small
 * by nature.
 *
 * @param {number | null | undefined} value @param {string} [metric] Of which it is a score or a difference.
 */
export const number = (value, metric = "") =>
  value && !isShown(value) && !PRODUCT.test(metric) ? "0.000" : precise(value);

/** Three digits, however small. @param {number | null | undefined} value */
export function precise(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < SHOWN || size >= 100_000)) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const digits = size < 10 ? 3 : size < 1000 ? 1 : 0;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A probability that chance alone does it. @param {number | null | undefined} value */
export const chance = (value) => (typeof value === "number" && value < 0.001 ? "< 0.001" : number(value));

/** @param {[number | null, number | null] | null | undefined} interval @param {string} [metric] */
export const interval = (interval, metric) =>
  interval ? `[${number(interval[0], metric)}, ${number(interval[1], metric)}]` : "";

/** @param {string | null | undefined} text RFC 3339. */
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  return Number.isNaN(at.valueOf()) ? text : `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 100
    ? `${seconds.toFixed(1)} s`
    : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** @param {string | null | undefined} digest */
export const short = (digest) => (digest ?? "").replace(/^sha256:/, "").slice(0, 8);

/** @param {boolean | null | undefined} higher */
export const direction = (higher) =>
  higher === true ? "↑ higher is better" : higher === false ? "↓ lower is better" : "";
