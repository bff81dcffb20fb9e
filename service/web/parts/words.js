/** Words of captions that are marked, and those that one side says in the place of others. */

import { h } from "../core/dom.js";

const LONGEST = 40; // words of a caption that are held against the other's

/** @param {string} caption */
const wordsOf = (caption) => caption.toLowerCase().match(/[\p{L}\p{N}'’-]+/gu) ?? [];

/**
 * A text in which each of these words is marked.
 *
 * @param {string} text @param {readonly string[]} words In lower case. @param {(word: string) => Node} [mark]
 */
export function marked(text, words, mark = (word) => h("mark", word)) {
  const known = new Set(words);
  const pieces = text.split(/([\p{L}\p{N}'’-]+)/u);
  return pieces.map((piece, at) => (at % 2 && known.has(piece.toLowerCase()) ? mark(piece) : piece));
}

/** The caption, with the words marked that the other does not have. @param {string} caption @param {string} other */
export function differing(caption, other) {
  const known = new Set(wordsOf(other));
  return marked(
    caption,
    wordsOf(caption).filter((word) => !known.has(word)),
  );
}

/**
 * What one side says in the place of what the other says, the most frequent first: a word of the
 * first, the word of the second, in how many pairs.
 *
 * @param {[string, string][]} pairs Captions of one image each.
 * @param {number} most
 * @returns {[string, string, number][]}
 */
export function exchanged(pairs, most) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const [first, second] of pairs) {
    const found = replaced(wordsOf(first).slice(0, LONGEST), wordsOf(second).slice(0, LONGEST));
    for (const pair of new Set(found)) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  const sorted = [...counts].filter(([, count]) => count > 1).sort(([, one], [, other]) => other - one);
  return sorted.slice(0, most).map(([pair, count]) => [...split(pair), count]);
}

/** @param {string} pair @returns {[string, string]} */
const split = (pair) => /** @type {[string, string]} */ (pair.split(" "));

/** Words that stand between the same neighbours, as "first second". @param {string[]} a @param {string[]} b */
function replaced(a, b) {
  const found = [];
  let [i, j] = [0, 0];
  for (const [nextA, nextB] of [...common(a, b), [a.length, b.length]]) {
    if (nextA - i === nextB - j)
      for (let at = 0; at < nextA - i; at += 1) found.push(`${a[i + at]} ${b[j + at]}`);
    [i, j] = [nextA + 1, nextB + 1];
  }
  return found;
}

/** The places of a longest common subsequence. @param {string[]} a @param {string[]} b @returns {[number, number][]} */
function common(a, b) {
  const longest = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i][j] =
        a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  /** @type {[number, number][]} */
  const places = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) places.push([i++, j++]);
    else if (longest[i + 1][j] >= longest[i][j + 1]) i += 1;
    else j += 1;
  }
  return places;
}
