/** A command that can be copied. */

import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";

/** @param {string} text @param {string} what For those who hear the page. */
export function command(text, what) {
  const isCopied = signal(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    isCopied.value = true;
  };
  return h(
    "div.command",
    h("pre", { tabindex: "0", role: "region", "aria-label": what }, h("code", text)),
    h("button", { type: "button", onclick: copy }, () => (isCopied.value ? "Copied" : "Copy")),
  );
}
