/** Two evaluations of the same images: what differs, by how much, and on which images. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed, signal } from "../core/signals.js";
import { changed, place, query } from "../core/urls.js";
import { copyLink } from "../parts/command.js";
import { ago } from "../parts/dates.js";
import { folded, section, viewHead } from "../parts/layout.js";
import { byUsualOrder, metricName } from "../parts/metrics.js";
import { distinctNames, nameOrId } from "../parts/names.js";
import { number } from "../parts/numbers.js";
import { comparePlace, evaluationPlace, evaluationTabs, splitCrumbs } from "../parts/places.js";
import { comparedMetric, comparisonSentence } from "../parts/sentences.js";
import { allAnswered, answered, badge, failure, following, labels, refusalOf } from "../parts/states.js";
import { table } from "../parts/table.js";
import { forestAxis, forestBar, forestScale } from "../plots/forest.js";
import { searchField } from "./choice.js";
import { comparison } from "./compared/comparison.js";
import { differenceTable, sideHeads } from "./compared/differences.js";
import { byImages, images } from "./compared/images.js";

/** @typedef {Schemas["Comparison"]} Comparison */
/** @typedef {{ a: string, b: string, names: { value: { a: string, b: string } }, specs: { value: Map<string, Schemas["Score"]> } }} Both `specs`: scores of one side, which tell each metric's family and direction. */

const LATEST = 200; // evaluations among which one chooses
const USUAL = "cider_d";
const MOST_WORDS = 10; // of the most exchanged ones, among which the most frequent are named
const TEST =
  "p: the share of 10,000 trials, in which the two captions of each image change sides at random, that differ at least as much. The p of a leaderboard is of a faster test, and may differ a little.";

export function compare() {
  const [a, b] = [query("a"), query("b")];
  const made = comparison(
    () => a.value,
    () => b.value,
  );
  const [first, second] = [a, b].map((each) =>
    resource(() => each.value && place("/v1/evaluations", each.value)),
  );
  const distinct = computed(() =>
    distinctNames([first, second].map(({ answer }) => answer.value).filter(Boolean)),
  );
  const names = computed(() => ({
    a: distinct.value.get(a.value) ?? a.value,
    b: distinct.value.get(b.value) ?? b.value,
  }));
  const specs = computed(
    () => new Map(Object.entries(/** @type {Evaluation["scores"]} */ (first.answer.value?.scores ?? {}))),
  );
  const metric = computed(() => comparedMetric(made.answer.value?.scores ?? {}, specs.value) ?? null);
  const words = resource(() =>
    made.id.value && made.answer.value?.status === "succeeded" && metric.value
      ? place("/v1/comparisons", made.id.value, "words", { metric: metric.value, limit: MOST_WORDS })
      : null,
  );
  const isReady = computed(() => [first, second, made].every(({ answer }) => answer.value !== null));
  return {
    title: "Compare",
    crumbs: () => (first.answer.value ? [...splitCrumbs(first.answer.value.dataset), ["compare"]] : [["…"]]),
    content: h(
      "div.compared",
      viewHead({
        name: () => (isReady.value ? `${names.value.a} against ${names.value.b}` : "Compare two evaluations"),
        sentence: () =>
          isReady.value
            ? comparisonSentence({
                comparison: made.answer.value,
                ...names.value,
                specs: specs.value,
                words: byImages(words.answer.value?.items ?? []),
              })
            : null,
        tabs: () => (isReady.value || (!b.value && first.answer.value)) && evaluationTabs(a.value),
      }),
      () => {
        if (!a.value)
          return h(
            "p.notice",
            "Mark two evaluations on a leaderboard; ",
            h("a", { href: "/" }, "all leaderboards"),
            ".",
          );
        if (!b.value) return answered(first, others);
        return allAnswered([first, second, made], () => [
          h(
            "div.sides",
            side("A", first, () => names.value.a),
            h("div.bar", h("a.chip", { href: () => swapped(a.value, b.value) }, "⇄ Swap"), copyLink()),
            side("B", second, () => names.value.b),
          ),
          () =>
            made.id.value
              ? following(made, () =>
                  parts(() => made.answer.value, { a: a.value, b: b.value, names, specs }),
                )
              : refusalOf(made),
        ]);
      },
    ),
  };
}

/** The same with both sides exchanged, what is chosen of the images included. @param {string} a @param {string} b */
function swapped(a, b) {
  const [x0, x1, y0, y1] = query("brush").value.split(",");
  const other = { a: "b", b: "a", b_better: "a_better", a_better: "b_better" };
  const exchange = (/** @type {string} */ key) => other[/** @type {keyof typeof other} */ (key)] ?? key;
  return changed({
    a: b,
    b: a,
    brush: y1 === undefined ? null : [y0, y1, x0, x1].join(","),
    group: exchange(query("group").value),
    order: exchange(query("order").value),
  });
}

