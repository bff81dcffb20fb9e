/** The evaluations on one split, best first: ranks that differ only where a paired test says so. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed, signal } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { evaluationLink, nameOrId } from "../parts/names.js";
import { time } from "../parts/dates.js";
import { direction, interval, number } from "../parts/numbers.js";
import { runPlace, splitTabs } from "../parts/places.js";
import { answered, labels } from "../parts/states.js";
import { windowed } from "../parts/windowed.js";
import { finite, isOutside, outside } from "../plots/scale.js";
import { rangeOf, whisker } from "../plots/whisker.js";

/** @typedef {import("../core/api.js").Schemas["Standing"]} Standing */
/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["Score"]} Score */

const PAGE = 200;

/** @param {string} name @param {string} split */
export function leaderboard(name, split) {
  const metric = query("metric", "cider_d");
  const beside = query("metrics");
  const label = query("label");
  const signature = query("signature");
  const chosen = query("chosen");
  const url = computed(() => {
    const [mark, value] = parted(label.value);
    const marked = mark && value ? { [`label.${mark}`]: value } : {};
    return place("/v1/datasets", name, "leaderboard", {
      split,
      metric: metric.value,
      metrics: beside.value,
      signature: signature.value,
      limit: PAGE,
      ...marked,
    });
  });
  const board = pages(() => url.value);
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
  const latest = resource(() =>
    place("/v1/evaluations", { dataset: `${name}/${split}`, status: "succeeded", limit: 20 }),
  ); // tells which metrics there are
  const marks = resource(() => place("/v1/labels", { dataset: `${name}/${split}` }));
  const range = computed(() => rangeOf(board.items.value));
  const columns = computed(() => beside.value.split(",").filter(Boolean));
  const selected = computed(() => chosen.value.split(",").filter(Boolean));
  const choose = (/** @type {Standing} */ { evaluation }) => {
    const rest = selected.value.filter((id) => id !== evaluation);
    chosen.value = (rest.length < selected.value.length ? rest : [...rest.slice(-1), evaluation]).join(",");
  };
  const field = h("input", {
    name: "label",
    value: label.value,
    list: "labels",
    placeholder: "NAME=VALUE",
    pattern: ".+=.+",
    title: "a label and its value, as branch=main",
    spellcheck: "false",
  });
  onKey("/", "filter by a label", () => field.focus());
  const table = windowed(board.items, {
    columns: () => [
      "Rank",
      "Compare",
      "Evaluation",
      "Score",
      "Interval",
      "Plot",
      ...columns.value,
      "Labels",
      "Submitted",
    ],
    keyOf: (item) => item.evaluation,
    cells: (item) => cells(item, { metric, range, columns, selected, choose }),
    name: "Leaderboard",
    what: "evaluations",
    more: board.more,
    hasMore: () => board.next.value !== null,
    keys: { c: ["choose this evaluation to compare it", choose] },
  });
  return {
    title: `${name}/${split}`,
    content: h(
      "div",
      h("h1", `${name}/${split}`),
      splitTabs(name, split),
      h(
        "form",
        {
          class: "asked",
          onsubmit: (/** @type {Event} */ event) => {
            event.preventDefault();
            label.value = field.value.trim();
          },
        },
        h(
          "label",
          "Ranked by ",
          h(
            "select",
            {
              onchange: (/** @type {any} */ { target }) => change({ metric: target.value, signature: null }),
            },
            () =>
              names(latest, metric.value).map((each) =>
                h("option", { value: each, selected: each === metric.value }, each),
              ),
          ),
        ),
        h(
          "label",
          "Also show ",
          h("input", {
            value: beside.value,
            placeholder: "bleu_4,meteor",
            spellcheck: "false",
            onchange: (/** @type {any} */ { target }) => {
              beside.value = target.value.replaceAll(" ", "");
            },
          }),
        ),
        h("label", "Label ", field),
        h("datalist", { id: "labels" }, () => options(marks)),
        h("button", "Filter"),
      ),
      () => trainings(marks, name, split),
      () => selected.value.length > 0 && comparing(selected.value, chosen, board.items.value),
      () =>
        isOlder.value &&
        h(
          "p",
          { class: "notice" },
          "There are newer scores. ",
          h("button", { type: "button", onclick: refresh }, "Show them"),
        ),
      answered(board, () => [
        () => about(board),
        () => {
          const scores = finite(board.items.value.map(({ value }) => value));
          return outside(scores.filter((value) => isOutside(range.value, value)).length, scores.length);
        },
        () =>
          board.items.value.length === 0 &&
          h("p", { class: "quiet" }, board.answer.value?.none_because ?? "No evaluation has this score."),
        table,
      ]),
    ),
  };
}

