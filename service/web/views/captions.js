/** The captions of one evaluation as cards, the worst first, by any metric. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChangeOf } from "../core/live.js";
import { computed, signal } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { bounds } from "../parts/bounds.js";
import { adder, chip, filterChip } from "../parts/chips.js";
import { csvChip } from "./downloads.js";
import { select, viewHead } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { nameOrId } from "../parts/names.js";
import { count, number } from "../parts/numbers.js";
import { evaluationPlace, evaluationTabs, imagePlace, splitCrumbs } from "../parts/places.js";
import { captionsSentence } from "../parts/sentences.js";
import { following } from "../parts/states.js";
import { table } from "../parts/table.js";
import { histogram } from "../plots/histogram.js";
import { captionsUrl, orderName } from "./neighbours.js";
import { hasPictures, thumbnail } from "./pictures.js";
import { captionText, nearest, wordBadges } from "./wording.js";

/** @typedef {import("../core/api.js").Schemas} Schemas */
/** @typedef {Schemas["Evaluation"]} Evaluation */
/** @typedef {Schemas["Caption"]} Caption */
/** @typedef {Schemas["CaptionPage"]} CaptionPage */
/** @typedef {Schemas["WordCount"]} WordCount */
/** @typedef {ReturnType<typeof pages>} Pages */
/** @typedef {ReturnType<typeof captionList>} CaptionList */

const PAGE = 200;
const ROW_HEIGHT = { wide: 116, narrow: 142 };
const KINDS = /** @type {const} */ (["invented", "missed"]);

/** @param {string} id */
export function captions(id) {
  const run = resource(() => place("/v1/evaluations", id));
  const first = resource(() => place("/v1/evaluations", id, "captions", { limit: 1 })); // tells by which metrics captions have scores
  const dataset = resource(() => {
    const found = /** @type {Evaluation | null} */ (run.answer.value)?.dataset;
    return found ? place("/v1/datasets", `${found.name}@${found.version}`) : null;
  });
  const list = captionList(id, run, first);
  onChangeOf(
    () => id,
    () => {
      run.refresh();
      first.refresh();
    },
  );
  const name = () => (run.answer.value || run.refused.value ? nameOrId(run.answer.value?.labels, id) : "…");
  return {
    title: "Captions",
    crumbs: () => [...crumbsOf(run.answer.value), ["captions"]],
    content: h(
      "div",
      viewHead({
        name,
        sentence: () => captionsSentence(first.answer.value),
        tabs: evaluationTabs(id),
      }),
      following(run, () =>
        following(first, () =>
          following(dataset, () => [
            bar(id, list, first.answer.value.wording),
            following(list.found, () => [
              () => list.isSpanShown.value && span(list),
              cards(id, run.answer.value, dataset.answer.value, list),
            ]),
          ]),
        ),
      ),
    ),
  };
}

/** @param {Evaluation | null} run @returns {import("../parts/frame.js").Crumb[]} */
const crumbsOf = (run) =>
  run ? [...splitCrumbs(run.dataset), [nameOrId(run.labels, run.id), evaluationPlace(run.id)]] : [];

/** What is listed, as the address says it. @param {string} id @param {import("../parts/states.js").Resource} run @param {import("../parts/states.js").Resource} first */
function captionList(id, run, first) {
  const asked = Object.fromEntries(
    ["sort", "search", "from", "to", ...KINDS].map((name) => [name, query(name)]),
  );
  const metrics = computed(() => Object.keys(first.answer.value?.items[0]?.scores ?? {}));
  const higher = (/** @type {string} */ name) => run.answer.value?.scores[name]?.higher_is_better;
  const worst = (/** @type {string} */ name) => (higher(name) === false ? `-${name}` : name);
  const usual = () => (metrics.value.includes("cider_d") ? "cider_d" : (metrics.value[0] ?? ""));
  const sort = computed(() => asked.sort.value || (usual() && worst(usual())));
  const metric = computed(() => sort.value.replace(/^-/, ""));
  const state = computed(() => ({
    ...Object.fromEntries(Object.entries(asked).map(([name, { value }]) => [name, value])),
    sort: sort.value,
  }));
  const chosen = computed(() =>
    asked.from.value && asked.to.value
      ? /** @type {[number, number]} */ ([Number(asked.from.value), Number(asked.to.value)])
      : null,
  );
  const found = pages(() =>
    first.answer.value && run.answer.value ? captionsUrl(id, state.value, { limit: PAGE }) : null,
  );
  return { asked, metrics, higher, worst, sort, metric, state, chosen, found, isSpanShown: signal(false) };
}

/** @param {[number, number] | null} ends */
const choose = (ends) => change({ from: ends && String(ends[0]), to: ends && String(ends[1]) });

