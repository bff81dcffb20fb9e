/** A caption beside its references: its invented words marked, the nearest reference with its missed words underlined. */

import { h } from "../core/dom.js";
import { marked } from "../parts/words.js";

/** @param {Caption} item */
export const captionText = ({ caption, invented }) =>
  h(
    "bdi",
    marked(caption, invented, (word) => h("mark.invented", word)),
  );

/** @param {Caption} item */
export function nearest({ nearest, missed }) {
  if (nearest === null) return h("div.nearest", "no reference");
  const text = marked(nearest, missed, (word) => h("u.missed", word));
  return h("div.nearest", { title: nearest.slice(0, 1000) }, "nearest: ", h("bdi", text));
}

/** How many words are invented and missed. @param {Caption} item */
export const wordBadges = ({ invented, missed }) => [
  badge("bad", invented, "invented"),
  " ",
  badge("wait", missed, "missed"),
];

/** @param {string} kind @param {readonly string[]} words @param {string} name */
const badge = (kind, words, name) =>
  words.length > 0 &&
  h("span", { class: ["badge", kind], title: words.join(", ") }, [
    `${words.length} `,
    h("span.off-phone", words.length === 1 ? "word " : "words "),
    name,
  ]);
