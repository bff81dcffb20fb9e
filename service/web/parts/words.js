/** Words of captions that are marked, and those that one side says in the place of others. */

import { h } from "../core/dom.js";

/** @param {string} caption */
const wordsOf = (caption) => caption.toLowerCase().match(/[\p{L}\p{N}'’-]+/gu) ?? [];

/**
 * A text in which each of these words is marked.
 *
 * @param {string} text @param {readonly string[]} words In lower case. @param {(word: string) => Node} mark
 */
export function marked(text, words, mark) {
  const known = new Set(words);
  const pieces = text.split(/([\p{L}\p{N}'’-]+)/u);
  return pieces.map((piece, at) => (at % 2 && known.has(piece.toLowerCase()) ? mark(piece) : piece));
}

/** The caption, with the words marked that the other does not have. @param {string} caption @param {string} other */
export function differing(caption, other) {
  const known = new Set(wordsOf(other));
  const own = wordsOf(caption).filter((word) => !known.has(word));
  return marked(caption, own, (word) => h("mark.differs", word));
}

/**
 * What one side says in the place of what the other says, in more images than the reverse, the largest excess
 * first, as the interface counts it: a word of the first, the word of the second, in how many images.
 *
 * @param {readonly (readonly [string, string][])[]} images The pairs of words of each image.
 * @param {number} most
 * @returns {[string, string, number][]}
 */
export function countExchanges(images, most) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const many = (/** @type {string} */ a, /** @type {string} */ b) => counts.get(`${a} ${b}`) ?? 0;
  for (const [a, b] of images.flat()) counts.set(`${a} ${b}`, many(a, b) + 1);
  const found = [...counts].map(([pair, images]) => {
    const [a, b] = pair.split(" ");
    return { a, b, images, excess: images - many(b, a) };
  });
  return found
    .filter(({ images, excess }) => images > 1 && excess > 0)
    .sort((one, other) => other.excess - one.excess || other.images - one.images)
    .slice(0, most)
    .map(({ a, b, images }) => [a, b, images]);
}
