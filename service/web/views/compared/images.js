/** The images of a comparison: both scores of each, by which some are chosen, and both captions. */

import { resource } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { change, go, place, query } from "../../core/urls.js";
import { number } from "../../parts/numbers.js";
import { bounds } from "../../parts/bounds.js";
import { imagePlace } from "../../parts/places.js";
import { following } from "../../parts/states.js";
import { windowed } from "../../parts/windowed.js";
import { differing, exchanged } from "../../parts/words.js";
import { extent, finite, median, padded } from "../../plots/scale.js";
import { scatter } from "../../plots/scatter.js";

/** @typedef {import("../../core/api.js").Schemas["Comparison"]} Comparison */
/** @typedef {import("../../core/api.js").Schemas["Moved"]} Moved */
/** @typedef {import("../../core/api.js").Schemas["Score"]} Score */
/** @typedef {import("../../parts/bounds.js").Span} Span */
/** @typedef {import("../../plots/scatter.js").Chosen} Corners From B's scores to A's. */

const MOST = 10_000;
const MOST_WORDS = 10;
const GROUPS = [
  ["", "All"],
  ["a", "Only A good"],
  ["b", "Only B good"],
  ["neither", "Both bad"],
  ["both", "Both good"],
];
/** Each with the number by which images are sorted, the lowest first where a high score is good.
 * @type {[string, string, (row: Row) => number | null][]} */
const ORDERS = [
  ["b_better", "Where B is better first", ({ difference }) => difference],
  ["a_better", "Where A is better first", ({ difference }) => (difference === null ? null : -difference)],
  ["a", "A's worst first", ({ a }) => a],
  ["b", "B's worst first", ({ b }) => b],
];

/** @param {Comparison} run @param {{ value: string }} a @param {{ value: string }} b @param {Map<string, Score>} specs */
export function images(run, a, b, specs) {
  const known = Object.keys(run.scores).filter((name) => specs.get(name)?.family === "postgen");
  const metric = query("metric", known.includes("cider_d") ? "cider_d" : known[0]);
  const group = query("group");
  const search = query("search");
  const order = query("order", ORDERS[0][0]);
  const box = query("brush");
  const found = resource(() =>
    place("/v1/comparisons", run.id, "images", { metric: metric.value, limit: MOST }),
  );
  const rows = computed(
    () => found.answer.value?.items.map((/** @type {Moved} */ each) => rowOf(each, metric.value)) ?? [],
  );
  const bound = computed(() =>
    median(finite(rows.value.flatMap((/** @type {Row} */ row) => [row.a, row.b]))),
  );
  const isLower = () => specs.get(metric.value)?.higher_is_better === false;
  const isGood = (/** @type {number | null} */ score) =>
    score !== null && (isLower() ? score < bound.value : score > bound.value);
  const groupOf = (/** @type {Row} */ row) =>
    isGood(row.a) ? (isGood(row.b) ? "both" : "a") : isGood(row.b) ? "b" : "neither";
  const chosen = computed(() => corners(box.value));
  const extents = computed(() =>
    padded(extent(rows.value.flatMap((/** @type {Row} */ row) => [row.a, row.b]))),
  );
  const sorted = computed(() => inOrder(rows.value, order.value, isLower()));
  const inside = computed(() =>
    sorted.value.filter((/** @type {Row} */ row) => !chosen.value || isWithin(row, chosen.value)),
  );
  const shown = computed(() =>
    inside.value.filter(
      (/** @type {Row} */ row) => (!group.value || groupOf(row) === group.value) && holds(row, search.value),
    ),
  );
  const table = windowed(shown, {
    columns: () => ["Image", "A", "B", "Difference", "A's caption", "B's caption"],
    keyOf: (row) => row.image,
    cells: (row) => [
      h("th", { scope: "row" }, () =>
        h("a", { class: "main", href: imagePlace(a.value, row().image, { with: b.value }) }, row().image),
      ),
      h("td", { class: "number" }, () => number(row().a)),
      h("td", { class: "number" }, () => number(row().b)),
      h("td", { class: "number" }, () => number(row().difference)),
      h("td", { title: () => row().captions[0] }, () => differing(...row().captions)),
      h("td", { title: () => row().captions[1] }, () => differing(row().captions[1], row().captions[0])),
    ],
    name: "List of images",
    what: "images",
  });
  const isNarrowed = () => group.value || search.value || box.value;
  return h(
    "section",
    { "aria-label": "Images" },
    h("h2", "Images by ", () => metric.value),
    following(found, () => [
      h(
        "div",
        { class: "beside" },
        () => plot(rows.value, metric.value, chosen.value, a.value, b.value),
        h(
          "div",
          choices("Group", GROUPS, group, (key) =>
            key ? inside.value.filter((row) => groupOf(row) === key).length : inside.value.length,
          ),
          h(
            "p",
            { class: "quiet" },
            () => `Good: better than ${number(bound.value)}, the median of all scores of A and B.`,
          ),
          choices(
            "Order",
            ORDERS.map(([key, text]) => [key, text]),
            order,
          ),
          h("fieldset", h("legend", "Scores"), fields(extents, chosen)),
          h(
            "label",
            "Search ",
            h("input", {
              type: "search",
              value: search.value,
              maxlength: 200,
              placeholder: "words or an image",
              spellcheck: "false",
              oninput: (/** @type {any} */ { target }) => {
                search.value = target.value;
              },
            }),
          ),
        ),
      ),
      h(
        "p",
        { class: "quiet" },
        () =>
          `${shown.value.length.toLocaleString("en")} of ${rows.value.length.toLocaleString("en")} images `,
        () => found.answer.value?.next && `(the first ${MOST.toLocaleString("en")} are looked at) `,
        () =>
          isNarrowed() &&
          h(
            "button",
            { type: "button", onclick: () => change({ group: null, brush: null, search: null }) },
            "All images",
          ),
      ),
      () => words(shown.value),
      table,
    ]),
  );
}

