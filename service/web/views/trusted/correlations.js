/** Pre-gen metrics that predict a post-gen metric on a split, over models and over images. */

import { h } from "../../core/dom.js";
import { ago } from "../../parts/dates.js";
import { term } from "../../parts/layout.js";
import { metricName, titleOf, wordsOf } from "../../parts/metrics.js";
import { number, signed } from "../../parts/numbers.js";
import { splitPlace } from "../../parts/places.js";
import { plural } from "../../parts/sentences.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";

/** @typedef {Schemas["Correlation"]} Correlation */

const MOST = 10; // pre-gen metrics shown
const ON_MODELS =
  "Spearman's rank correlation over models: 1 if both metrics order the models equally, −1 if one reverses the order of the other. With few models, the strongest of many metrics may be strong by chance.";
const ON_IMAGES =
  "R² over strata of images: mostly about which images are hard, not about which model is better.";

/** @returns {Column<Correlation>[]} */
const columns = () => [
  {
    head: "Pre-gen metric",
    kind: "name",
    cell: ({ metric }) => [
      wordsOf(metric) !== titleOf(metric) && wordsOf(metric),
      h("span.sub", metricName(metric)),
    ],
  },
  {
    head: term("Agreement on models (Spearman)", ON_MODELS),
    kind: "number",
    phone: "value",
    cell: ({ spearman, models }) => h("span", { title: `Over ${plural(models, "model")}` }, signed(spearman)),
  },
  { head: term("Agreement on images (R²)", ON_IMAGES), kind: "number", cell: ({ r2 }) => number(r2) },
];

/** @param {Correlation} found */
const strength = ({ spearman }) => Math.abs(spearman ?? 0);

/** The strongest of these over models. @param {readonly Correlation[]} found @param {string} target */
export const strongestTable = (found, target) => [
  h("p.quiet.on-phone", "Beside each metric: Spearman over models."),
  table([...found].sort((one, other) => strength(other) - strength(one)).slice(0, MOST), {
    name: `Predictors of ${titleOf(target)}`,
    columns,
  }),
];

/** @param {Schemas["Correlations"]} found @param {string} target */
export function correlations({ dataset, study, under_way, none_because }, target) {
  if (!study) {
    const why = under_way ? "The first study is under way." : "There is no study of this split yet.";
    return !none_because && h("p.quiet", why); // the view's sentence tells a hindrance
  }
  const title = titleOf(target);
  const { of_images: share, correlations: found, reason } = study.metrics[target] ?? {};
  return [
    h(
      "p.quiet",
      `${plural(study.evaluations.length, "model")}, studied `,
      ago(study.finished_at),
      typeof share === "number" &&
        `. Differences between images make ${Math.round(100 * share)} % of the variance of ${title}`,
      ". The strongest predictors of models come first; ",
      h("a", { href: splitPlace(dataset.name, dataset.split, "pregen") }, "all are on the map"),
      ".",
    ),
    found?.length ? strongestTable(found, target) : h("p.quiet", reason ?? `The study has no ${title}.`),
    under_way && h("p", "A study of more models is under way: ", badge(under_way.status)),
  ];
}