/** @param {string} side @param {Resource} found @param {() => string} name */
const side = (side, found, name) =>
  h(
    "div.card",
    { role: "group", "aria-label": side },
    answered(found, (/** @type {Evaluation} */ { id, labels, status, created_at }) => [
      h(
        "div.row",
        h("strong", `${side}: `, h("a", { href: evaluationPlace(id), title: id }, name)),
        h("span.quiet", badge(status), " ", ago(created_at)),
      ),
      h(
        "span.sub",
        h(
          "bdi",
          Object.entries(labels)
            .map((each) => each.join(" "))
            .join(", "),
        ),
      ),
    ]),
  );

/** With what an evaluation may be compared: the latest on its split, by their names. @param {Evaluation} run */
function others(run) {
  const dataset = `${run.dataset.name}/${run.dataset.split}`;
  const latest = resource(() =>
    place("/v1/evaluations", { dataset, status: "succeeded", metrics: USUAL, limit: LATEST }),
  );
  const wanted = signal("");
  const found = computed(() =>
    /** @type {Evaluation[]} */ (latest.answer.value?.items ?? []).filter(
      (each) => each.id !== run.id && textOf(each).toLowerCase().includes(wanted.value.toLowerCase()),
    ),
  );
  const names = computed(() => distinctNames(found.value));
  const name = (/** @type {Evaluation} */ { id }) =>
    h("a.main", { href: comparePlace(run.id, id), title: id }, names.value.get(id));
  return section(
    `Compare ${nameOrId(run.labels, run.id)} with`,
    h("div.bar", searchField("Find an evaluation by its name or labels", "a name or a label", wanted)),
    following(latest, () =>
      table(found, {
        name: "Evaluations",
        keyOf: ({ id }) => id,
        columns: [
          { head: "Evaluation", kind: "name", cell: name },
          {
            head: metricName(USUAL),
            kind: "number",
            phone: "value",
            cell: ({ scores }) => number(scores[USUAL]?.value, USUAL),
          },
          { head: "Labels", phone: "below", cell: (each) => labels(each.labels) },
          { head: "Submitted", cell: (each) => ago(each.created_at) },
        ],
        window: { what: "evaluations" },
      }),
    ),
  );
}

/** @param {Evaluation} run */
const textOf = ({ id, labels }) =>
  [nameOrId(labels, id), ...Object.entries(labels).map((each) => each.join("="))].join(" ");

/** @param {() => Comparison} run @param {Both} both */
const parts = (run, both) => [
  () => !run().finished_at && h("p.quiet", badge(run().status), " Metrics appear as they are computed."),
  () => failure(run().error),
  section("Differences", () => differences(run(), both)),
  () => run().finished_at && both.specs.value.size > 0 && images(run(), both),
];

/** @param {Comparison} run @param {Both} both */
function differences({ scores, dataset }, { names, specs }) {
  const rows = byUsualOrder(Object.keys(scores)).map((metric) => ({
    ...{ metric, ...scores[metric], detectable: scores[metric].minimum_detectable },
    higher: specs.value.get(metric)?.higher_is_better ?? null,
    signature: specs.value.get(metric)?.signature,
  }));
  const postgen = rows.filter(({ metric }) => specs.value.get(metric)?.family === "postgen");
  const others = rows.filter((row) => !postgen.includes(row));
  const forest = (/** @type {string} */ name, /** @type {typeof rows} */ shown) => {
    const scale = forestScale(shown);
    return differenceTable(shown, {
      name,
      heads: [...sideHeads(names.value), "A − B"],
      bar: {
        head: [h("span.hidden", "Difference by size"), forestAxis(scale, "A", "B")],
        cell: (row) => forestBar(row, scale),
      },
      aboutOf: ({ higher, signature }) => ({ higher, signature, dataset }),
    });
  };
  return [
    h("p.on-phone.quiet", "A − B. Bars: at the left B is better, at the right A."),
    forest("Table of differences", postgen),
    others.length > 0 &&
      folded(`Pre-gen metrics: ${others.length}`, forest("Table of differences by pre-gen metrics", others)),
    folded(
      "How to read this table",
      h(
        "p.quiet",
        `Bars: the difference with its 95 % interval; the line is 0. Shaded, “Detectable from”: less than 2.8 standard errors of the difference, which a test at 5 % finds in 80 of 100 such sets of images; each metric is drawn in this unit. ${TEST}`,
      ),
    ),
  ];
}
