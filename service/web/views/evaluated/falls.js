/** Falls: by how much a checkpoint is worse than expected from its training, or from others like it. */

import { h } from "../../core/dom.js";
import { comparePlace, runPlace } from "../../parts/places.js";
import { fallOf, worstFalls } from "../../parts/sentences.js";

/** @param {Evaluation} run */
export function falls({ id, falls, labels, dataset: { name, split } }) {
  if (!falls.length) return null;
  return h(
    "section.notice.bad",
    { "aria-label": "Falls" },
    h("p", h("strong", "Worse than expected from its training")),
    h(
      "ul",
      worstFalls(falls).map((fall) =>
        h(
          "li",
          `${fallOf(fall)}. `,
          fall.beside && h("a", { href: comparePlace(id, fall.beside.evaluation) }, "Compare"),
        ),
      ),
    ),
    labels.run && h("a", { href: runPlace(name, split, labels.run) }, `Training ${labels.run}`),
  );
}
