/** The columns of a leaderboard, and the rows of references that stand above and below its systems. */

import { h } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { change } from "../../core/urls.js";
import { ago } from "../../parts/dates.js";
import { metricName, titleOf, arrow } from "../../parts/metrics.js";
import { evaluationLink, nameOf, nameOrId } from "../../parts/names.js";
import { chance, interval, number, signed } from "../../parts/numbers.js";
import { usualExtent } from "../../plots/scale.js";
import { axis, intervalBar, rangeOf } from "../../plots/intervals.js";

/** @typedef {import("../../core/api.js").Schemas["Standing"]} Standing */
/** @typedef {Standing & { reference?: string, about?: string }} BoardRow `reference`: the name of one that is no system. */
/** @typedef {import("../../parts/table.js").Column<BoardRow>} Column */
/** @typedef {ReturnType<typeof import("../../core/api.js").pages>} Pages */
/** @typedef {{ choose: (row: BoardRow) => void, isMarked: (id: string) => boolean }} Selection */

/**
 * @param {{ board: Pages, metric: { value: string }, metrics: { value: string[] }, order: { value: string }, selection: Selection }} of
 * @returns {() => Column[]}
 */
export function boardColumns({ board, metric, metrics, order, selection }) {
  const range = computed(() => rangeOf(board.items.value));
  const own = shades(
    () => board.items.value.map(({ value }) => value),
    () => board.answer.value?.higher_is_better,
  );
  return () => {
    const by = metric.value;
    return [
      {
        head: h("span", { title: "Rank. The bar joins those that are not told apart from the first." }, "#"),
        kind: "narrow number",
        cell: (row) =>
          !row.reference &&
          h("span", { title: row.tied_with_first ? NOT_TOLD : null }, `${row.rank}${row.tied ? "=" : ""}`),
      },
      {
        head: h("span.hidden", "Compare"),
        kind: "narrow",
        cell: (row) => marker(row, selection),
      },
      { head: "System", kind: "name", cell: system, sort: nameSorts(order) },
      {
        head: [metricName(by, aboutOf(board, by)), ` ${arrow(board.answer.value?.higher_is_better)}`],
        kind: "number",
        phone: "value",
        cell: (row) => h("strong", number(row.value, by)),
        shade: (row) => (row.reference ? null : own(row.value)),
        sort: rankSort(by, by, metrics.value, order),
      },
      {
        head: [h("span.hidden", "Interval of 95 %"), axis(range.value)],
        phone: "below",
        cell: (row) => intervalBar(row, range.value, { metric: by }),
      },
      ...metrics.value.map((each) =>
        besideColumn(each, { board, metric: by, metrics: metrics.value, order }),
      ),
      { head: "Against the first", cell: (row) => h("span.quiet", against(board, row, by)) },
    ];
  };
}

const NOT_TOLD = "Not told apart from the first";

/** @param {Pages} board @param {string} metric */
function aboutOf(board, metric) {
  const { dataset, metric: ranked, signature, beside } = board.answer.value ?? {};
  return { dataset, signature: metric === ranked ? signature : beside?.[metric] };
}

/** @param {string} chosen @param {string} metric @param {string[]} others @param {{ value: string }} order @returns {import("../../parts/table.js").Sort} */
const rankSort = (chosen, metric, others, order) => ({
  text: () => (chosen === metric && order.value === "rank" ? "" : "⇅"),
  told: `Rank by ${titleOf(chosen)}`,
  direction: () => (chosen === metric && order.value === "rank" ? "descending" : "none"),
  choose: () => rankBy(chosen, metric, others),
});

/** The one that ranked stays as a column, in the place of the other. @param {string} chosen @param {string} metric @param {string[]} others */
export const rankBy = (chosen, metric, others) =>
  change({
    metric: chosen,
    metrics: others.map((each) => (each === chosen ? metric : each)).join(","),
    signature: null,
    order: null,
  });

/** @param {{ value: string }} order @returns {import("../../parts/table.js").Sort[]} */
const nameSorts = (order) => [
  {
    text: "by name",
    direction: () => (order.value === "name" ? "ascending" : "none"),
    choose: () => (order.value = order.value === "name" ? "rank" : "name"),
  },
  {
    text: "by date",
    direction: () =>
      order.value === "newest" ? "descending" : order.value === "oldest" ? "ascending" : "none",
    choose: () => (order.value = order.value === "newest" ? "oldest" : "newest"),
  },
];

