/** The captions of one evaluation as cards, the worst first, by any metric. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChangeOf } from "../core/live.js";
import { computed, signal, unread } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { bounds } from "../parts/bounds.js";
import { adder, chip, filterChip } from "../parts/chips.js";
import { copyLink } from "../parts/command.js";
import { select, view } from "../parts/layout.js";
import { byUsualOrder, metricName, titleOf } from "../parts/metrics.js";
import { evaluationCrumbs, nameOrId } from "../parts/names.js";
import { count, number } from "../parts/numbers.js";
import { evaluationTabs, imagePlace } from "../parts/places.js";
import { captionsSentence } from "../parts/sentences.js";
import { following } from "../parts/states.js";
import { table } from "../parts/table.js";
import { histogram } from "../plots/histogram.js";
import { searchField } from "./choice.js";
import { csvChip } from "./downloads.js";
import { captionsUrl, orderName, STATE } from "./neighbours.js";
import { hasPictures, thumbnail, versioned, whyWithoutPictures } from "./pictures.js";
import { captionText, nearest, wordBadges } from "./wording.js";

/** @typedef {ReturnType<typeof captionList>} CaptionList */

const PAGE = 200;
const PAUSE = 250; // milliseconds without a key, after which the words are searched for
const ROW_HEIGHT = { wide: 104, narrow: 142 };
const PICTURED_HEIGHT = { wide: 116, narrow: 142 };

/** @param {string} id */
export function captions(id) {
  const run = resource(() => place("/v1/evaluations", id));
  const first = resource(() => place("/v1/evaluations", id, "captions", { limit: 1 })); // tells by which metrics captions have scores
  const dataset = resource(
    () => run.answer.value && place("/v1/datasets", versioned(run.answer.value.dataset)),
  );
  const list = captionList(id, run, first);
  onChangeOf(
    () => id,
    () => [run, first].forEach(({ refresh }) => refresh()),
  );
  return view(
    {
      title: "Captions",
      name: () => (run.answer.value || run.refused.value ? nameOrId(run.answer.value?.labels, id) : "…"),
      crumbs: () => [...evaluationCrumbs(run.answer.value), ["captions"]],
      sentence: () =>
        first.answer.value &&
        captionsSentence({ wording: first.answer.value.wording, collapsed: run.answer.value?.collapsed }),
      tabs: evaluationTabs(id),
      needs: [run, first, dataset],
    },
    () => [
      bar(
        id,
        nameOrId(run.answer.value.labels, id),
        list,
        first.answer.value.wording,
        whyWithoutPictures(dataset.answer.value, run.answer.value.dataset.split),
      ),
      following(list.found, () => {
        const isEmpty = computed(() => list.found.answer.value !== null && !list.found.items.value.length);
        return [
          () => list.isSpanShown.value && span(list),
          () =>
            isEmpty.value
              ? nothing(list)
              : unread(() => cards(id, run.answer.value, dataset.answer.value, list)),
        ];
      }),
    ],
  );
}

