/** Two numbers between which something lies: what is drawn on a plot with a pointer, by keys. */

import { h } from "../core/dom.js";
import { number } from "./numbers.js";

/** @typedef {[number, number]} Span */

/**
 * @param {() => string} name Of what they are bounds.
 * @param {() => Span} range From the lowest to the highest that there is, which an empty field stands for.
 * @param {() => Span | null} chosen
 * @param {(chosen: Span | null) => void} choose Null: all.
 */
export function bounds(name, range, chosen, choose) {
  const field = (/** @type {string} */ side, /** @type {0 | 1} */ at) =>
    h("input", {
      type: "number",
      step: "any",
      "aria-label": () => `${name()} ${side}`,
      placeholder: () => number(range()[at]),
      ".value": () => short(chosen()?.[at]),
      onchange: (/** @type {any} */ { target }) => {
        const all = range();
        const ends = /** @type {Span} */ ([...(chosen() ?? all)]);
        ends[at] = target.value === "" ? all[at] : Number(target.value);
        choose(ends.some((end, at) => end !== all[at]) ? [Math.min(...ends), Math.max(...ends)] : null);
      },
    });
  return h("span.bounds", name, " from ", field("from", 0), " to ", field("to", 1));
}

const SMALL = 1e-6; // what is less is zero but for rounding

/** As many digits as one tells apart, and no more. @param {number | undefined} value */
const short = (value) =>
  value === undefined ? "" : Math.abs(value) < SMALL ? "0" : String(Number(value.toPrecision(5)));
