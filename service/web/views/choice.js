/** Choices in a bar: one of several as chips, and a text that is searched for. */

import { h } from "../core/dom.js";
import { onEnd } from "../core/signals.js";
import { chip } from "../parts/chips.js";
import { byUsualOrder, titleOf } from "../parts/metrics.js";

/** @param {string} name @param {() => any[][]} options Values and texts. @param {{ value: string }} chosen */
export const choice = (name, options, chosen) =>
  h("div.bar", { role: "group", "aria-label": name }, () =>
    options().map(([value, text]) =>
      chip(
        text,
        () => chosen.value === value,
        () => (chosen.value = value),
      ),
    ),
  );

/** One of these metrics, by its title. @param {string} name @param {() => string[]} metrics @param {{ value: string }} chosen */
export const metricChoice = (name, metrics, chosen) =>
  choice(name, () => metrics().map((each) => [each, titleOf(each)]), chosen);

/** The metric that is predicted, or probed. @param {() => string[]} metrics @param {{ value: string }} target */
export const targetChoice = (metrics, target) =>
  metricChoice("Metric to predict", () => byUsualOrder([...new Set([target.value, ...metrics()])]), target);

/** @param {string} name @param {string} placeholder @param {{ value: string }} text @param {{ pause?: number }} [how] `pause`: milliseconds without a key, after which the text is set. */
export function searchField(name, placeholder, text, { pause = 0 } = {}) {
  let timer = 0;
  const set = () => {
    clearTimeout(timer);
    text.value = field.value;
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(set, pause);
  };
  onEnd(() => clearTimeout(timer));
  const field = h("input", {
    type: "search",
    "aria-label": name,
    placeholder,
    size: Math.max(20, placeholder.length),
    ".value": () => text.value,
    maxlength: 200,
    spellcheck: "false",
    oninput: pause ? wait : set,
    onchange: set,
  });
  return field;
}
