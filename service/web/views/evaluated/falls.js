/** Falls: by how much a checkpoint is worse than expected from its training, or from others like it. */

import { h } from "../../core/dom.js";
import { nameOrId } from "../../parts/names.js";
import { comparePlace } from "../../parts/places.js";
import { fallOf, worstFalls } from "../../parts/sentences.js";

/** @param {Evaluation} run @param {string | null} told What the sentence above tells already. */
export function falls({ id, falls }, told) {
  if (!falls.length) return null;
  return h(
    "section",
    { "aria-label": "Falls" },
    worstFalls(falls).map((fall) => {
      const text = `${fallOf(fall)}.`;
      const { beside } = fall;
      return h(
        "p",
        !told?.includes(text) && `${text} `,
        beside &&
          h(
            "a",
            { href: comparePlace(id, beside.evaluation) },
            `Compare with ${nameOrId(beside.labels, beside.evaluation)}`,
          ),
      );
    }),
  );
}