/** @param {string} id @param {CaptionList} list @param {CaptionPage["wording"]} wording */
function bar(id, list, wording) {
  const { asked, metrics, higher, worst, sort, metric, state, chosen, found, isSpanShown } = list;
  const field = h("input", {
    type: "search",
    value: asked.search.value,
    maxlength: 200,
    placeholder: "words or an image",
    "aria-label": "Search",
    spellcheck: "false",
    onchange: (/** @type {any} */ { target }) => (asked.search.value = target.value),
  });
  onKey("/", "search in captions", () => field.focus());
  const byMetric = {
    get value() {
      return metric.value;
    },
    set value(name) {
      change({ sort: worst(name), from: null, to: null });
    },
  };
  const orders = () => [worst(metric.value), opposite(worst(metric.value))];
  return h(
    "div",
    { class: "bar" },
    () =>
      metric.value && [
        h(
          "label",
          { class: "quiet" },
          "By ",
          select(() => metrics.value.map((name) => [name, titleOf(name)]), byMetric),
        ),
        orders().map((order) =>
          chip(
            orderName(order, higher(metric.value)),
            () => sort.value === order,
            () => change({ sort: order }),
          ),
        ),
        chip(
          "span of scores",
          () => isSpanShown.value,
          () => (isSpanShown.value = !isSpanShown.value),
        ),
        () =>
          chosen.value &&
          filterChip(
            `${titleOf(metric.value)} ${chosen.value.map((end) => number(end, metric.value)).join(" – ")}`,
            () => choose(null),
          ),
      ],
    KINDS.map((kind) => wordFilter(kind, asked[kind], wording?.[kind] ?? [])),
    field,
    csvChip(() => captionsUrl(id, state.value), id),
    h(
      "a",
      {
        class: "chip",
        href: place("/v1/evaluations", id, "captions", { format: "coco" }),
        download: `${id}.json`,
      },
      "COCO",
    ),
    h("span", { class: "quiet end", role: "status" }, () => counted(found)),
  );
}

/** @param {string} sort */
const opposite = (sort) => (sort.startsWith("-") ? sort.slice(1) : `-${sort}`);

/** @param {string} kind @param {{ value: string }} word @param {WordCount[]} frequent The most frequent ones. */
const wordFilter = (kind, word, frequent) => () => {
  if (word.value) return filterChip(`${kind}: ${word.value}`, () => (word.value = ""));
  const options = frequent.map((each) => [each.word, `${each.word} (${count(each.captions)})`]);
  return (
    options.length > 0 &&
    adder(
      `+ ${kind}`,
      () => options,
      (chosen) => (word.value = chosen),
    )
  );
};

/** @param {Pages} found */
function counted(found) {
  const many = found.answer.value?.matching ?? (found.next.value ? null : found.items.value.length);
  return found.answer.value && many !== null ? `${count(many)} caption${many === 1 ? "" : "s"}` : "";
}

/** The distribution of scores, of which a part is chosen by a pointer or by two numbers. @param {CaptionList} list */
function span({ found, metric, chosen }) {
  const distribution = () => /** @type {CaptionPage | null} */ (found.answer.value)?.distribution;
  const ends = () => {
    const edges = distribution()?.edges ?? [0, 1];
    return /** @type {[number, number]} */ ([edges[0], edges[edges.length - 1]]);
  };
  return h(
    "div",
    { class: "card span" },
    () => {
      const bars = distribution();
      return (
        bars?.counts.some(Boolean) &&
        histogram(bars, { name: titleOf(metric.value), what: "captions", chosen: chosen.value, choose })
      );
    },
    bounds(
      () => titleOf(metric.value),
      ends,
      () => chosen.value,
      choose,
    ),
  );
}

/** @param {string} id @param {Evaluation} run @param {Schemas["Dataset"]} dataset @param {CaptionList} list */
function cards(id, run, dataset, { metric, state, found }) {
  const pictures = hasPictures(dataset, run.dataset.split) && `${run.dataset.name}@${run.dataset.version}`;
  const about = (/** @type {string} */ name) => ({
    signature: run.scores[name]?.signature,
    higher: run.scores[name]?.higher_is_better,
    dataset: run.dataset,
  });
  return table(found.items, {
    name: "Captions",
    keyOf: (item) => item.image,
    columns: () => [
      {
        head: "Caption",
        kind: "name whole",
        cell: (item, at) =>
          card(
            item,
            imagePlace(id, item.image, { list: "captions", ...state.value, at: String(at + 1) }),
            pictures,
          ),
      },
      ...(metric.value ? [scoreColumn(metric.value, about(metric.value))] : []),
    ],
    window: {
      what: "captions",
      more: found.more,
      hasMore: () => found.next.value !== null,
      rowHeight: ROW_HEIGHT,
    },
  });
}

/** @param {string} metric @param {import("../parts/metrics.js").About} about @returns {import("../parts/table.js").Column<Caption>} */
const scoreColumn = (metric, about) => ({
  head: metricName(metric, about),
  kind: "number",
  phone: "value",
  cell: ({ scores }) => [
    h("strong", number(scores[metric], metric)),
    h("span", { class: "sub" }, titleOf(metric)),
  ],
});

/** @param {Caption} item @param {string} url @param {string | false} pictures The dataset whose pictures are shown. */
const card = (item, url, pictures) =>
  h(
    "div",
    { class: ["captioned", pictures && "pictured"] },
    pictures && thumbnail(pictures, item.image),
    h(
      "div",
      h("a", { class: "main say", href: url, title: item.caption.slice(0, 1000) }, captionText(item)),
      nearest(item),
      h("div", wordBadges(item), " ", h("span", { class: "quiet" }, item.image)),
    ),
  );
