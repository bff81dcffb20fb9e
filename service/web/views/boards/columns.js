/** The columns of a leaderboard, and the rows of references that stand above its systems. */

import { ask } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { computed } from "../../core/signals.js";
import { place } from "../../core/urls.js";
import { ago } from "../../parts/dates.js";
import { explained } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { evaluationLink, nameOf, nameOrId } from "../../parts/names.js";
import { count, interval, number, probability, signed } from "../../parts/numbers.js";
import { evaluationPlace } from "../../parts/places.js";
import { badge } from "../../parts/states.js";
import { isPhone } from "../../parts/table.js";
import { axis, intervalBar, rangeOf } from "../../plots/intervals.js";
import { extent, isOutside, usualExtent } from "../../plots/scale.js";

/** @typedef {Schemas["Standing"] & { reference?: string, about?: string }} BoardRow `reference`: the name of one that is no system. */
/** @typedef {{ board: ReturnType<typeof import("../../core/api.js").pages>, metric: { value: string }, metrics: { value: string[] }, order: { value: string }, rank: (metric: string) => void, choose: (row: BoardRow) => void, isMarked: (id: string) => boolean }} Board `metrics`: those beside the one that ranks. */

const NOT_TOLD = "Not told apart from the first";
const NAMING = new Set(["file", "run", "step", "epoch", "name"]);

/** @param {Board} of @returns {() => Column<BoardRow>[]} */
export function boardColumns(of) {
  const { board, metric, metrics } = of;
  const range = computed(() => rangeOf(board.items.value));
  const marks = computed(() =>
    Object.fromEntries(referencesOf(of).map(({ reference, value }) => [reference, value])),
  );
  return () => [
    {
      head: h("span", { title: "Rank. The bar joins those that are not told apart from the first." }, "#"),
      kind: "narrow number",
      cell: (row) =>
        row.reference
          ? h("span", { title: "A reference is no system, and has no rank" }, "–")
          : h("span", { title: row.tied_with_first ? NOT_TOLD : null }, rankOf(row)),
    },
    { head: h("span.hidden", "Compare"), kind: "narrow", phone: "mark", cell: (row) => marker(row, of) },
    { head: "System", kind: "name", cell: system, sort: nameSorts(of) },
    scoreColumn(metric.value, of),
    {
      head: h("span.scaled", `${titleOf(metric.value)}, 95 %`, axis(range.value)),
      kind: "narrow",
      phone: "below",
      cell: (row) => [
        isPhone.value && h("span.on-phone.quiet.state", stateOnPhone(row, of)),
        intervalBar(row, range.value, { metric: metric.value, marks: row.reference ? {} : marks.value }),
      ],
    },
    ...metrics.value.map((each) => scoreColumn(each, of)),
    { head: "Against the first", cell: (row) => h("span.quiet", against(row, of)) },
  ];
}

/** On a phone, which has no head above the bars. @param {Board} of */
export function barLegend(of) {
  const { items } = of.board;
  if (!items.value.length) return null;
  const metric = of.metric.value;
  const range = rangeOf(items.value);
  const [low, high] = range.map((end) => number(end, metric));
  const dashed = referencesOf(of).filter(({ value }) => !isOutside(range, Number(value)));
  const marks = dashed.length > 0 && `, dashed: ${dashed.map(({ reference }) => reference).join(", ")}`;
  return h("p.quiet", `Bars: ${titleOf(metric)}, 95 %, on a scale from ${low} to ${high}`, marks, ".");
}

/** The second line of a card: its state, against the first, and the other metrics. @param {BoardRow} row @param {Board} of */
const stateOnPhone = (row, of) =>
  [
    row.is_collapsed && "collapsed",
    against(row, of),
    ...of.metrics.value
      .filter((each) => typeof row.scores[each]?.value === "number")
      .map((each) => h("span.whole", `${titleOf(each)} ${number(row.scores[each].value, each)}`)),
  ]
    .filter(Boolean)
    .flatMap((text, at) => (at ? [" · ", text] : [text]));

