/** Files that are dropped on the page, to be scored. */

import { h } from "../core/dom.js";

/** @param {{ dataset?: string }} [of] @returns {Node} */
export const dropZone = ({ dataset } = {}) =>
  h("div", { class: "drop" }, h("strong", `Drop captions or a checkpoint here to score them${dataset ? ` on ${dataset}` : ""}`));
