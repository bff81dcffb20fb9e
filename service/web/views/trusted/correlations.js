/** Pre-gen metrics that predict a post-gen metric on a split, over models and over images. */

import { h } from "../../core/dom.js";
import { ago } from "../../parts/dates.js";
import { term } from "../../parts/layout.js";
import { metricName, titleOf } from "../../parts/metrics.js";
import { chance, count, number, signed } from "../../parts/numbers.js";
import { splitPlace } from "../../parts/places.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";

/** @typedef {import("../../core/api.js").Schemas["Correlations"]} Correlations */
/** @typedef {import("../../core/api.js").Schemas["Correlation"]} Correlation */

const MOST = 10; // pre-gen metrics shown

/** @returns {import("../../parts/table.js").Column<Correlation>[]} */
const columns = () => [
  { head: "Pre-gen metric", kind: "name", cell: ({ metric }) => metricName(metric) },
  {
    head: term(
      "Agreement on models",
      "Spearman's rank correlation over models: 1 if both metrics order the models equally, −1 if one reverses the order of the other. With few models, the strongest of many metrics may be strong by chance.",
    ),
    kind: "number",
    phone: "value",
    shade: ({ spearman }) => (spearman === null ? null : Math.abs(spearman)),
    cell: ({ spearman }) => signed(spearman),
  },
  {
    head: term(
      "p",
      "How often a correlation this strong comes about by chance, for one metric chosen beforehand.",
    ),
    kind: "number",
    phone: "below",
    cell: ({ spearman_p }) => chance(spearman_p),
  },
  { head: "Models", kind: "number", cell: ({ models }) => count(models) },
  {
    head: term(
      "Agreement on images",
      "R² over strata of images: mostly about which images are hard, not about which model is better.",
    ),
    kind: "number",
    cell: ({ r2 }) => number(r2),
  },
];

/** @param {Correlation} found */
const strength = ({ spearman }) => Math.abs(spearman ?? 0);

/** @param {Correlations} found @param {string} target */
export function correlations({ dataset, study, under_way, none_because }, target) {
  if (!study)
    return h(
      "p",
      { class: "quiet" },
      none_because ?? (under_way ? "The first study is under way." : "There is no study of this split yet."),
    );
  const found = study.metrics[target];
  return [
    h(
      "p",
      { class: "quiet" },
      `${count(study.evaluations.length)} models, ${count(study.rows)} rows, `,
      ago(study.finished_at),
      typeof found?.of_images === "number" &&
        `. ${Math.round(100 * found.of_images)} % of the variance of ${titleOf(target)} is between images`,
      ". The strongest predictors of models come first; ",
      h("a", { href: splitPlace(dataset.name, dataset.split, "pregen") }, "all are on the map"),
      ".",
    ),
    found?.correlations.length
      ? table([...found.correlations].sort((one, other) => strength(other) - strength(one)).slice(0, MOST), {
          name: `Predictors of ${titleOf(target)}`,
          columns,
        })
      : h("p", { class: "quiet" }, found?.reason ?? `The study has no ${titleOf(target)}.`),
    under_way && h("p", "A study of more models is under way: ", badge(under_way.status)),
  ];
}
