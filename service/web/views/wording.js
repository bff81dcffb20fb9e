/** A caption beside its references: its invented words marked, the nearest reference with its missed words underlined. */

import { h } from "../core/dom.js";
import { marked } from "../parts/words.js";

/** @typedef {import("../core/api.js").Schemas["Caption"]} Caption */

/** @param {Caption} item */
export const captionText = ({ caption, invented }) =>
  h(
    "bdi",
    marked(caption, invented, (word) => h("mark", { class: "invented" }, word)),
  );

/** @param {Caption} item */
export const nearest = ({ nearest, missed }) =>
  h(
    "div",
    { class: "nearest", title: nearest?.slice(0, 1000) },
    nearest === null
      ? "no reference"
      : [
          "nearest: ",
          h(
            "bdi",
            marked(nearest, missed, (word) => h("u", { class: "missed" }, word)),
          ),
        ],
  );

/** How many words are invented and missed. @param {Caption} item */
export const wordBadges = ({ invented, missed }) => [
  badge("bad", invented, "invented"),
  " ",
  badge("wait", missed, "missed"),
];

/** @param {string} kind @param {readonly string[]} words @param {string} name */
const badge = (kind, words, name) =>
  words.length > 0 &&
  h("span", { class: ["badge", kind], title: words.join(", ") }, `${words.length} ${name}`);
