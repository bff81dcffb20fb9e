/** The images of a comparison: both scores of each, by which some are chosen, and both captions. */

import { resource } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { computed, unread } from "../../core/signals.js";
import { change, go, place, query } from "../../core/urls.js";
import { bounds } from "../../parts/bounds.js";
import { byUsualOrder, titleOf } from "../../parts/metrics.js";
import { count, number } from "../../parts/numbers.js";
import { imagePlace } from "../../parts/places.js";
import { following } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { countExchanges } from "../../parts/words.js";
import { extent, finite, median } from "../../plots/scale.js";
import { scatter } from "../../plots/scatter.js";
import { choice, metricChoice, searchField } from "../choice.js";
import { hasPictures, versioned } from "../pictures.js";
import { imageColumns, imageRow, sideHeads } from "./differences.js";

/** @typedef {import("../../parts/bounds.js").Span} Span */
/** @typedef {import("../../plots/scatter.js").Chosen} Corners From B's scores to A's. */
/** @typedef {import("./differences.js").ImageRow} Row */

const MOST = 10_000;
const MOST_WORDS = 10;
const ROW_HEIGHT = { wide: 52, narrow: 124 };
const PICTURED_HEIGHT = { wide: 104, narrow: 190 };
const PHONE = matchMedia("(max-width: 640px)");
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

