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
  const fields = ["from", "to"].map((side, at) =>
    h("input", {
      type: "number",
      step: "any",
      "aria-label": () => `${name()} ${side}`,
      placeholder: () => number(range()[at]),
      ".value": () => (chosen() ? short(/** @type {Span} */ (chosen())[at]) : ""),
      onchange: () => changed(),
    }),
  );
  function changed() {
    const texts = fields.map((field) => /** @type {HTMLInputElement} */ (field).value);
    if (!texts.some(Boolean)) return choose(null);
    const [from, to] = texts.map((text, at) => meant(text, chosen()?.[at], range()[at]));
    choose([Math.min(from, to), Math.max(from, to)]);
  }
  return h("span", { class: "bounds" }, name, " from ", fields[0], " to ", fields[1]);
}

/** A field that nobody changed keeps the digits that it does not show. @param {string} text @param {number | undefined} chosen @param {number} end */
const meant = (text, chosen, end) =>
  text === "" ? end : chosen !== undefined && text === short(chosen) ? chosen : Number(text);

const SMALL = 1e-6; // what is less is zero but for rounding

/** As many digits as one tells apart, and no more. @param {number} value */
const short = (value) => (Math.abs(value) < SMALL ? "0" : String(Number(value.toPrecision(5))));
