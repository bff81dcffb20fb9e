/** The evaluations on one split, best first: ranks that differ only where a paired test says so. */

import { pages, resource } from "../core/api.js";
import { each, h } from "../core/dom.js";
import { onKey, onRows } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { direction, interval, number, time } from "../parts/numbers.js";
import { answered, labels } from "../parts/states.js";
import { rangeOf, whisker } from "../parts/whisker.js";

const METRICS = ["cider_d", "bleu_4", "meteor", "rouge_l", "spice", "accord"];
const PAGE = 50;

/** @param {string} name @param {string} split */
export function leaderboard(name, split) {
  const metric = query("metric", "cider_d");
  const beside = query("metrics");
  const label = query("label");
  const signature = query("signature");
  const url = computed(() => {
    const [mark, value] = label.value.split("=");
    const marked = mark && value ? { [`label.${mark}`]: value } : {};
    return place("/v1/datasets", name, "leaderboard", { split, metric: metric.value, metrics: beside.value, signature: signature.value, limit: PAGE, ...marked });
  });
  const board = pages(() => url.value);
  const known = resource(() => "/v1/metrics");
  onChange((told) => {
    if (!told || told.status === "succeeded") board.refresh();
  });
  const range = computed(() => rangeOf(board.items.value));
  const columns = computed(() => beside.value.split(",").filter(Boolean));
  const rows = h("tbody", {}, each(() => board.items.value, (item) => item.evaluation, (item) => row(item, range, columns)));
  onRows(() => [.../** @type {NodeListOf<HTMLElement>} */ (rows.querySelectorAll("a.main"))], "evaluations");
  const field = h("input", { name: "label", value: label.value, placeholder: "NAME=VALUE", spellcheck: "false" });
  onKey("/", "filter by a label", () => field.focus());
  return {
    title: `${name}/${split}`,
    content: h(
      "div",
      {},
      h("h1", {}, `${name}/${split}`),
      h(
        "form",
        { class: "asked", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); label.value = field.value.trim(); } },
        h("label", {}, "Ranked by ", h("select", { onchange: (/** @type {any} */ { target }) => change({ metric: target.value, signature: null }) }, () => names(known, metric.value).map((each) => h("option", { value: each, selected: each === metric.value }, each)))),
        h("label", {}, "Beside ", h("input", { value: beside.value, placeholder: METRICS.slice(1, 3).join(","), spellcheck: "false", onchange: (/** @type {any} */ { target }) => { beside.value = target.value.replaceAll(" ", ""); } })),
        h("label", {}, "Label ", field),
        h("button", {}, "Filter"),
      ),
      answered(board, () => [() => about(board), () => (board.items.value.length ? table(rows, columns) : h("p", { class: "quiet" }, board.answer.value?.none_because ?? "No evaluation has this score.")), () => board.next.value && h("button", { type: "button", onclick: board.more, disabled: () => board.isMore.value }, "More")]),
    ),
  };
}

/** @param {ReturnType<typeof resource>} known @param {string} chosen */
function names(known, chosen) {
  const all = (known.answer.value?.items ?? []).filter((/** @type {any} */ each) => each.family === "postgen").map((/** @type {any} */ each) => each.name);
  return [...new Set([chosen, ...METRICS, ...all])];
}

/** @param {ReturnType<typeof pages>} board */
function about(board) {
  const found = board.answer.value;
  const others = Object.entries(found?.others ?? {});
  return h(
    "p",
    { class: "quiet" },
    `${direction(found?.higher_is_better)}; `,
    h("code", {}, found?.signature ?? "no signature"),
    others.length > 0 && [
      "; computed otherwise and not comparable: ",
      others.map(([signature, many]) => h("button", { type: "button", class: "link", onclick: () => change({ signature }) }, `${signature} (${many})`)),
    ],
  );
}

/** @param {Node} rows @param {{ value: string[] }} columns */
function table(rows, columns) {
  return h(
    "div",
    { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Leaderboard" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, () => ["Rank", "Evaluation", "Score", "Interval", "Drawn", ...columns.value, "Labels", "Submitted"].map((name) => h("th", { scope: "col" }, name)))),
      rows,
    ),
  );
}

/** @param {() => any} item @param {{ value: [number, number] }} range @param {{ value: string[] }} columns */
function row(item, range, columns) {
  return h(
    "tr",
    {},
    () => [
      h("td", { class: "number" }, `${item().rank}${item().tied ? "=" : ""}`),
      h("th", { scope: "row" }, h("a", { class: "main", href: place("/ui/evaluations", item().evaluation) }, item().evaluation)),
      h("td", { class: "number" }, number(item().value)),
      h("td", { class: "number" }, interval(item().interval)),
      h("td", {}, whisker(item(), range.value)),
      columns.value.map((name) => h("td", { class: "number" }, number(item().scores[name]?.value))),
      h("td", {}, labels(item().labels)),
      h("td", {}, time(item().created_at)),
    ],
  );
}
