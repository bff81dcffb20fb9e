/** Words in which two captions differ, and those that one side says more often. */

import { h } from "../core/dom.js";

/** @param {string} caption */
const wordsOf = (caption) => caption.toLowerCase().match(/[\p{L}\p{N}'’-]+/gu) ?? [];

/** The caption, with the words marked that the other does not have. @param {string} caption @param {string} other */
export function marked(caption, other) {
  const known = new Set(wordsOf(other));
  const pieces = caption.split(/([\p{L}\p{N}'’-]+)/u);
  return pieces.map((piece, at) =>
    at % 2 && !known.has(piece.toLowerCase()) ? h("mark", {}, piece) : piece,
  );
}

/**
 * The words that more captions of one side have than of the other, those with the largest difference
 * first: the word, in how many of the first side, in how many of the second.
 *
 * @param {[string, string][]} pairs Of one image each.
 * @param {number} most
 * @returns {[string, number, number][]}
 */
export function exchanged(pairs, most) {
  /** @type {Map<string, [number, number]>} */
  const counts = new Map();
  for (const pair of pairs) {
    pair.forEach((caption, side) => {
      for (const word of new Set(wordsOf(caption))) {
        const count = counts.get(word) ?? [0, 0];
        count[side] += 1;
        counts.set(word, count);
      }
    });
  }
  const differing = [...counts].filter(([, [a, b]]) => a !== b);
  differing.sort(([, one], [, other]) => Math.abs(other[0] - other[1]) - Math.abs(one[0] - one[1]));
  return differing.slice(0, most).map(([word, [a, b]]) => [word, a, b]);
}
