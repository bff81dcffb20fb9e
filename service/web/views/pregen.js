/** The pre-gen metrics as one map of their four tiers, and how well each predicts a post-gen metric. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed } from "../core/signals.js";
import { change, place, query } from "../core/urls.js";
import { fact, folded, view } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { number } from "../parts/numbers.js";
import { splitCrumbs, splitPlace, splitTabs } from "../parts/places.js";
import { pregenSentence, strongest } from "../parts/sentences.js";
import { heat } from "../plots/heat.js";
import { choice, targetChoice } from "./choice.js";
import { strongestTable } from "./trusted/correlations.js";

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
  ["spearman", "Agreement on models (Spearman)"],
  ["r2", "Agreement on images (R²)"],
];

/** @param {string} name @param {string} split */
export function pregen(name, split) {
  const target = query("of", "cider_d");
  const shown = query("shown", "spearman");
  const asked = query("metric");
  const found = resource(() => place("/v1/datasets", name, "correlations", { split, limit: 1000 }));
  const known = resource(() => "/v1/metrics");
  const study = computed(() => found.answer.value?.study ?? null);
  const correlations = computed(() => by("metric", study.value?.metrics[target.value]?.correlations ?? []));
  const best = computed(() => strongest([...correlations.value.values()])?.metric);
  const chosen = computed(() => asked.value || best.value || "mean_max_normcount_prefix0");
  const metrics = computed(() => by("name", known.answer.value.items));
  return view(
    {
      title: `Pre-gen metrics on ${name}/${split}`,
      name: "Pre-gen metrics",
      crumbs: () => [...splitCrumbs({ name, split }), ["Pre-gen metrics"]],
      sentence: () =>
        found.answer.value && pregenSentence({ correlations: found.answer.value, target: target.value }),
      tabs: splitTabs(name, split),
      kind: "long",
      needs: [found, known],
    },
    () => [
      () => !study.value && !found.answer.value.none_because && noStudy(name, split),
      targetChoice(() => Object.keys(study.value?.metrics ?? {}), target),
      choice("Shown", () => SHOWN, shown),
      h(
        "div.mapped",
        h(
          "div.aside",
          h(
            "div.pinned",
            h("p", { role: "status" }, () =>
              told(
                chosen.value,
                metrics.value.get(chosen.value)?.definition,
                correlations.value.get(chosen.value),
                target.value,
              ),
            ),
            () => legend(shown.value),
          ),
          tiers(),
          () =>
            correlations.value.size > 0 && [
              strongestTable([...correlations.value.values()], target.value),
              h("p.quiet.on-phone", "The map of all metrics, which goes on to the right:"),
            ],
        ),
        h("div.scrolled", { tabindex: "0", role: "region", "aria-label": "Map of pre-gen metrics" }, () =>
          map(correlations.value, shown.value, chosen),
        ),
      ),
    ],
  );
}

/** Items by the values of a field. @param {string} field @param {any[]} items @returns {Map<string, any>} */
const by = (field, items) => new Map(items.map((each) => [each[field], each]));

/** @param {string} name @param {string} split */
const noStudy = (name, split) =>
  h("p.notice", h("a", { href: splitPlace(name, split, "trust") }, "Study the correlations"));

/** @param {string} metric @param {string | undefined} definition @param {Schemas["Correlation"] | undefined} correlation @param {string} target */
const told = (metric, definition, correlation, target) => [
  h("strong", metricName(metric)),
  `: ${definition ?? "The service has no definition of this metric."}`,
  correlation &&
    ` With ${titleOf(target)}: Spearman ${number(correlation.spearman)} over ${correlation.models} models; R² ${number(correlation.r2)} over strata of images.`,
];

/** Columns are tiers 1 and 2, rows tiers 3 and 4. @param {Map<string, any>} found @param {string} shown @param {{ value: string }} chosen */
function map(found, shown, chosen) {
  const pairs = (/** @type {string[]} */ first, /** @type {string[]} */ second) =>
    first.flatMap((a) => second.map((b) => `${a}_${b}`));
  const rows = pairs(DATASET, IMAGE);
  const columns = pairs(CAPTION, FILTERS);
  const isFilled = (/** @type {string} */ column) =>
    rows.some((row) => typeof found.get(`${row}_${column}`)?.[shown] === "number");
  const filled = columns.filter(isFilled);
  const empty = columns.filter((each) => !filled.includes(each));
  const grid = heat({
    rows,
    columns: filled.length ? filled : columns,
    at: (row, column) => `${row}_${column}`,
    share: (name) => found.get(name)?.[shown] ?? null,
    told: (name) => `${name}: ${number(found.get(name)?.[shown])}`,
    chosen: (name) => name === chosen.value,
    choose: (name) => change({ metric: name }),
    name: "Pre-gen metrics: rows are tiers 4 and 3, columns tiers 2 and 1",
  });
  const isShortened = filled.length > 0 && empty.length > 0;
  return [grid, isShortened && h("p.quiet", `No number for any: ${empty.join(", ")}.`)];
}

/** @param {string} shown */
const legend = (shown) =>
  h(
    "p.quiet",
    shown === "spearman" && ["−1 ", h("span.ramp.under", { "aria-hidden": "true" }), " "],
    "0 ",
    h("span.ramp.over", { "aria-hidden": "true" }),
    shown === "spearman" ? " +1; " : " 1; ",
    h("span.swatch.none", { "aria-hidden": "true" }),
    "no number. Select a cell, also by arrow keys.",
  );

const tiers = () =>
  folded(
    "How a name is read: four tiers",
    h(
      "p",
      "From tier 4 to tier 1: mean_max_normcount_prefix0 is the mean over images of the largest share of an image's captions that the model would have written itself, word by word from the first.",
    ),
    h(
      "dl.facts",
      TIERS.map(([tier, text]) => fact(`Tier ${tier}`, text)),
    ),
  );