/** @param {Schemas["Comparison"]} run @param {import("../compare.js").Both} both */
export function images(run, { a, b, names, specs }) {
  const known = byUsualOrder(Object.keys(run.scores)).filter(
    (name) => specs.value.get(name)?.family === "postgen",
  );
  const metric = query("metric", known.includes("cider_d") ? "cider_d" : known[0]);
  const [group, search, order] = [query("group"), query("search"), query("order", ORDERS[0][0])];
  const box = query("brush");
  const isLower = () => specs.value.get(metric.value)?.higher_is_better === false;
  const sort = computed(() => sortOf(order.value, isLower()));
  const found = resource(() =>
    place("/v1/comparisons", run.id, "images", { metric: metric.value, sort: sort.value, limit: MOST }),
  );
  const kept = resource(() => place("/v1/datasets", versioned(run.dataset)));
  const pictures = () =>
    kept.answer.value && hasPictures(kept.answer.value, run.dataset.split) ? versioned(run.dataset) : null;
  const rows = computed(() => {
    const { items = [], metric = "" } = found.answer.value ?? {};
    return /** @type {Schemas["Moved"][]} */ (items).map((each) => imageRow(each, metric));
  });
  const scores = computed(() => rows.value.flatMap((row) => [row.a, row.b]));
  const bound = computed(() => median(finite(scores.value)));
  const isGood = (/** @type {number | null} */ score) =>
    score !== null && (isLower() ? score < bound.value : score > bound.value);
  const isIn = (/** @type {Row} */ row, /** @type {string} */ key) =>
    !key ||
    (isGood(row.a) === (key === "a" || key === "both") && isGood(row.b) === (key === "b" || key === "both"));
  const chosen = computed(() => corners(box.value));
  const inside = computed(() => rows.value.filter((row) => isWithin(row, chosen.value)));
  const part = (/** @type {string} */ key) => inside.value.filter((row) => isIn(row, key));
  const shown = computed(() => part(group.value).filter((row) => holds(row, search.value)));
  const isNarrowed = () => Boolean(group.value || search.value || box.value);
  const byMetric = {
    get value() {
      return metric.value;
    },
    set value(chosen) {
      change({ metric: chosen, brush: null });
    },
  };
  const placeOf = (/** @type {Row} */ row) =>
    imagePlace(a, row.image, {
      ...{ with: b, list: "comparison", comparison: run.id, metric: metric.value, sort: sort.value },
      at: String(rows.value.indexOf(row) + 1),
    });
  return h(
    "section",
    { "aria-label": "Images" },
    h("h2", "Images by ", () => titleOf(metric.value)),
    metricChoice("Metric", () => known, byMetric),
    following(found, () => [
      words(run.id, metric, () => (isNarrowed() ? shown.value : null)),
      h(
        "div.beside",
        () =>
          plot(rows.value, metric.value, names.value, chosen.value, (image) =>
            go(imagePlace(a, image, { with: b })),
          ),
        h(
          "details.filters",
          { open: !PHONE.matches },
          h("summary.on-phone", "Filters and order"),
          choice(
            "Group",
            () => GROUPS.map(([key, text]) => [key, [text, () => ` (${count(part(key).length)})`]]),
            group,
          ),
          h(
            "p.quiet",
            () => `Good: better than ${number(bound.value)}, the median of all scores of A and B.`,
          ),
          choice("Order", () => ORDERS.map(([key, text]) => [key, text]), order),
          fields(() => extent(scores.value), chosen),
          h("div.bar", searchField("Search", "words or an image", search)),
        ),
      ),
      h(
        "p.quiet",
        { role: "status" },
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
      () =>
        (kept.answer.value || kept.refused.value) &&
        unread(() =>
          table(shown, {
            name: "List of images",
            keyOf: ({ image }) => image,
            columns: imageColumns(
              [...sideHeads(names.value), ...["A − B", "A's caption", "B's caption"]],
              () => metric.value,
              placeOf,
              ["A", "B"],
              pictures(),
            ),
            window: { what: "images", rowHeight: pictures() ? PICTURED_HEIGHT : ROW_HEIGHT },
          }),
        ),
    ]),
  );
}

/** @param {string} order @param {boolean} isLower */
function sortOf(order, isLower) {
  const [, , sort] = ORDERS.find(([key]) => key === order) ?? ORDERS[0];
  if (!isLower) return sort;
  return sort.startsWith("-") ? sort.slice(1) : `-${sort}`;
}

/** @param {Row[]} rows @param {string} metric @param {{ a: string, b: string }} names @param {Corners | null} chosen @param {(image: string) => void} open */
function plot(rows, metric, names, chosen, open) {
  const points = rows.flatMap(({ a, b, image }) =>
    a === null || b === null ? [] : [{ x: b, y: a, name: image }],
  );
  const title = titleOf(metric);
  const [xName, yName, name] = [
    `${names.b} (B), ${title}`,
    `${names.a} (A), ${title}`,
    `A against B by ${title}`,
  ];
  return scatter(points, { xName, yName, name, what: "images", chosen, choose, open });
}

/** @param {Corners | null} corners */
const choose = (corners) =>
  change({ brush: corners && corners.map((each) => each.toPrecision(5)).join(",") });

/** The same as the rectangle on the plot, by numbers. @param {() => Span} range @param {{ value: Corners | null }} chosen */
function fields(range, chosen) {
  const all = () => chosen.value ?? [...range(), ...range()];
  const field = (/** @type {string} */ name, /** @type {number} */ at) =>
    h(
      "p",
      bounds(
        () => name,
        range,
        () => chosen.value && /** @type {Span} */ (chosen.value.slice(at, at + 2)),
        (span) => choose(/** @type {Corners} */ (all().toSpliced(at, 2, ...(span ?? range())))),
      ),
    );
  return [field("A", 2), field("B", 0)];
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
    const chosen = part()?.filter(({ difference }) => difference !== null);
    const pairs = chosen
      ? countExchanges(
          chosen.map(({ exchanges }) => exchanges),
          MOST_WORDS,
        ).map(([a, b, images]) => ({ a, b, images }))
      : /** @type {Schemas["WordExchange"][]} */ (found.answer.value?.items ?? []);
    return h(
      "div.exchanged",
      pairs.length > 0 && [
        h("h3", "A's word in the place of B's word"),
        h(
          "p",
          byImages(pairs).map(({ a, b, images }) => [
            h("span.label", h("bdi", a), " for ", h("bdi", b), ` ${count(images)}`),
            " ",
          ]),
        ),
      ],
    );
  };
}

/** The most frequent ones first. @template {{ images: number }} Exchange @param {Exchange[]} items */
export const byImages = (items) => items.toSorted((one, other) => other.images - one.images);

/** @param {Row} row @param {string} text */
const holds = ({ image, captions }, text) =>
  [image, ...captions].some((each) => each.toLowerCase().includes(text.toLowerCase()));

/** @param {string} text @returns {Corners | null} */
function corners(text) {
  const found = text.split(",").map(Number);
  return text && found.length === 4 && found.every(Number.isFinite) ? /** @type {Corners} */ (found) : null;
}

/** @param {Row} row @param {Corners | null} corners Null: all are. */
function isWithin({ a, b }, corners) {
  if (!corners) return true;
  const [x0, x1, y0, y1] = corners;
  return a !== null && b !== null && b >= x0 && b <= x1 && a >= y0 && a <= y1;
}
