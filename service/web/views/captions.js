/** The captions of one evaluation, the worst first, by any metric. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { number } from "../parts/numbers.js";
import { evaluationPlace, imagePlace } from "../parts/places.js";
import { following } from "../parts/states.js";
import { windowed } from "../parts/windowed.js";
import { histogram } from "../plots/histogram.js";

/** @typedef {import("../core/api.js").Schemas["EvaluationOut"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["CaptionPage"]} CaptionPage */

const PAGE = 200;

/** @param {string} id */
export function captions(id) {
  const sort = query("sort");
  const search = query("search");
  const from = query("from");
  const to = query("to");
  const run = resource(() => place("/v1/evaluations", id));
  const first = resource(() => place("/v1/evaluations", id, "captions", { limit: 1 })); // tells by which metrics captions have scores
  const metrics = computed(() => Object.keys(first.answer.value?.items[0]?.scores ?? {}));
  const by = computed(() => sort.value || worstFirst(metrics.value, run.answer.value));
  const metric = computed(() => by.value.replace(/^-/, ""));
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
  onChange((told) => {
    if (told?.id !== id) return;
    run.refresh();
    first.refresh();
  });
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
          h("td", { class: "number" }, number(item().scores[name])),
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
      {},
      h("h1", {}, "Captions of ", h("a", { href: evaluationPlace(id) }, h("code", {}, id))),
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
          {},
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
        h(
          "button",
          {
            type: "button",
            disabled: () => !by.value,
            onclick: () => {
              sort.value = by.value.startsWith("-") ? metric.value : `-${by.value}`;
            },
          },
          () => (by.value === worst(metric.value, run.answer.value) ? "Worst first" : "Best first"),
        ),
        h("label", {}, "Search ", field),
        h("button", {}, "Search"),
        h(
          "a",
          { href: place("/v1/evaluations", id, "captions", { format: "coco" }), download: `${id}.json` },
          "COCO",
        ),
        h("button", { type: "button", class: "link", onclick: () => save(id, asked.value) }, "CSV"),
      ),
      following(list, () => [
        () => distribution(list.answer.value, metric.value, chosen.value),
        () => chosen.value && span(chosen.value, metric.value),
        h("p", { class: "quiet" }, () => counted(list)),
        table,
      ]),
    ),
  };
}

/** @param {string[]} metrics @param {string} first */
const ordered = (metrics, first) =>
  [...metrics.filter((name) => name === first), ...metrics.filter((name) => name !== first)].slice(0, 6);

/** @param {string[]} metrics @param {Evaluation | null} run */
const worstFirst = (metrics, run) =>
  metrics.length ? worst(metrics.includes("cider_d") ? "cider_d" : metrics[0], run) : "";

/** @param {string} metric @param {Evaluation | null} run */
const worst = (metric, run) => (run?.scores[metric]?.higher_is_better === false ? `-${metric}` : metric);

/** @param {CaptionPage | null} answer @param {string} metric @param {[number, number] | null} chosen */
function distribution(answer, metric, chosen) {
  const found = answer?.distribution;
  if (!found?.counts.some(Boolean)) return null;
  return histogram(found, {
    name: metric,
    chosen,
    choose: (span) => change({ from: span && span[0].toPrecision(5), to: span && span[1].toPrecision(5) }),
  });
}

/** @param {[number, number]} chosen @param {string} metric */
const span = (chosen, metric) =>
  h(
    "p",
    {},
    `${metric} from ${number(chosen[0])} to ${number(chosen[1])} `,
    h("button", { type: "button", onclick: () => change({ from: null, to: null }) }, "All scores"),
  );

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
