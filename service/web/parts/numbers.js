/** Numbers as they are shown: one form for each metric, everywhere. */

const PRODUCT = /_prob_/; // products of probabilities: the only scores that are small by nature
const PERPLEXITY = /perplexity|_pplx_/;
const LARGE = 100_000;
const WHOLE = new Intl.NumberFormat("en");
/** By digits behind the point: a format that is made for each number takes most of the time of a table. */
const FORMATS = [0, 1, 2, 3].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

/** Digits behind the point. @param {string} metric @param {number} size */
const digitsOf = (metric, size) =>
  PERPLEXITY.test(metric) || size >= 100 ? (size >= 1000 ? 0 : size >= 100 ? 1 : 2) : 3;

/** @param {number | null | undefined} value @param {string} [metric] Of which it is a score or a difference. */
export function number(value, metric = "") {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const isSmall = PRODUCT.test(metric) && size < 0.0005;
  if (size !== 0 && (isSmall || size >= LARGE)) return value.toExponential(2);
  const text = FORMATS[digitsOf(metric, size)].format(size);
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

/** With its sign, as differences are shown. @param {number | null | undefined} value @param {string} [metric] */
export function signed(value, metric) {
  const text = number(value, metric);
  return typeof value === "number" && value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/** @param {number | null | undefined} value */
export const count = (value) => (typeof value === "number" ? WHOLE.format(value) : "–");

/** Whether its digits tell it from 0. @param {number | null | undefined} value */
export const isShown = (value) => typeof value === "number" && Math.abs(value) >= 0.0005;

/** A p-value. @param {number | null | undefined} value */
export const chance = (value) =>
  typeof value !== "number" ? "–" : value < 0.001 ? "<\u00a0.001" : value.toFixed(3).replace(/^0/, "");

/** A p-value in a sentence: `p = .004`, `p < .001`. @param {number | null | undefined} value */
export function probability(value) {
  const text = chance(value);
  return `p\u00a0${text.startsWith("<") ? "" : "=\u00a0"}${text}`;
}

/** @param {[number | null, number | null] | null | undefined} ends @param {string} [metric] */
export const interval = (ends, metric) =>
  ends ? `[${number(ends[0], metric)}, ${number(ends[1], metric)}]` : "";

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** @param {string | null | undefined} digest */
export const short = (digest) => (digest ?? "").replace(/^sha256:/, "").slice(0, 8);

/** Three digits, however small. @param {number | null | undefined} value */
export const precise = (value) =>
  typeof value === "number" && value !== 0 && Math.abs(value) < 0.0005
    ? value.toExponential(2)
    : number(value);