/** @param {Row[]} rows @param {string} metric @param {ReturnType<typeof corners>} chosen @param {string} a @param {string} b */
function plot(rows, metric, chosen, a, b) {
  const points = rows.flatMap((row) =>
    row.a === null || row.b === null ? [] : [{ x: row.b, y: row.a, name: row.image }],
  );
  return scatter(points, {
    xName: `B ${metric}`,
    yName: `A ${metric}`,
    name: `A against B by ${metric}`,
    what: "images",
    chosen,
    choose,
    open: (image) => go(imagePlace(a, image, { with: b })),
  });
}

/** @param {Corners | null} corners */
const choose = (corners) =>
  change({ brush: corners && corners.map((each) => each.toPrecision(5)).join(",") });

/** The same as the rectangle on the plot, by numbers. @param {{ value: Span }} range @param {{ value: Corners | null }} chosen */
function fields(range, chosen) {
  const sides = /** @type {[string, 0 | 2][]} */ ([
    ["A", 2],
    ["B", 0],
  ]);
  return sides.map(([name, first]) =>
    h(
      "div",
      bounds(
        () => name,
        () => range.value,
        () => /** @type {Span | null} */ (chosen.value && chosen.value.slice(first, first + 2)),
        (span) => {
          const [x0, x1, y0, y1] = chosen.value ?? [...range.value, ...range.value];
          const own = span ?? range.value;
          choose(first ? [x0, x1, ...own] : [...own, y0, y1]);
        },
      ),
    ),
  );
}

/** What A says in these images where B says something else. @param {Row[]} rows */
function words(rows) {
  const found = exchanged(
    rows.map(({ captions }) => captions),
    MOST_WORDS,
  );
  if (!found.length) return null;
  return h(
    "p",
    "Words of A in the place of words of B: ",
    found.map(([a, b, count]) => [
      h("span", { class: "label" }, h("bdi", a), " for ", h("bdi", b), `: ${count}`),
      " ",
    ]),
  );
}

/** @param {Row} row @param {string} text */
const holds = ({ image, captions }, text) =>
  !text || [image, ...captions].some((each) => each.toLowerCase().includes(text.toLowerCase()));

/** Those without a score come last. @param {Row[]} rows @param {string} order @param {boolean} isLower */
function inOrder(rows, order, isLower) {
  const [, , keyOf] = ORDERS.find(([key]) => key === order) ?? ORDERS[0];
  const key = (/** @type {Row} */ row) => {
    const found = keyOf(row);
    return found === null ? Infinity : isLower ? -found : found;
  };
  return [...rows].sort((one, other) => key(one) - key(other) || 0);
}

/** @typedef {{ image: string, captions: [string, string], a: number | null, b: number | null, difference: number | null }} Row */

/** @param {Moved} item @param {string} metric @returns {Row} */
function rowOf({ image, a, b, scores }, metric) {
  return { image, captions: [a, b], ...(scores[metric] ?? { a: null, b: null, difference: null }) };
}

/** @param {string} title @param {string[][]} values @param {{ value: string }} chosen @param {(key: string) => number} [count] */
function choices(title, values, chosen, count) {
  return h(
    "fieldset",
    h("legend", title),
    values.map(([key, text]) =>
      h(
        "label",
        h("input", {
          type: "radio",
          name: title,
          value: key,
          ".checked": () => chosen.value === key,
          onchange: () => {
            chosen.value = key;
          },
        }),
        ` ${text}`,
        () => count && ` (${count(key).toLocaleString("en")})`,
      ),
    ),
  );
}

/** @param {string} text @returns {[number, number, number, number] | null} */
function corners(text) {
  const found = text.split(",").map(Number);
  return text && found.length === 4 && found.every(Number.isFinite)
    ? /** @type {[number, number, number, number]} */ (found)
    : null;
}

/** @param {Row} row @param {[number, number, number, number]} corners */
const isWithin = ({ a, b }, [x0, x1, y0, y1]) =>
  a !== null && b !== null && b >= x0 && b <= x1 && a >= y0 && a <= y1;
