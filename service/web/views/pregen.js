/** The 672 pre-gen metrics as one map of their four tiers, and how well each ranks a team's models. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { scrolled, select } from "../parts/layout.js";
import { number } from "../parts/numbers.js";
import { splitPlace, splitTabs } from "../parts/places.js";
import { answered, following } from "../parts/states.js";
import { heat } from "../plots/heat.js";

/** @typedef {import("../core/api.js").Schemas["Metric"]} Metric */
/** @typedef {import("../core/api.js").Schemas["Correlation"]} Correlation */

const FILTERS = ["none", "filter0", "prefix0", "miss0"];
const CAPTION = ["prob", "pplx", "count", "normcount"];
const IMAGE = ["sum", "mean", "median", "geomean", "max", "min", "join"];
const DATASET = ["sum", "mean", "median", "geomean", "max", "min"];
const TIERS = [
  [
    "1, tokens",
    "none: all of a caption; filter0: those of rank 0; prefix0: the longest prefix of rank 0; miss0: those of another rank",
  ],
  [
    "2, captions",
    "prob: the product of probabilities; pplx: perplexity; count: how many tokens; normcount: the count, divided by the caption's length",
  ],
  [
    "3, images",
    "sum, mean, median, geomean, max, min over an image's captions; join: skip this step and aggregate over all captions",
  ],
  ["4, the dataset", "sum, mean, median, geomean, max, min over images"],
];
const SHOWN = [
  ["spearman", "Agreement on which model is better (Spearman)"],
  ["r2", "Variance over strata of images (R²)"],
];

/** @param {string} name @param {string} split */
export function pregen(name, split) {
  const target = query("of", "cider_d");
  const shown = query("shown", "spearman");
  const chosen = query("metric", "mean_max_normcount_prefix0");
  const study = resource(() => place("/v1/datasets", name, "correlations", { split, limit: 1000 }));
  const known = resource(() => "/v1/metrics");
  const definitions = computed(
    () => new Map((known.answer.value?.items ?? []).map((/** @type {Metric} */ each) => [each.name, each])),
  );
  const targets = computed(() => Object.keys(study.answer.value?.study?.metrics ?? {}));
  const found = computed(
    () =>
      new Map(
        (study.answer.value?.study?.metrics[target.value]?.correlations ?? []).map(
          (/** @type {Correlation} */ each) => [each.metric, each],
        ),
      ),
  );
  return {
    title: `Pre-gen scores on ${name}/${split}`,
    content: h(
      "div",
      h("h1", `Pre-gen scores on ${name}/${split}`),
      splitTabs(name, split),
      h(
        "p",
        "A name is read from tier 4 to tier 1: mean_max_normcount_prefix0 is the mean over images of the largest share of an image's captions that the model would have written itself, word by word from the first.",
      ),
      h(
        "dl",
        { class: "facts" },
        TIERS.map(([tier, text]) => h("div", h("dt", `Tier ${tier}`), h("dd", text))),
      ),
      answered(
        study,
        ({ study: made, none_because }) =>
          !made &&
          h(
            "p",
            { class: "notice" },
            none_because ?? "There is no study of this split yet: the map has no numbers. ",
            h("a", { href: splitPlace(name, split, "trust") }, "Study the correlations"),
          ),
      ),
      h(
        "form",
        { class: "asked", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
        h(
          "label",
          "Correlated with ",
          select(() => [...new Set([target.value, ...targets.value])].map((each) => [each, each]), target),
        ),
        h(
          "label",
          "Shown ",
          select(() => SHOWN, shown),
        ),
      ),
      legend(),
      h("p", { role: "status", class: "pinned" }, () =>
        told(definitions.value.get(chosen.value), found.value.get(chosen.value), target.value),
      ),
      following(study, () => scrolled("Map of pre-gen metrics", () => map(found.value, shown.value, chosen))),
    ),
  };
}

/** @param {Metric | undefined} spec @param {Correlation | undefined} correlation @param {string} target */
function told(spec, correlation, target) {
  if (!spec) return null;
  const how = correlation
    ? ` With ${target}: Spearman ${number(correlation.spearman)} over ${correlation.models} models; R² ${number(correlation.r2)} over strata of images.`
    : "";
  return [h("strong", spec.name), `: ${spec.definition}${how}`];
}

/** Columns are tiers 1 and 2, rows tiers 3 and 4. @param {Map<string, any>} found @param {string} shown @param {{ value: string }} chosen */
function map(found, shown, chosen) {
  const pairs = (/** @type {string[]} */ first, /** @type {string[]} */ second) =>
    first.flatMap((a) => second.map((b) => `${a}_${b}`));
  return heat({
    rows: pairs(DATASET, IMAGE),
    columns: pairs(CAPTION, FILTERS),
    at: (row, column) => `${row}_${column}`,
    share: (name) => found.get(name)?.[shown] ?? null,
    told: (name) => `${name}: ${number(found.get(name)?.[shown])}`,
    chosen: (name) => name === chosen.value,
    choose: (name) => change({ metric: name }),
    name: "Pre-gen metrics: rows are tiers 4 and 3, columns tiers 2 and 1",
  });
}

const legend = () =>
  h(
    "p",
    { class: "quiet" },
    [
      ["over", "positive"],
      ["under", "negative"],
      ["none", "no number"],
    ].map(([name, text]) => [h("span", { class: ["swatch", name], "aria-hidden": "true" }), text]),
    "; the darker, the stronger. Arrow keys go through the map.",
  );
