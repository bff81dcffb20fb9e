/** Chips: what is chosen is chosen from what there is, and taken away by a press. */

import { h } from "../core/dom.js";

/** A press switches it. @param {Child} text @param {() => boolean} isOn @param {() => void} press */
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
 * What is chosen of a list, as chips, and the others to add.
 *
 * @param {{ text: string, chosen: () => string[], choose: (chosen: string[]) => void, known: () => string[], least?: number, most?: number, title?: (each: string) => string }} of `text`: as of `adder`. `known`: those that there are.
 */
export const listChips = ({ text, chosen, choose, known, least = 0, most = Infinity, title = String }) => [
  () =>
    chosen().map((each) =>
      chosen().length > least
        ? filterChip(title(each), () => choose(chosen().filter((other) => other !== each)))
        : h("span.chip.on", title(each)),
    ),
  () =>
    chosen().length < most &&
    adder(
      text,
      () =>
        known()
          .filter((each) => !chosen().includes(each))
          .map((each) => [each, title(each)]),
      (each) => choose([...chosen(), each]),
    ),
];