/** @param {BoardRow} row */
const rankOf = ({ rank, tied }) => `${rank}${tied ? "=" : ""}`;

/** The one that ranks, or one beside it. @param {string} each @param {Board} of @returns {Column<BoardRow>} */
function scoreColumn(each, of) {
  const { board, metric, order, rank } = of;
  const { dataset, signature, beside, higher_is_better: higher } = board.answer.value ?? {};
  const isMain = each === metric.value;
  const isRanking = () => isMain && order.value === "rank";
  const valueOf = (/** @type {BoardRow} */ row) => (isMain ? row.value : (row.scores[each]?.value ?? null));
  const values = computed(() => board.items.value.map(valueOf));
  const ends = computed(() => usualExtent(values.value));
  return {
    head: h(
      "span.scaled",
      metricName(each, { dataset, signature: isMain ? signature : beside?.[each] }),
      () => board.items.value.length > 0 && scale(extent(values.value), ends.value, each),
    ),
    kind: "number",
    phone: isMain ? "value" : undefined,
    cell: (row) => h(isMain ? "strong" : "span", { title: reasonOf(row, each) }, number(valueOf(row), each)),
    shade: (row) => (row.reference ? null : shadeOf(valueOf(row), ends.value, isMain && higher === false)),
    tone: (row) => (isMain && isFirst(row, of) && leadsAlone(of) ? "best" : null),
    sort: {
      text: "",
      told: `Rank by ${titleOf(each)}`,
      direction: () => (!isRanking() ? "none" : higher === false ? "ascending" : "descending"),
      choose: () => rank(each),
    },
  };
}

/** The lowest and the highest of a column. @param {[number, number]} all @param {[number, number]} shaded What its shades span. @param {string} metric */
const scale = (all, shaded, metric) =>
  h(
    "span.sub",
    { title: `The lowest and the highest. Shades span ${span(shaded, metric)}, the darkest for the best` },
    span(all, metric),
  );

/** @param {[number, number]} ends @param {string} metric */
const span = ([low, high], metric) =>
  low === high ? number(low, metric) : `${number(low, metric)} – ${number(high, metric)}`;

/** Why a row has no value. @param {BoardRow} row @param {string} metric */
const reasonOf = ({ reference, scores }, metric) =>
  reference && !scores[metric] ? `The probes of this split have no ${titleOf(metric)} of it` : null;

/** From the worst, 0, to the best, 1. @param {number | null} value @param {[number, number]} ends @param {boolean} isLower Whether a low value is good. */
function shadeOf(value, [low, high], isLower) {
  if (value === null || high === low) return null;
  const share = Math.max(0, Math.min(1, (value - low) / (high - low)));
  return isLower ? 1 - share : share;
}

/** @param {Board} of @returns {import("../../parts/table.js").Sort[]} */
const nameSorts = ({ order }) => [
  {
    text: "name",
    told: "Sort by name",
    direction: () => (order.value === "name" ? "ascending" : "none"),
    choose: () => (order.value = order.value === "name" ? "rank" : "name"),
  },
  {
    text: "date",
    told: "Sort by date",
    direction: () =>
      order.value === "newest" ? "descending" : order.value === "oldest" ? "ascending" : "none",
    choose: () => (order.value = order.value === "newest" ? "oldest" : "newest"),
  },
];

/** @param {BoardRow} row @param {Board} of */
const marker = (row, { choose, isMarked }) =>
  !row.reference &&
  h("input", {
    type: "checkbox",
    ".checked": () => isMarked(row.evaluation),
    "aria-label": `Compare ${nameOrId(row.labels, row.evaluation)}`,
    onchange: () => choose(row),
  });

/** @param {BoardRow} row */
function system(row) {
  const { reference, about, evaluation, labels, created_at, equal, equal_ones: others } = row;
  if (reference) return [reference, h("span.sub", about)];
  const name = nameOf(labels);
  const texts = Object.entries(labels)
    .filter(([label, value]) => !NAMING.has(label) && value !== name)
    .map((each) => each.join(": "));
  if (labels.file && labels.file !== name) texts.unshift(labels.file);
  return [
    isPhone.value && h("span.on-phone.quiet", `${rankOf(row)} `),
    evaluationLink(evaluation, labels),
    equal > 0 && [" ", equalOnes(equal, others)],
    row.is_collapsed && h("span.off-phone", " ", badge("collapsed")),
    h("span.sub.off-phone", texts.length > 0 && [h("bdi", texts.join(", ")), " · "], ago(created_at)),
  ];
}

