/**
 * A reference caption as a strip of its tokens: the height by its improbability, colour and pattern by the rank,
 * a bracket over the tokens that `prefix0` counts, a tick at each that `filter0` counts.
 */

import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { count, precise } from "../parts/numbers.js";
import { onArrows } from "./arrows.js";

/** @typedef {{ word: string | null, logp: number | null, rank: number, top: string | null, top_logp: number | null }} Token */

/** Ranks from which a token is drawn in another way. @type {[number, string][]} */
const RANKS = [
  [0, "the model's first choice"],
  [1, "its 2nd to 5th"],
  [5, "6th to 20th"],
  [20, "21st to 100th"],
  [100, "a later one"],
];
const TALLEST = 8; // nats, from which on all are as tall

/** @param {number} rank */
const kind = (rank) => RANKS.findLastIndex(([from]) => rank >= from);

/**
 * @param {Token[]} tokens
 * @param {string} name For those who hear the page.
 */
export function strip(tokens, name) {
  const prefix = tokens.findIndex(({ rank }) => rank !== 0);
  const many = prefix < 0 ? tokens.length : prefix;
  const hits = tokens.filter(({ rank }) => rank === 0).length;
  const shown = signal(/** @type {Token | null} */ (null));
  const marks = tokens.map((token, at) => mark(token, at, many, shown));
  const told = `${name}: arrow keys go through its words`;
  const ending = h("span.ending", marks.slice(-2)); // the end stays beside the last word
  const group = h("div.strip", { role: "group", "aria-label": told }, marks.slice(0, -2), ending);
  onArrows(group, () => marks, { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity });
  return h(
    "div",
    group,
    h("p.quiet.spoken", () =>
      shown.value
        ? describe(shown.value)
        : `The model itself would have begun with ${many || "none"} of the ${count(tokens.length)} words of this reference; ${count(hits)} of them ${hits === 1 ? "is" : "are"} the model's first choice.`,
    ),
  );
}

/** @param {Token} token @param {number} at @param {number} many @param {{ value: Token | null }} shown */
function mark(token, at, many, shown) {
  const cost = token.logp === null ? TALLEST : Math.min(TALLEST, -token.logp);
  const show = () => (shown.value = token);
  const hide = () => (shown.value = null);
  return h(
    "span",
    {
      class: [
        "token",
        `rank-${kind(token.rank)}`,
        at < many && "prefixed",
        at === 0 && many > 0 && "opens",
        at === many - 1 && "closes",
        token.rank === 0 && "hit",
      ],
      tabindex: at === 0 ? "0" : "-1",
      role: "img",
      "aria-label": describe(token),
      onfocus: show,
      onmouseenter: show,
      onblur: hide,
      onmouseleave: hide,
    },
    h("span.bar", { style: { "--cost": (cost / TALLEST).toFixed(3) } }),
    h("bdi", token.word ?? "·"),
  );
}

/** Whether the words of a strip are all of its text. @param {Token[]} tokens The last one is the end. @param {string} text */
export const saysAll = (tokens, text) =>
  lettersOf(
    tokens
      .slice(0, -1)
      .map(({ word }) => word)
      .join(""),
  ) === lettersOf(text);

/** @param {string} text */
const lettersOf = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

/** @param {Token} token */
function describe({ word, logp, rank, top, top_logp }) {
  const own =
    top === null
      ? ""
      : rank === 0
        ? "; the model's own word too"
        : `; the model's own word: ${top} (p ${probability(top_logp)})`;
  return `${word ?? "a word that is not known"}: p ${probability(logp)}, choice ${count(rank + 1)} of the model${own}`;
}

/** @param {number | null} logp */
const probability = (logp) => precise(logp === null ? 0 : Math.exp(logp));

/** What the colours and patterns mean. */
export function legend() {
  return h(
    "ul.legend",
    { "aria-label": "What the strips show" },
    RANKS.map(([, text], at) =>
      h(
        "li",
        h("span", { class: ["token", "sample", `rank-${at}`] }, h("span.bar", { style: { "--cost": "1" } })),
        ` ${text}`,
      ),
    ),
    h(
      "li",
      "Tall bar: the model gave the word a low probability. Bracket: the words that the model itself would have begun with (prefix0 is their share). Green line: a first choice of the model (filter0 counts them). The end counts as a word.",
    ),
  );
}
