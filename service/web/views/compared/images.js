/** The images of a comparison: both scores of each, by which some are chosen, and both captions. */

import { resource } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { change, go, place, query } from "../../core/urls.js";
import { bounds } from "../../parts/bounds.js";
import { chip } from "../../parts/chips.js";
import { titleOf } from "../../parts/metrics.js";
import { count, number, signed } from "../../parts/numbers.js";
import { imagePlace } from "../../parts/places.js";
import { following } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { differing, exchanged } from "../../parts/words.js";
import { extent, finite, median, padded } from "../../plots/scale.js";
import { scatter } from "../../plots/scatter.js";

/** @typedef {import("../../core/api.js").Schemas["Comparison"]} Comparison */
/** @typedef {import("../../core/api.js").Schemas["Moved"]} Moved */
/** @typedef {import("../../parts/bounds.js").Span} Span */
/** @typedef {import("../../plots/scatter.js").Chosen} Corners From B's scores to A's. */
/** @typedef {{ image: string, captions: [string, string], a: number | null, b: number | null, difference: number | null }} Row */

const MOST = 10_000;
const MOST_WORDS = 10;
const GROUPS = [
  ["", "All"],
  ["a", "Only A good"],
  ["b", "Only B good"],
  ["neither", "Both bad"],
  ["both", "Both good"],
];
/** Each with the number by which images are sorted, the lowest first where a high score is good, as `sort` of the interface has it.
 * @type {[string, string, string][]} */
const ORDERS = [
  ["b_better", "Where B is better first", "difference"],
  ["a_better", "Where A is better first", "-difference"],
  ["a", "A's worst first", "a"],
  ["b", "B's worst first", "b"],
];

/** @param {Comparison} run @param {import("../compare.js").Both} both */
export function images(run, { a, b, names, specs }) {
  const known = Object.keys(run.scores).filter((name) => specs.value.get(name)?.family === "postgen");
  const metric = query("metric", known.includes("cider_d") ? "cider_d" : known[0]);
  const group = query("group");
  const search = query("search");
  const order = query("order", ORDERS[0][0]);
  const box = query("brush");
  const isLower = () => specs.value.get(metric.value)?.higher_is_better === false;
  const sort = computed(() => sortOf(order.value, isLower()));
  const found = resource(() =>
    place("/v1/comparisons", run.id, "images", { metric: metric.value, sort: sort.value, limit: MOST }),
  );
  const rows = computed(
    () =>
      /** @type {Row[]} */ (
        (found.answer.value?.items ?? []).map((/** @type {Moved} */ each) =>
          rowOf(each, found.answer.value.metric),
        )
      ),
  );
  const bound = computed(() => median(finite(rows.value.flatMap((row) => [row.a, row.b]))));
  const isGood = (/** @type {number | null} */ score) =>
    score !== null && (isLower() ? score < bound.value : score > bound.value);
  const groupOf = (/** @type {Row} */ row) =>
    isGood(row.a) ? (isGood(row.b) ? "both" : "a") : isGood(row.b) ? "b" : "neither";
  const chosen = computed(() => corners(box.value));
  const inside = computed(() => rows.value.filter((row) => !chosen.value || isWithin(row, chosen.value)));
  const shown = computed(() =>
    inside.value.filter((row) => (!group.value || groupOf(row) === group.value) && holds(row, search.value)),
  );
  const many = (/** @type {string} */ key) =>
    key ? inside.value.filter((row) => groupOf(row) === key).length : inside.value.length;
  const isNarrowed = () => Boolean(group.value || search.value || box.value);
  const choices = (
    /** @type {string[][]} */ values,
    /** @type {{ value: string }} */ signal,
    counted = false,
  ) =>
    values.map(([key, text]) =>
      chip(
        [text, () => counted && ` (${count(many(key))})`],
        () => signal.value === key,
        () => (signal.value = key),
      ),
    );
  return h(
    "section",
    { "aria-label": "Images" },
    h("h2", "Images by ", () => titleOf(metric.value)),
    h(
      "div",
      { class: "bar", role: "group", "aria-label": "Metric" },
      known.map((each) =>
        chip(
          titleOf(each),
          () => metric.value === each,
          () => change({ metric: each, brush: null }),
        ),
      ),
    ),
    following(found, () => [
      h(
        "div",
        { class: "beside" },
        () => plot(rows.value, metric.value, chosen.value, (image) => go(imagePlace(a, image, { with: b }))),
        h(
          "div",
          h("div", { class: "bar", role: "group", "aria-label": "Group" }, choices(GROUPS, group, true)),
          h(
            "p",
            { class: "quiet" },
            () => `Good: better than ${number(bound.value)}, the median of all scores of A and B.`,
          ),
          h("div", { class: "bar", role: "group", "aria-label": "Order" }, choices(ORDERS, order)),
          fields(() => padded(extent(rows.value.flatMap((row) => [row.a, row.b]))), chosen),
          h(
            "div",
            { class: "bar" },
            h("input", {
              type: "search",
              "aria-label": "Search",
              value: search.value,
              maxlength: 200,
              placeholder: "words or an image",
              spellcheck: "false",
              oninput: (/** @type {any} */ { target }) => (search.value = target.value),
            }),
          ),
          words(run.id, metric, () => (isNarrowed() ? shown.value : null)),
        ),
      ),
      h(
        "p",
        { class: "quiet", role: "status" },
        () => `${count(shown.value.length)} of ${count(rows.value.length)} images `,
        () => found.answer.value?.next && `(the first ${count(MOST)} are looked at) `,
        () =>
          isNarrowed() &&
          h(
            "button",
            { type: "button", onclick: () => change({ group: null, brush: null, search: null }) },
            "All images",
          ),
      ),
      table(shown, {
        name: "List of images",
        keyOf: ({ image }) => image,
        columns: columnsOf(names.value, metric, (row) =>
          imagePlace(a, row.image, {
            with: b,
            list: "comparison",
            comparison: run.id,
            metric: metric.value,
            sort: sort.value,
            at: String(rows.value.indexOf(row) + 1),
          }),
        ),
        window: { what: "images" },
      }),
    ]),
  );
}