/** Evaluations that share a row. @param {number} many @param {string[]} ids Of the first of them. */
const equalOnes = (many, ids) =>
  explained(`+${count(many)} equal`, "other evaluations with this score", (popover) =>
    fillEqual(popover, many, ids),
  );

/** @param {HTMLElement} popover @param {number} many @param {string[]} ids */
async function fillEqual(popover, many, ids) {
  const runs = await Promise.all(
    ids.map((id) => ask(place("/v1/evaluations", id, { metrics: "cider_d" })).catch(() => null)),
  );
  replace(
    popover,
    h("p", "This score, of the same checkpoint or of captions, belongs also to:"),
    h(
      "ul",
      ids.map((id, at) => h("li", h("a", { href: evaluationPlace(id) }, nameOrId(runs[at]?.labels, id)))),
    ),
    many > ids.length && h("p", `and ${count(many - ids.length)} more.`),
  );
}

/** Whether no other is tied with the first. @param {Pick<Board, "board">} of */
const leadsAlone = ({ board }) => board.items.value.every((row) => !row.tied_with_first);

/** @param {BoardRow} row @param {Pick<Board, "board" | "metric">} of */
const isFirst = ({ evaluation }, { board, metric }) =>
  board.answer.value?.firsts[metric.value] === evaluation;

/** Those that are not told apart from the first have one bracket with it. @param {Pick<Board, "board" | "metric">} of */
export const rowTone = (of) => (/** @type {BoardRow} */ row) => {
  if (row.reference) return "reference";
  return row.tied_with_first || (row.tied && isFirst(row, of)) ? "tied" : null;
};

/** A p-value with the digits that 256 resamples carry. @param {number | null} p */
const coarse = (p) => (typeof p === "number" && p < 0.01 ? "p\u00a0<\u00a0.01" : probability(p));

/** @param {BoardRow} row @param {Board} of */
function against(row, of) {
  if (row.reference) return referenceAgainst(row, of);
  if (isFirst(row, of)) return "leads";
  const { against_first: first, tied_with_first } = row;
  const metric = of.metric.value;
  const title = first
    ? `${signed(first.difference, metric)} ${interval(first.interval, metric)}, ${coarse(first.p)}, by a t-test on 256 resamples of the images; a comparison exchanges captions in 10,000 trials, and its p may differ a little`
    : "By whether intervals overlap: there is no paired test";
  const told = first ? `worse, ${coarse(first.p)}` : "worse";
  return h("span", { title }, tied_with_first ? "not told apart" : told);
}

/** The difference of a reference from the first. @param {BoardRow} row @param {Board} of */
function referenceAgainst({ value }, of) {
  const metric = of.metric.value;
  const first = of.board.items.value.find((row) => isFirst(row, of));
  const title = "A reference is scored in another way than systems: there is no test against the first";
  return h("span", { title }, first ? `${signed(value - first.value, metric)}, no test` : "–");
}

/** People, and one sentence for every image. @param {Pick<Board, "board" | "metric">} of @returns {BoardRow[]} */
export function referencesOf({ board, metric }) {
  const rows = (/** @type {string} */ key, /** @type {string} */ reference, /** @type {string} */ about) => {
    const values = Object.entries(board.answer.value?.references?.[key] ?? {});
    const scores = Object.fromEntries(values.map(([each, value]) => [each, { value }]));
    const { value = null } = scores[metric.value] ?? {};
    if (value === null) return [];
    return [/** @type {any} */ ({ reference, about, value, interval: null, scores })];
  };
  return [
    ...rows("human", "people", "one person against the others"),
    ...rows("constant", "one sentence for every image", `“${board.answer.value?.constant_caption ?? ""}”`),
  ];
}
