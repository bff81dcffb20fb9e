/** Words that a popover explains. */

import { h, replace } from "../core/dom.js";

/** @param {string} name @param {string} title @param {(popover: HTMLElement) => void} fill Called when it is opened first. */
export function explained(name, title, fill) {
  const popover = h("div", { popover: "auto", role: "dialog", "aria-label": name });
  popover.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== "open") return;
    putNear(popover, button);
    if (!popover.hasChildNodes()) fill(popover);
  });
  const button = h(
    "button",
    { type: "button", class: "metric", title, ".popoverTargetElement": popover },
    name,
  );
  return [button, popover];
}

/** @param {string} name @param {string} text */
export const term = (name, text) =>
  explained(name, "What it means", (popover) => replace(popover, h("p", h("strong", name)), h("p", text)));

/** @param {HTMLElement} popover @param {HTMLElement} button */
function putNear(popover, button) {
  const { left, bottom } = button.getBoundingClientRect();
  const width = Math.min(416, 0.92 * innerWidth);
  popover.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  popover.style.top = `${Math.min(bottom + 6, innerHeight - 160)}px`;
}
