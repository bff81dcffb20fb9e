/** Two evaluations of the same images: what differs, by how much, and on which images. */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { changed, place, query } from "../core/urls.js";
import { scrolled, section } from "../parts/layout.js";
import { evaluationPlace, splitPlace } from "../parts/places.js";
import { answered, badge, failure, following, labels, refusal } from "../parts/states.js";
import { forest } from "../plots/forest.js";
import { images } from "./compared/images.js";

/** @typedef {import("../core/api.js").Schemas["ComparisonOut"]} Comparison */
/** @typedef {import("../core/api.js").Schemas["ScoreOut"]} Score */

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
  const found = resource(() => id.value && place("/v1/comparisons", id.value));
  onChange((told) => {
    if (id.peek() && (!told || told.id === id.peek())) found.refresh();
  });
  return {
    title: "Compare",
    content: h(
      "div",
      {},
      h("h1", {}, "Compare two evaluations"),
      h("dl", { class: "facts" }, side("A", a), side("B", b)),
      h("p", {}, h("a", { href: () => changed({ a: b.value, b: a.value }) }, "Swap A and B")),
      () =>
        !(a.value && b.value) &&
        h(
          "p",
          { class: "notice" },
          "Choose two evaluations on a leaderboard: mark them in the column “Compare”.",
        ),
      () => refused.value && refusal(refused.value),
      () => id.value && following(found, () => parts(() => found.answer.value, a, b)),
    ),
  };
}

/** @param {string} name @param {{ value: string }} id */
function side(name, id) {
  const found = resource(() => id.value && place("/v1/evaluations", id.value));
  return h(
    "div",
    {},
    h("dt", {}, name),
    h(
      "dd",
      {},
      () => id.value && h("a", { href: evaluationPlace(id.value) }, id.value),
      " ",
      answered(found, (run) => [
        badge(run.status),
        " ",
        labels(run.labels),
        h("br", {}),
        h(
          "a",
          { href: splitPlace(run.dataset.name, run.dataset.split) },
          `${run.dataset.name}/${run.dataset.split}`,
        ),
      ]),
    ),
  );
}

/** @param {() => Comparison} run @param {{ value: string }} a @param {{ value: string }} b */
function parts(run, a, b) {
  const first = resource(() => a.value && place("/v1/evaluations", a.value)); // tells families and directions
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
      ? h("a", { href: changed({ metric, brush: null, group: null }) }, metric)
      : metric,
  );
}
