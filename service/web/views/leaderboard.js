/** The evaluations on one split, best first: ranks that differ only where a paired test says so. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed, signal } from "../core/signals.js";
import { change, place, queries, query } from "../core/urls.js";
import { adder, filterChip } from "../parts/chips.js";
import { copyLink } from "../parts/command.js";
import { viewHead } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { nameOrId } from "../parts/names.js";
import { comparePlace, splitTabs } from "../parts/places.js";
import { leaderboardSentence } from "../parts/sentences.js";
import { allAnswered, refusalOf } from "../parts/states.js";
import { isPhone, table } from "../parts/table.js";
import { barLegend, boardColumns, referencesOf, rowTone } from "./boards/columns.js";
import { csvChip } from "./downloads.js";

/** @typedef {import("./boards/columns.js").BoardRow} Row */
/** @typedef {import("./boards/columns.js").Board} Board */

const PAGE = 200;
const ROW_HEIGHT = { wide: 52, narrow: 92 };
const LATEST = 10; // evaluations that tell which metrics there are, asked for once the board is there
const BESIDE = "meteor,bleu_4"; // columns, where nobody has chosen others
const NONE = "none";
const FILTERS = 2; // labels that have a chip of their own
const LABEL = "label.";

/** @param {string} name @param {string} split */
export function leaderboard(name, split) {
  const [metric, order, signature] = [query("metric", "cider_d"), query("order", "rank"), query("signature")];
  const beside = query("metrics", BESIDE);
  const filters = queries(LABEL);
  const others = computed(() =>
    beside.value.split(",").filter((each) => each && each !== NONE && each !== metric.value),
  );
  const asked = computed(() =>
    place("/v1/datasets", name, "leaderboard", {
      ...{ split, metric: metric.value, metrics: others.value.join(","), signature: signature.value },
      order: order.value === "rank" ? null : order.value,
      ...filters.value,
    }),
  );
  const board = pages(() => `${asked.value}&limit=${PAGE}`);
  const dataset = `${name}/${split}`;
  const latest = resource(
    () => board.answer.value && place("/v1/evaluations", { dataset, status: "succeeded", limit: LATEST }),
  );
  const labels = resource(() => place("/v1/labels", { dataset }));
  const { isOlder, refresh } = newerScores(board);
  const selection = compared(() => board.items.value);
  const metrics = computed(() =>
    others.value.filter(
      (each) => beside.value !== BESIDE || board.items.value.some(({ scores }) => scores[each]),
    ),
  );
  /** The one that ranked stays as a column, in the place of the other. @param {string} chosen */
  const rank = (chosen) => {
    const columns = metrics.value.map((each) => (each === chosen ? metric.value : each));
    change({ metric: chosen, metrics: columns.join(","), signature: null, order: null });
  };
  const isThere = computed(() => board.answer.value !== null || board.refused.value !== null);
  const of = { board, metric, metrics, order, rank, ...selection };
  return {
    title: dataset,
    crumbs: () => [[dataset]],
    content: h(
      "div",
      viewHead({
        name: dataset,
        sentence: () =>
          board.answer.value && order.value === "rank" ? leaderboardSentence(board.answer.value) : null,
        tabs: () => isThere.value && splitTabs(name, split),
      }),
      allAnswered([board, labels], () => [
        () => refusalOf(board),
        h(
          "div.bar",
          () => metricChoice(of, () => latest.answer.value?.items ?? []),
          h("span.bar", { id: "filters" }, () =>
            filterChoice(labels.answer.value?.items ?? [], filters.value),
          ),
          h(
            "span.bar.end",
            () =>
              isOlder.value &&
              h("button.chip.on", { type: "button", onclick: refresh }, "Newer scores: show them"),
            selection.chips,
            csvChip(() => asked.value, `${name}-${split}-${metric.value}`),
            copyLink(),
          ),
        ),
        selection.dialog,
        () => isPhone.value && barLegend(of),
        table(board.items, {
          name: "Leaderboard",
          columns: boardColumns(of),
          keyOf: (item) => item.evaluation,
          tone: rowTone(of),
          above: () => referencesOf(of),
          window: {
            what: "evaluations",
            more: board.more,
            hasMore: () => board.next.value !== null,
            rowHeight: ROW_HEIGHT,
            keys: { c: ["mark this evaluation to compare it", selection.choose] },
          },
        }),
        () =>
          board.answer.value &&
          board.items.value.length === 0 &&
          h("p.quiet", board.answer.value?.none_because ?? "No evaluation has this score."),
        () => otherSignatures(board.answer.value?.others ?? {}),
      ]),
    ),
  };
}

/** A long list stays as it is until its reader asks for what is newer. @param {ReturnType<typeof pages>} board */
function newerScores(board) {
  const isOlder = signal(false);
  const refresh = () => {
    isOlder.value = false;
    board.refresh();
  };
  onChange((told) => {
    if (told && told.status !== "succeeded") return;
    if (board.items.peek().length > PAGE) isOlder.value = true;
    else refresh();
  });
  return { isOlder, refresh };
}

