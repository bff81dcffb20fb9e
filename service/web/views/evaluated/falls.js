/** Falls: checkpoints that are worse than their training, or others like it, let expect. */

import { h } from "../../core/dom.js";
import { comparePlace, runPlace } from "../../parts/places.js";
import { fallOf, worstFalls } from "../../parts/sentences.js";

/** @param {Evaluation} run */
export function falls({ id, falls, labels, dataset: { name, split } }) {
  if (!falls.length) return null;
  return h(
    "section.notice.bad",
    { "aria-label": "Falls" },
    h("p", h("strong", "Worse than its training lets expect")),
    h(
      "ul",
      worstFalls(falls).map((fall) =>
        h(
          "li",
          `${fallOf(fall)}. `,
          fall.beside && h("a", { href: comparePlace(id, fall.beside.evaluation) }, "Compare the two"),
        ),
      ),
    ),
    labels.run && h("a", { href: runPlace(name, split, labels.run) }, `Training ${labels.run}`),
  );
}
