/** What views are laid out with: sections, heads of tables, frames that scroll. */

import { h } from "../core/dom.js";

/** @typedef {import("../core/dom.js").Child} Child */

/** @param {string} title @param {...Child} content */
export const section = (title, ...content) =>
  h("section", { "aria-label": title }, h("h2", {}, title), ...content);

/** @param {(string | Node)[]} names */
export const head = (names) =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      names.map((name) => h("th", { scope: "col" }, name)),
    ),
  );

/** What may be wider than the page, and scrolls by itself. @param {string} name @param {...Child} content */
export const scrolled = (name, ...content) =>
  h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": name }, ...content);

/** @param {string} name @param {(string | Node)[]} columns @param {Child} rows */
export const table = (name, columns, rows) =>
  scrolled(name, h("table", {}, head(columns), h("tbody", {}, rows)));

/** One of a few facts, in a list of the class `facts`. @param {string} name @param {...Child} content */
export const fact = (name, ...content) => h("div", {}, h("dt", {}, name), h("dd", {}, ...content));

/** One of several values. @param {() => string[][]} options Values and their texts. @param {{ value: string }} chosen */
export function select(options, chosen) {
  const choose = (/** @type {any} */ { target }) => {
    chosen.value = target.value;
  };
  return h("select", { onchange: choose }, () =>
    options().map(([value, text]) => h("option", { value, selected: value === chosen.value }, text)),
  );
}
