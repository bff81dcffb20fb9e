/** Keys that do something in a view. They are listed by `?`, and are silent where one types. */

import { onEnd, signal } from "./signals.js";

/** @typedef {{ key: string, text: string, action: () => void }} Shortcut */

/** Those of what is shown now. */
export const shortcuts = signal(/** @type {Shortcut[]} */ ([]));

/**
 * @param {string} key As `KeyboardEvent.key` has it.
 * @param {string} text What it does, for the list.
 * @param {() => void} action
 */
export function onKey(key, text, action) {
  const made = { key, text, action };
  shortcuts.value = [...shortcuts.peek(), made];
  onEnd(() => {
    shortcuts.value = shortcuts.peek().filter((each) => each !== made);
  });
}

export function heedKeys() {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const isTyping =
      target.isContentEditable ||
      target.matches("select, textarea, input:not([type=checkbox], [type=radio], [type=range])");
    if (isTyping) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const found = shortcuts.peek().findLast((each) => each.key === event.key);
    if (!found) return;
    event.preventDefault();
    found.action();
  });
}

/**
 * `j` and `k` go through rows that can have the focus; Enter does what the row's link does.
 *
 * @param {() => HTMLElement[]} rowsOf In their order.
 * @param {string} what Of what these are rows, in the plural.
 */
export const onRows = (rowsOf, what) =>
  onSteps(what, (step) => () => {
    const rows = rowsOf();
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  });

/**
 * `j` steps forward, `k` back.
 *
 * @param {string} what Of what, in the plural.
 * @param {(step: number) => () => void} move
 */
export function onSteps(what, move) {
  onKey("j", `the next of the ${what}`, move(1));
  onKey("k", `the previous of the ${what}`, move(-1));
}
