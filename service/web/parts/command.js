/** Commands, and other texts, that can be copied. */

import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";

/** @param {string} text @param {string} what For those who hear the page. */
export const command = (text, what) =>
  h(
    "div.command",
    h("pre", { tabindex: "0", role: "region", "aria-label": what }, h("code", text)),
    copyButton("Copy", () => text),
  );

/** A button that copies the address of the view. */
export const copyLink = () => copyButton("Copy link", () => location.href);

/** A button that copies a text, and says that it has. @param {string} name @param {() => string} textOf */
export function copyButton(name, textOf) {
  const isCopied = signal(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(textOf());
    isCopied.value = true;
  };
  return h("button", { type: "button", onclick: copy }, () => (isCopied.value ? "Copied" : name));
}
