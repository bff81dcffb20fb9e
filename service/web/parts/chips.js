/** Chips: what is chosen is chosen from what there is, and taken away by a press. */

import { h } from "../core/dom.js";
import { titleOf } from "./metrics.js";

/** A press switches it. @param {import("../core/dom.js").Child} text @param {() => boolean} isOn @param {() => void} press */
export const chip = (text, isOn, press) =>
  h("button.chip", { type: "button", "aria-pressed": () => String(isOn()), onclick: press }, text);

/** What narrows a list; a press takes it away. @param {string} text @param {() => void} remove */
export const filterChip = (text, remove) =>
  h(
    "button.chip.on",
    { type: "button", title: "Take this away", onclick: remove },
    text,
    h("span", { "aria-hidden": "true" }, "×"),
  );

/** Adds one of several. @param {string} text As "+ metric". @param {() => string[][]} options Values and texts. @param {(value: string) => void} add */
export function adder(text, options, add) {
  const choose = (/** @type {any} */ { target }) => {
    const chosen = target.value;
    target.value = "";
    if (chosen) add(chosen);
  };
  return h(
    "select.chip",
    { "aria-label": text.replace("+ ", "Add: "), onchange: choose },
    h("option", { value: "" }, text),
    () => options().map(([value, name]) => h("option", { value }, name)),
  );
}

/**
 * Metrics as chips: the first is the one that a view is about.
 *
 * @param {{ chosen: () => string[], choose: (metrics: string[]) => void, known: () => string[] }} of `known`: those that can be added.
 */
export const metricChips = ({ chosen, choose, known }) => [
  () =>
    chosen().map((metric) =>
      chosen().length > 1
        ? filterChip(titleOf(metric), () => choose(chosen().filter((each) => each !== metric)))
        : h("span.chip.on", titleOf(metric)),
    ),
  () =>
    adder(
      "+ metric",
      () =>
        known()
          .filter((each) => !chosen().includes(each))
          .map((each) => [each, titleOf(each)]),
      (metric) => choose([...chosen(), metric]),
    ),
];
