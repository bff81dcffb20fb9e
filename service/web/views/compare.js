/** Two evaluations of the same images: what differs, by how much, and on which images. */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChangeOf } from "../core/live.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { changed, place, query } from "../core/urls.js";
import { fact, scrolled, section } from "../parts/layout.js";
import { nameOrId } from "../parts/names.js";
import { time } from "../parts/dates.js";
import { evaluationPlace, splitLink } from "../parts/places.js";
import { answered, badge, failure, following, labels, refusal } from "../parts/states.js";
import { forest } from "../plots/forest.js";
import { images } from "./compared/images.js";

/** @typedef {import("../core/api.js").Schemas["Comparison"]} Comparison */
/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["Score"]} Score */

export function compare() {
  const a = query("a");
  const b = query("b");
  const id = signal(/** @type {string | null} */ (null));
  const refused = signal(/** @type {Refused | null} */ (null));
  effect(() => {
    const [first, second] = [a.value, b.value];
    id.value = null;
    refused.value = null;
    if (!first || !second) return;
    const stop = new AbortController();
    onEnd(() => stop.abort());
    const again = { "Idempotency-Key": `"page ${first} ${second}"` }; // one comparison, however often one looks
    ask("/v1/comparisons", {
      method: "POST",
      json: { a: first, b: second },
      headers: again,
      signal: stop.signal,
    }).then(
      (made) => {
        id.value = made.id;
      },
      (error) => {
        if (error instanceof Refused) refused.value = error;
      },
    );
  });
  const [first, second] = [a, b].map((each) =>
    resource(() => each.value && place("/v1/evaluations", each.value)),
  );
  const found = resource(() => id.value && place("/v1/comparisons", id.value));
  onChangeOf(() => id.peek(), found.refresh);
  return {
    title: "Compare",
    content: h(
      "div",
      h("h1", "Compare two evaluations"),
      h("dl", { class: "facts" }, side("A", first), () => b.value && side("B", second)),
      () => a.value && b.value && h("p", h("a", { href: swapped() }, "Swap A and B")),
      () =>
        !a.value &&
        h(
          "p",
          { class: "notice" },
          "Mark two evaluations on a leaderboard, in its column “Compare”; ",
          h("a", { href: "/" }, "datasets and their leaderboards"),
          ".",
        ),
      () => a.value && !b.value && answered(first, (run) => others(run)),
      () => refused.value && refusal(refused.value),
      () => id.value && following(found, () => parts(() => found.answer.value, a, b, first)),
    ),
  };
}

/** The same with both sides exchanged, what is chosen of the images included. */
function swapped() {
  const [a, b] = [query("a").value, query("b").value];
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

/** @param {string} name @param {import("../parts/states.js").Resource} found */
const side = (name, found) =>
  fact(
    name,
    answered(found, (/** @type {Evaluation} */ run) => [
      h("a", { href: evaluationPlace(run.id) }, nameOrId(run.labels, run.id)),
      " ",
      badge(run.status),
      h("br"),
      labels(run.labels),
      h("br"),
      splitLink(run.dataset),
    ]),
  );

/** With what an evaluation may be compared: the latest on its split. @param {Evaluation} run */
function others(run) {
  const { name, split } = run.dataset;
  const latest = resource(() =>
    place("/v1/evaluations", { dataset: `${name}/${split}`, status: "succeeded", limit: 50 }),
  );
  return section(
    "Compare it with",
    answered(latest, ({ items }) =>
      h(
        "ul",
        items
          .filter((/** @type {Evaluation} */ each) => each.id !== run.id)
          .map((/** @type {Evaluation} */ each) =>
            h(
              "li",
              h(
                "a",
                { href: place("/ui/compare", { a: run.id, b: each.id }) },
                nameOrId(each.labels, each.id),
              ),
              " ",
              labels(each.labels),
              h("span", { class: "quiet" }, ` ${time(each.created_at)}`),
            ),
          ),
      ),
    ),
  );
}

/** @param {() => Comparison} run @param {{ value: string }} a @param {{ value: string }} b @param {import("../parts/states.js").Resource} first A's evaluation, which tells families and directions. */
function parts(run, a, b, first) {
  const specs = computed(
    () => new Map(Object.entries(/** @type {Record<string, any>} */ (first.answer.value?.scores ?? {}))),
  );
  return [
    () =>
      !run().finished_at &&
      h("p", { class: "quiet" }, badge(run().status), " Metrics appear as they are computed."),
    () => failure(run().error),
    section(
      "Differences",
      scrolled("Table of differences", () => differences(run().scores, specs.value)),
    ),
    () => run().finished_at && specs.value.size > 0 && images(run(), a, b, specs.value),
  ];
}

/** @param {Comparison["scores"]} scores @param {Map<string, Score>} specs Scores of one side, which tell each metric's family and direction. */
function differences(scores, specs) {
  const rows = Object.entries(scores).map(([metric, each]) => ({
    metric,
    ...each,
    detectable: each.minimum_detectable,
    higher: specs.get(metric)?.higher_is_better ?? null,
  }));
  return forest(rows, ({ metric }) =>
    specs.get(metric)?.family === "postgen"
      ? h("a", { href: changed({ metric, brush: null }) }, metric)
      : metric,
  );
}