/** The metric that ranks comes first; a press on another ranks by it. @param {Board} of @param {() => Evaluation[]} latest Those that tell which metrics there are. */
function metricChoice({ metric, metrics, rank }, latest) {
  const shown = [metric.value, ...metrics.value];
  const choose = (/** @type {string[]} */ chosen) => change({ metrics: chosen.join(",") || NONE });
  const left = () => {
    const scores = latest().flatMap((each) => Object.entries(each.scores));
    const ranked = scores.filter(([, { higher_is_better: higher }]) => higher !== null);
    return [...new Set(ranked.map(([each]) => each))].filter((each) => !shown.includes(each));
  };
  const remove = (/** @type {string} */ one) => () => choose(metrics.value.filter((each) => each !== one));
  return [
    h("span.chip.on", { title: "The metric that ranks" }, titleOf(metric.value)),
    metrics.value.map((each) =>
      h(
        "span.chip.pair",
        h("button", { type: "button", title: "Rank by it", onclick: () => rank(each) }, titleOf(each)),
        h(
          "button",
          { type: "button", "aria-label": `Leave out ${titleOf(each)}`, onclick: remove(each) },
          "×",
        ),
      ),
    ),
    adder(
      "+ metric",
      () => left().map((each) => [each, titleOf(each)]),
      (each) => choose([...metrics.value, each]),
    ),
  ];
}

/** @param {Schemas["Label"][]} labels @param {Record<string, string>} chosen */
function filterChoice(labels, chosen) {
  const left = labels.filter(({ name }) => !(LABEL + name in chosen));
  const isBranch = (/** @type {Schemas["Label"]} */ { name }) => Number(name === "branch");
  const first = left
    .filter((each) => isBranch(each) || each.values.length > 1)
    .sort((one, other) => isBranch(other) - isBranch(one))
    .slice(0, FILTERS);
  const rest = left.filter((each) => !first.includes(each));
  onKey("/", "filter by a label", () =>
    /** @type {HTMLElement | null} */ (document.querySelector("#filters select"))?.focus(),
  );
  return [
    Object.entries(chosen).map(([name, value]) =>
      filterChip(`${name.slice(LABEL.length)}: ${value}`, () => change({ [name]: null })),
    ),
    first.map((label) => labelAdder(`${label.name}: any`, [label])),
    rest.length > 0 && labelAdder("+ filter", rest),
  ];
}

/** @param {string} text @param {Schemas["Label"][]} labels */
function labelAdder(text, labels) {
  const options = labels.flatMap(({ name, values }) =>
    values.map(({ value, evaluations }) => [
      JSON.stringify({ [LABEL + name]: value }),
      `${labels.length > 1 ? `${name}: ` : ""}${value} (${evaluations})`,
    ]),
  );
  return adder(
    text,
    () => options,
    (chosen) => change(JSON.parse(chosen)),
  );
}

/**
 * Two evaluations that are marked; where a third one is, the reader says which of the two it replaces.
 *
 * @param {() => Row[]} items
 */
function compared(items) {
  const marked = query("chosen");
  const ids = computed(() => marked.value.split(",").filter(Boolean));
  const third = signal("");
  const nameOf = (/** @type {string} */ id) =>
    nameOrId(items().find(({ evaluation }) => evaluation === id)?.labels, id);
  const without = (/** @type {string} */ id) => ids.value.filter((each) => each !== id);
  const mark = (/** @type {string[]} */ list) => (marked.value = list.join(","));
  const choose = (/** @type {Row} */ { evaluation }) => {
    const rest = without(evaluation);
    if (rest.length < ids.value.length) return mark(rest);
    if (rest.length < 2) return mark([...rest, evaluation]);
    third.value = evaluation;
    dialog.showModal();
  };
  const replace = (/** @type {string} */ id) => {
    mark([...without(id), third.value]);
    dialog.close();
  };
  const dialog = h(
    "dialog",
    { "aria-label": "Which of the two to leave out", onclose: () => (third.value = "") },
    h("p", () => third.value && `Two are compared. Leave out which, for ${nameOf(third.value)}?`),
    h("form.bar", { method: "dialog" }, () => [
      third.value &&
        ids.value.map((id) => h("button", { type: "button", onclick: () => replace(id) }, nameOf(id))),
      h("button", "Neither"),
    ]),
  );
  const chips = () => [
    ids.value.map((id) => filterChip(nameOf(id), () => mark(without(id)))),
    ids.value.length === 2
      ? h("a.chip.on", { href: comparePlace(ids.value[0], ids.value[1]) }, "Compare 2")
      : h("button.chip", { disabled: true }, "Select two to compare"),
  ];
  const isMarked = (/** @type {string} */ id) => ids.value.includes(id) || third.value === id;
  return { choose, isMarked, chips, dialog };
}

/** @param {Record<string, number>} others Numbers of evaluations by their signatures. */
function otherSignatures(others) {
  const links = Object.entries(others).map(([signature, many]) => [
    " ",
    h("button.link", { type: "button", onclick: () => change({ signature }) }, `${many} by ${signature}`),
  ]);
  return links.length > 0 && h("p.quiet", "Computed otherwise, and not comparable with these:", links);
}
