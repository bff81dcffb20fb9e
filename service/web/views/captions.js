/** The captions of one evaluation, the worst first, by any metric. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChangeOf } from "../core/live.js";
import { computed } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { bounds } from "../parts/bounds.js";
import { select } from "../parts/layout.js";
import { nameOrId } from "../parts/names.js";
import { number } from "../parts/numbers.js";
import { evaluationPlace, imagePlace } from "../parts/places.js";
import { following, refusalOf } from "../parts/states.js";
import { windowed } from "../parts/windowed.js";
import { histogram } from "../plots/histogram.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["CaptionPage"]} CaptionPage */

const PAGE = 200;
const MOST_METRICS = 5;

/** @param {string} id */
export function captions(id) {
  const sort = query("sort");
  const search = query("search");
  const from = query("from");
  const to = query("to");
  const run = resource(() => place("/v1/evaluations", id));
  const first = resource(() => place("/v1/evaluations", id, "captions", { limit: 1 })); // tells by which metrics captions have scores
  const metrics = computed(() => Object.keys(first.answer.value?.items[0]?.scores ?? {}));
  const by = {
    get value() {
      return sort.value || worstFirst(metrics.value, run.answer.value);
    },
    set value(text) {
      sort.value = text;
    },
  };
  const orders = () =>
    by.value
      ? [
          [worst(metric.value, run.answer.value), "worst first"],
          [best(metric.value, run.answer.value), "best first"],
        ]
      : [];
  const metric = computed(() => by.value.replace(/^-/, ""));
  const isScored = computed(() => metric.value !== "");
  const asked = computed(() => ({
    sort: by.value,
    search: search.value,
    at_least: by.value && from.value,
    at_most: by.value && to.value,
  }));
  const list = pages(() =>
    first.answer.value && run.answer.value
      ? place("/v1/evaluations", id, "captions", { ...asked.value, limit: PAGE })
      : null,
  );
  onChangeOf(
    () => id,
    () => {
      run.refresh();
      first.refresh();
    },
  );
  const chosen = computed(
    () =>
      /** @type {[number, number] | null} */ (
        from.value && to.value ? [Number(from.value), Number(to.value)] : null
      ),
  );
  const field = h("input", {
    type: "search",
    value: search.value,
    maxlength: 200,
    placeholder: "words or an image",
    spellcheck: "false",
  });
  onKey("/", "search in captions", () => field.focus());
  const table = windowed(list.items, {
    columns: () => ["Image", "Caption", ...ordered(metrics.value, metric.value)],
    keyOf: (item) => item.image,
    cells: (item) => [
      h("th", { scope: "row" }, () =>
        h("a", { class: "main", href: imagePlace(id, item().image) }, item().image),
      ),
      h("td", { class: "wide", title: () => item().caption.slice(0, 1000) }, () => item().caption),
      () =>
        ordered(metrics.value, metric.value).map((name) =>
          h("td", { class: "number" }, number(item().scores[name], name)),
        ),
    ],
    name: "Captions",
    what: "captions",
    more: list.more,
    hasMore: () => list.next.value !== null,
  });
  return {
    title: `Captions of ${id}`,
    content: h(
      "div",
      h(
        "h1",
        "Captions of ",
        h("a", { href: evaluationPlace(id) }, () => nameOrId(run.answer.value?.labels, id)),
      ),
      h(
        "form",
        {
          class: "asked",
          onsubmit: (/** @type {Event} */ event) => {
            event.preventDefault();
            search.value = field.value;
          },
        },
        h(
          "label",
          "By ",
          h(
            "select",
            {
              onchange: (/** @type {any} */ { target }) =>
                change({ sort: target.value, from: null, to: null }),
            },
            () =>
              metrics.value.map((name) =>
                h("option", { value: worst(name, run.answer.value), selected: name === metric.value }, name),
              ),
          ),
        ),
        h("label", "Order ", select(orders, by)),
        h("label", "Search ", field),
        h("button", "Search"),
        h(
          "a",
          { href: place("/v1/evaluations", id, "captions", { format: "coco" }), download: `${id}.json` },
          "All as COCO's results",
        ),
        h("button", { type: "button", class: "link", onclick: () => save(id, asked.value) }, "These as CSV"),
      ),
      () => [run, first].map(refusalOf),
      () =>
        !run.refused.value &&
        !first.refused.value &&
        following(list, () => [
          () => distribution(list.answer.value, metric.value, chosen.value),
          () => isScored.value && span(list, metric, chosen),
          h("p", { class: "quiet" }, () => counted(list)),
          table,
        ]),
    ),
  };
}

/** @param {string[]} metrics @param {string} first */
const ordered = (metrics, first) =>
  [...metrics.filter((name) => name === first), ...metrics.filter((name) => name !== first)].slice(
    0,
    MOST_METRICS,
  );

/** @param {string[]} metrics @param {Evaluation | null} run */
const worstFirst = (metrics, run) =>
  metrics.length ? worst(metrics.includes("cider_d") ? "cider_d" : metrics[0], run) : "";

/** @param {string} metric @param {Evaluation | null} run */
const worst = (metric, run) => (run?.scores[metric]?.higher_is_better === false ? `-${metric}` : metric);

/** @param {string} metric @param {Evaluation | null} run */
const best = (metric, run) => (worst(metric, run) === metric ? `-${metric}` : metric);

/** @param {CaptionPage | null} answer @param {string} metric @param {[number, number] | null} chosen */
function distribution(answer, metric, chosen) {
  const found = answer?.distribution;
  if (!found?.counts.some(Boolean)) return null;
  return histogram(found, {
    name: metric,
    chosen,
    choose,
  });
}

/** The same by two numbers. @param {ReturnType<typeof pages>} list @param {{ value: string }} metric @param {{ value: [number, number] | null }} chosen */
const span = (list, metric, chosen) =>
  h(
    "p",
    bounds(
      () => metric.value,
      () => ends(list.answer.value),
      () => chosen.value,
      choose,
    ),
    () => chosen.value && h("button", { type: "button", onclick: () => choose(null) }, "All scores"),
  );

/** @param {[number, number] | null} span */
const choose = (span) => change({ from: span && String(span[0]), to: span && String(span[1]) });

/** @param {CaptionPage | null} answer @returns {[number, number]} */
function ends(answer) {
  const edges = answer?.distribution?.edges ?? [];
  return edges.length ? [edges[0], edges[edges.length - 1]] : [0, 1];
}

/** @param {ReturnType<typeof pages>} list */
function counted(list) {
  const many = list.answer.value?.matching;
  return typeof many === "number" ? `${many.toLocaleString("en")} captions` : "";
}

/** All that is asked for, as a file. @param {string} id @param {Record<string, string>} asked */
async function save(id, asked) {
  const answer = await fetch(place("/v1/evaluations", id, "captions", asked), {
    headers: { Accept: "text/csv" },
  });
  if (!answer.ok) return;
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: `${id}.csv` });
  link.click();
  URL.revokeObjectURL(link.href);
}
