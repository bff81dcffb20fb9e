/** Numbers, times and names as they are shown. */

/** @param {number | null | undefined} value Three digits, as tables of scores have them. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100_000)) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const digits = size < 10 ? 3 : size < 1000 ? 1 : 0;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A probability that chance alone does it. @param {number | null | undefined} value */
export const chance = (value) => (typeof value === "number" && value < 0.001 ? "< 0.001" : number(value));

/** @param {[number | null, number | null] | null | undefined} interval */
export const interval = (interval) => (interval ? `[${number(interval[0])}, ${number(interval[1])}]` : "");

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