/** @param {{ a: string, b: string }} names @param {{ value: string }} metric @param {(row: Row) => string} placeOf @returns {import("../../parts/table.js").Column<Row>[]} */
const columnsOf = (names, metric, placeOf) => [
  {
    head: "Image",
    kind: "name",
    cell: (row) => h("a", { class: "main", href: placeOf(row) }, row.image),
  },
  { head: h("span", { title: names.a }, "A"), kind: "number", cell: ({ a }) => number(a, metric.value) },
  { head: h("span", { title: names.b }, "B"), kind: "number", cell: ({ b }) => number(b, metric.value) },
  {
    head: "A − B",
    kind: "number",
    phone: "value",
    cell: ({ difference }) => h("strong", signed(difference, metric.value)),
  },
  captionColumn("A's caption", ({ captions }) => captions),
  captionColumn("B's caption", ({ captions: [a, b] }) => [b, a]),
];

/** @param {string} head @param {(row: Row) => [string, string]} captionsOf This side's, then the other's. @returns {import("../../parts/table.js").Column<Row>} */
const captionColumn = (head, captionsOf) => ({
  head,
  kind: "wide",
  phone: "below",
  cell: (row) => h("bdi", { title: captionsOf(row)[0] }, differing(...captionsOf(row))),
});

/** @param {string} order @param {boolean} isLower */
function sortOf(order, isLower) {
  const [, , sort] = ORDERS.find(([key]) => key === order) ?? ORDERS[0];
  if (!isLower) return sort;
  return sort.startsWith("-") ? sort.slice(1) : `-${sort}`;
}

/** @param {Row[]} rows @param {string} metric @param {Corners | null} chosen @param {(image: string) => void} open */
function plot(rows, metric, chosen, open) {
  const points = rows.flatMap((row) =>
    row.a === null || row.b === null ? [] : [{ x: row.b, y: row.a, name: row.image }],
  );
  const title = titleOf(metric);
  const [xName, yName, name] = [`B ${title}`, `A ${title}`, `A against B by ${title}`];
  return scatter(points, { xName, yName, name, what: "images", chosen, choose, open });
}

/** @param {Corners | null} corners */
const choose = (corners) =>
  change({ brush: corners && corners.map((each) => each.toPrecision(5)).join(",") });

/** The same as the rectangle on the plot, by numbers. @param {() => Span} range @param {{ value: Corners | null }} chosen */
function fields(range, chosen) {
  const sides = /** @type {[string, 0 | 2][]} */ ([
    ["A", 2],
    ["B", 0],
  ]);
  return sides.map(([name, first]) =>
    h(
      "p",
      bounds(
        () => name,
        range,
        () => /** @type {Span | null} */ (chosen.value && chosen.value.slice(first, first + 2)),
        (span) => {
          const [x0, x1, y0, y1] = chosen.value ?? [...range(), ...range()];
          const own = span ?? range();
          choose(first ? [x0, x1, ...own] : [...own, y0, y1]);
        },
      ),
    ),
  );
}

/**
 * What A says where B says something else: of all images the interface tells it, of a part the page counts.
 *
 * @param {string} id @param {{ value: string }} metric @param {() => Row[] | null} part
 */
function words(id, metric, part) {
  const found = resource(() =>
    place("/v1/comparisons", id, "words", { metric: metric.value, limit: MOST_WORDS }),
  );
  return () => {
    const rows = part();
    const pairs = rows
      ? exchanged(
          rows.map(({ captions }) => captions),
          MOST_WORDS,
        )
      : (found.answer.value?.items ?? []).map((/** @type {any} */ each) => [each.a, each.b, each.images]);
    return (
      pairs.length > 0 && [
        h("h3", "A says, where B says"),
        h(
          "p",
          pairs.map((/** @type {[string, string, number]} */ [a, b, images]) => [
            h("span", { class: "label" }, h("bdi", a), " for ", h("bdi", b), ` ${count(images)}`),
            " ",
          ]),
        ),
      ]
    );
  };
}

/** @param {Row} row @param {string} text */
const holds = ({ image, captions }, text) =>
  !text || [image, ...captions].some((each) => each.toLowerCase().includes(text.toLowerCase()));

/** @param {Moved} item @param {string} metric @returns {Row} */
function rowOf({ image, a, b, scores }, metric) {
  return { image, captions: [a, b], ...(scores[metric] ?? { a: null, b: null, difference: null }) };
}

/** @param {string} text @returns {Corners | null} */
function corners(text) {
  const found = text.split(",").map(Number);
  return text && found.length === 4 && found.every(Number.isFinite) ? /** @type {Corners} */ (found) : null;
}

/** @param {Row} row @param {Corners} corners */
const isWithin = ({ a, b }, [x0, x1, y0, y1]) =>
  a !== null && b !== null && b >= x0 && b <= x1 && a >= y0 && a <= y1;
