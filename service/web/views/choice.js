/** Choices in a bar: one of several as chips, and a text that is searched for. */

import { h } from "../core/dom.js";
import { chip } from "../parts/chips.js";
import { titleOf } from "../parts/metrics.js";

/** @param {string} name @param {[string, Child][]} options Values and texts. @param {{ value: string }} chosen */
export const choice = (name, options, chosen) =>
  h(
    "div.bar",
    { role: "group", "aria-label": name },
    options.map(([value, text]) =>
      chip(
        text,
        () => chosen.value === value,
        () => (chosen.value = value),
      ),
    ),
  );

/** The metric that a view is about. @param {() => string[]} metrics @param {{ value: string }} chosen */
export const metricChoice = (metrics, chosen) => () =>
  choice(
    "Metric to predict",
    metrics().map((each) => [each, titleOf(each)]),
    chosen,
  );

/** @param {string} name @param {string} placeholder @param {{ value: string }} text */
export const searchField = (name, placeholder, text) =>
  h("input", {
    type: "search",
    "aria-label": name,
    placeholder,
    ".value": () => text.value,
    maxlength: 200,
    spellcheck: "false",
    oninput: (/** @type {any} */ { target }) => (text.value = target.value),
  });