/** @param {string} each @param {{ board: Pages, metric: string, metrics: string[], order: { value: string } }} of @returns {Column} */
function besideColumn(each, { board, metric, metrics, order }) {
  const valueOf = (/** @type {BoardRow} */ row) => row.scores[each]?.value ?? null;
  const shade = shades(
    () => board.items.value.map(valueOf),
    () => true,
  );
  const first = board.answer.value?.firsts[each];
  return {
    head: metricName(each, aboutOf(board, each)),
    kind: "number",
    cell: (row) => number(valueOf(row), each),
    shade: (row) => (row.reference ? null : shade(valueOf(row))),
    tone: (row) => (first && row.evaluation === first ? "best" : null),
    sort: rankSort(each, metric, metrics, order),
  };
}

/** From the worst, 0, to the best, 1. @param {() => (number | null)[]} values @param {() => boolean | null | undefined} higher */
function shades(values, higher) {
  const ends = computed(() => usualExtent(values()));
  return (/** @type {number | null} */ value) => {
    const [low, high] = ends.value;
    if (value === null || high === low) return null;
    const share = Math.max(0, Math.min(1, (value - low) / (high - low)));
    return higher() === false ? 1 - share : share;
  };
}

/** @param {BoardRow} row @param {Selection} selection */
const marker = (row, { choose, isMarked }) =>
  !row.reference &&
  h("input", {
    type: "checkbox",
    ".checked": () => isMarked(row.evaluation),
    "aria-label": `Compare ${nameOrId(row.labels, row.evaluation)}`,
    onchange: () => choose(row),
  });

/** @param {BoardRow} row */
function system({ reference, about, evaluation, labels, created_at }) {
  if (reference) return [reference, h("span.sub", about)];
  const { file, ...others } = labels;
  const name = nameOf(labels);
  const told = Object.entries(others).filter(([label, value]) => !NAMING.has(label) && value !== name);
  const texts = [file && file !== name && file, ...told.map(([label, value]) => `${label} ${value}`)];
  const text = texts.filter(Boolean).join(", ");
  return [
    evaluationLink(evaluation, labels),
    h("span.sub", text && [h("bdi", text), " · "], ago(created_at)),
  ];
}

const NAMING = new Set(["run", "step", "epoch", "name"]);

/** @param {Pages} board @param {BoardRow} row */
const isFirst = ({ answer }, { evaluation }) => answer.value?.firsts[answer.value.metric] === evaluation;

/** Those that are not told apart from the first have one bracket with it. @param {Pages} board */
export const rowTone = (board) => (/** @type {BoardRow} */ row) => {
  if (row.reference) return "reference";
  return row.tied_with_first || (row.tied && isFirst(board, row)) ? "tied" : null;
};

/** @param {Pages} board @param {BoardRow} row @param {string} metric */
function against(board, row, metric) {
  if (row.reference) return "";
  if (isFirst(board, row)) return "leads";
  const { against_first: first, tied_with_first } = row;
  const title = first
    ? `${signed(first.difference, metric)} ${interval(first.interval, metric)}, p ${chance(first.p)}`
    : "By whether intervals overlap: there is no paired test";
  const told = first ? `worse, p ${chance(first.p)}` : "worse";
  return h("span", { title }, tied_with_first ? "not told apart" : told);
}

/** People above the systems, one sentence for every image below. @param {Pages} board @param {{ value: string }} metric */
export function referenceRows(board, metric) {
  const row = (
    /** @type {"human" | "constant"} */ key,
    /** @type {string} */ reference,
    /** @type {string} */ about,
  ) => {
    const values = board.answer.value?.references?.[key] ?? {};
    const value = values[metric.value] ?? null;
    if (value === null) return [];
    const scores = Object.fromEntries(
      Object.entries(values).map(([each, found]) => [each, { value: found }]),
    );
    return [
      /** @type {BoardRow} */ (/** @type {unknown} */ ({ reference, about, value, interval: null, scores })),
    ];
  };
  return {
    above: () => row("human", "people", "reference: one person against the others"),
    below: () =>
      row("constant", "one sentence for every image", `“${board.answer.value?.constant_caption ?? ""}”`),
  };
}