/** A label's name, and its value, which may hold a `=`. @param {string} text */
function parted(text) {
  const at = text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {import("../parts/states.js").Resource} marks @returns {{ name: string, values: { value: string, evaluations: number }[] }[]} */
const known = (marks) => marks.answer.value?.items ?? [];

/** @param {import("../parts/states.js").Resource} marks */
const options = (marks) =>
  known(marks).flatMap(({ name, values }) =>
    values.map(({ value }) => h("option", { value: `${name}=${value}` })),
  );

/** @param {import("../parts/states.js").Resource} marks @param {string} name @param {string} split */
function trainings(marks, name, split) {
  const runs = known(marks).find((each) => each.name === "run")?.values ?? [];
  return (
    runs.length > 0 &&
    h(
      "p",
      "Trainings: ",
      runs.map(({ value, evaluations }) => [
        h("a", { href: runPlace(name, split, value) }, value),
        ` (${evaluations}) `,
      ]),
    )
  );
}

/** @param {string[]} selected @param {{ value: string }} chosen @param {Standing[]} items */
function comparing(selected, chosen, items) {
  const [a, b] = selected;
  const name = (/** @type {string} */ id) =>
    nameOrId(items.find(({ evaluation }) => evaluation === id)?.labels, id);
  return h(
    "p",
    { class: "notice" },
    b
      ? h("a", { href: place("/ui/compare", { a, b }) }, `Compare ${name(a)} with ${name(b)}`)
      : `${name(a)} is marked: mark another to compare it with.`,
    " ",
    h("button", { type: "button", onclick: () => (chosen.value = "") }, "Clear"),
  );
}

/** Metrics that the latest evaluations have. @param {import("../parts/states.js").Resource} latest @param {string} chosen */
function names(latest, chosen) {
  const scores = (latest.answer.value?.items ?? []).flatMap((/** @type {Evaluation} */ each) =>
    Object.entries(each.scores),
  );
  const ranked = scores.filter(
    (/** @type {[string, Score]} */ [, each]) => each.family === "postgen" && each.higher_is_better !== null,
  );
  return [...new Set([chosen, ...ranked.map((/** @type {[string, Score]} */ [metric]) => metric)])];
}

/** @param {ReturnType<typeof pages>} board */
function about(board) {
  const found = board.answer.value;
  const others = Object.entries(found?.others ?? {});
  return h(
    "p",
    { class: "quiet" },
    `${direction(found?.higher_is_better)}; `,
    h("code", found?.signature ?? "no signature"),
    others.length > 0 && [
      "; computed otherwise and not comparable: ",
      others.map(([signature, many]) =>
        h(
          "button",
          { type: "button", class: "link", onclick: () => change({ signature }) },
          `${signature} (${many})`,
        ),
      ),
    ],
  );
}

/**
 * @param {() => Standing} item
 * @param {{ metric: { value: string }, range: { value: [number, number] }, columns: { value: string[] }, selected: { value: string[] }, choose: (item: any) => void }} how
 */
function cells(item, { metric, range, columns, selected, choose }) {
  return [
    h("td", { class: "number" }, () => `${item().rank}${item().tied ? "=" : ""}`),
    h(
      "td",
      h("input", {
        type: "checkbox",
        ".checked": () => selected.value.includes(item().evaluation),
        "aria-label": () => `Compare ${item().evaluation}`,
        onchange: () => choose(item()),
      }),
    ),
    h("th", { scope: "row" }, () => evaluationLink(item().evaluation, item().labels)),
    h("td", { class: "number" }, () => number(item().value, metric.value)),
    h("td", { class: "number" }, () => interval(item().interval, metric.value)),
    h("td", () => whisker(item(), range.value, { metric: metric.value })),
    () => columns.value.map((name) => h("td", { class: "number" }, number(item().scores[name]?.value, name))),
    h("td", () => labels(item().labels)),
    h("td", () => time(item().created_at)),
  ];
}
