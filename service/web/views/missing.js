/** A place where nothing is. */

import { h } from "../core/dom.js";

/** @param {string} pathname */
export const missing = (pathname) => ({
  title: "Nothing here",
  content: h(
    "section",
    h("h1", "Nothing is at this place"),
    h("p", h("code", pathname)),
    h("p", h("a", { href: "/" }, "Home"), ", or find a run, an image, a metric or a split with Ctrl K."),
  ),
});