/** What is listed, as the address says it. @param {string} id @param {Resource} run @param {Resource} first */
function captionList(id, run, first) {
  const asked = Object.fromEntries(STATE.map((name) => [name, query(name)]));
  const metrics = computed(() => byUsualOrder(Object.keys(first.answer.value?.items[0]?.scores ?? {})));
  const higher = (/** @type {string} */ name) => run.answer.value?.scores[name]?.higher_is_better;
  const worst = (/** @type {string} */ name) => (name && higher(name) === false ? `-${name}` : name);
  const usual = () => (metrics.value.includes("cider_d") ? "cider_d" : (metrics.value[0] ?? ""));
  const sort = computed(() => asked.sort.value || worst(usual()));
  const metric = computed(() => sort.value.replace(/^-/, ""));
  const state = computed(() => ({
    ...Object.fromEntries(STATE.map((name) => [name, asked[name].value])),
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

/** @param {string} id @param {string} name @param {CaptionList} list @param {Schemas["CaptionPage"]["wording"]} wording @param {string | null} withoutPictures */
function bar(id, name, list, wording, withoutPictures) {
  const file = fileName(name);
  const field = searchField("Search", "Words in captions, or an image", list.asked.search, { pause: PAUSE });
  onKey("/", "search in captions", () => field.focus());
  const coco = () => captionsUrl(id, list.state.value, { format: "coco" });
  return h(
    "div.bar",
    () => list.metric.value && orderChips(list, list.metric.value),
    wordFilter("invented", list.asked.invented, wording?.invented),
    wordFilter("missed", list.asked.missed, wording?.missed),
    field,
    csvChip(() => captionsUrl(id, list.state.value), file, "Download CSV"),
    h("a.chip", { href: coco, download: `${file}.json` }, "Download COCO"),
    copyLink(),
    h(
      "span.quiet.end",
      withoutPictures && `${withoutPictures} · `,
      h("span", { role: "status" }, () => counted(list.found)),
    ),
  );
}

/** Of a download, without its ending. @param {string} name Of the evaluation. */
const fileName = (name) => `${name.replace(/\.jsonl?$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-")}-captions`;

/** The metric, the order by it, and the span of its scores. @param {CaptionList} list @param {string} metric */
function orderChips({ metrics, higher, worst, sort, chosen, isSpanShown }, metric) {
  const byMetric = {
    get value() {
      return metric;
    },
    set value(name) {
      change({ sort: worst(name), from: null, to: null });
    },
  };
  const up = worst(metric);
  return [
    h(
      "label.quiet",
      "By ",
      select(() => metrics.value.map(titled), byMetric),
    ),
    [up, up.startsWith("-") ? metric : `-${metric}`].map((order) =>
      chip(
        orderName(order, higher(metric)),
        () => sort.value === order,
        () => change({ sort: order }),
      ),
    ),
    chip(
      "span of scores",
      () => isSpanShown.value,
      () => (isSpanShown.value = !isSpanShown.value),
    ),
    () => chosen.value && spanChip(metric, chosen.value),
  ];
}

/** @param {string} metric */
const titled = (metric) => [metric, titleOf(metric)];

/** @param {string} kind @param {{ value: string }} word @param {Schemas["WordCount"][]} [frequent] The most frequent ones. */
const wordFilter =
  (kind, word, frequent = []) =>
  () => {
    if (word.value) return filterChip(`${kind}: ${word.value}`, () => (word.value = ""));
    const options = () => frequent.map((each) => [each.word, `${each.word} (${count(each.captions)})`]);
    return frequent.length > 0 && adder(`+ ${kind}`, options, (chosen) => (word.value = chosen));
  };

/** Why the list is empty: each filter, which a press takes away. @param {CaptionList} list */
function nothing({ asked, metric, chosen }) {
  const filters = [
    ...["search", "invented", "missed"]
      .filter((name) => asked[name].value)
      .map((name) => filterChip(`${name}: ${asked[name].value}`, () => (asked[name].value = ""))),
    chosen.value && spanChip(metric.value, chosen.value),
  ].filter(Boolean);
  return filters.length
    ? h(
        "p.notice.bar",
        filters.length === 1 ? "No caption passes this filter:" : "No caption passes all of these filters:",
        filters,
      )
    : h("p.quiet", "There are no captions.");
}

/** @param {string} metric @param {[number, number]} ends */
const spanChip = (metric, ends) =>
  filterChip(`${titleOf(metric)} ${ends.map((end) => number(end, metric)).join(" – ")}`, () => choose(null));

/** @param {CaptionList["found"]} found */
function counted({ answer, next, items }) {
  const many = answer.value?.matching ?? (next.value ? null : items.value.length);
  return answer.value && many !== null ? `${count(many)} caption${many === 1 ? "" : "s"}` : "";
}

/** The distribution of scores, of which a part is chosen by a pointer or by two numbers. @param {CaptionList} list */
function span({ found, metric, chosen }) {
  const bars = computed(
    () => /** @type {Schemas["CaptionPage"] | null} */ (found.answer.value)?.distribution ?? null,
  );
  const name = () => titleOf(metric.value);
  const range = () =>
    /** @type {[number, number]} */ ([bars.value?.edges[0] ?? 0, bars.value?.edges.at(-1) ?? 1]);
  return h(
    "div.card.span",
    () =>
      bars.value?.counts.some(Boolean) &&
      histogram(bars.value, { name: name(), what: "captions", chosen: chosen.value, choose }),
    bounds(name, range, () => chosen.value, choose),
  );
}

/** @param {string} id @param {Evaluation} run @param {Dataset} dataset @param {CaptionList} list */
function cards(id, run, dataset, { metric, state, found }) {
  const pictures = hasPictures(dataset, run.dataset.split) && versioned(run.dataset);
  const urlOf = (/** @type {string} */ image, /** @type {number} */ at) =>
    imagePlace(id, image, { list: "captions", ...state.value, at: String(at + 1) });
  return table(found.items, {
    name: "Captions",
    keyOf: ({ image }) => image,
    columns: () => [
      {
        head: "Caption",
        kind: "name whole",
        cell: (item, at) => card(item, urlOf(item.image, at), pictures),
      },
      ...(metric.value ? [scoreColumn(metric.value, run)] : []),
    ],
    window: {
      what: "captions",
      more: found.more,
      hasMore: () => found.next.value !== null,
      rowHeight: pictures ? PICTURED_HEIGHT : ROW_HEIGHT,
    },
  });
}

/** @param {string} metric @param {Evaluation} run @returns {Column<Caption>} */
const scoreColumn = (metric, { scores, dataset }) => ({
  head: metricName(metric, {
    signature: scores[metric]?.signature,
    higher: scores[metric]?.higher_is_better,
    dataset,
  }),
  kind: "number",
  phone: "value",
  cell: (item) => [h("strong", number(item.scores[metric], metric)), h("span.sub.on-phone", titleOf(metric))],
});

/** @param {Caption} item @param {string} url @param {string | false} pictures The dataset whose pictures are shown. */
const card = (item, url, pictures) =>
  h(
    "div",
    { class: ["captioned", pictures && "pictured"] },
    pictures && thumbnail(pictures, item.image),
    h(
      "div",
      h("a.main.say", { href: url, title: item.caption.slice(0, 1000) }, captionText(item)),
      nearest(item),
      h("div", wordBadges(item), " ", h("span.quiet", item.image)),
    ),
  );
