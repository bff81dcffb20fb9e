/** A place where nothing is. */

import { h } from "../core/dom.js";
import { find } from "../parts/frame.js";

/** @param {string} pathname */
export const missing = (pathname) => ({
  title: "Page not found",
  content: h(
    "section",
    h("h1", "Page not found"),
    h("p", "This service has no page at ", h("code", pathname), "."),
    h("p", "Go to ", h("a", { href: "/" }, "Home"), ", or find a run, an image, a metric or a split."),
    h("p", h("button", { type: "button", onclick: find }, "Find")),
  ),
});
