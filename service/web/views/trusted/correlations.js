/** How pre-gen scores correlate with post-gen scores on a split, over images and over models. */

import { h } from "../../core/dom.js";
import { head, scrolled } from "../../parts/layout.js";
import { time } from "../../parts/dates.js";
import { chance, number } from "../../parts/numbers.js";
import { badge } from "../../parts/states.js";

/** @typedef {import("../../core/api.js").Schemas["Correlations"]} Correlations */
/** @typedef {import("../../core/api.js").Schemas["Correlated"]} Correlated */

/** @param {Correlations} found */
export function correlations({ study, under_way, none_because }) {
  return [
    none_because && h("p", { class: "quiet" }, none_because),
    under_way &&
      h(
        "p",
        "A study is under way: ",
        badge(under_way.status),
        under_way.error && ` ${under_way.error.detail}`,
      ),
    study === null &&
      !none_because &&
      !under_way &&
      h("p", { class: "quiet" }, "There is no study of this split yet."),
    study && [
      h(
        "p",
        { class: "quiet" },
        `${study.evaluations.length} models, ${study.rows} rows, ${time(study.finished_at)}. R² is mostly about which images are hard; the agreement (Spearman) is about which model is better. With few models, a strong agreement of the best of many metrics may be chance.`,
      ),
      scrolled(
        "Table of correlations",
        h(
          "table",
          head([
            "Post-gen",
            "Share that is of images",
            "Pre-gen",
            "R² of images",
            "Agreement on models",
            "p",
            "Models",
          ]),
          Object.entries(study.metrics).map(([metric, each]) => correlated(metric, each)),
        ),
      ),
    ],
  ];
}

/** @param {string} metric @param {Correlated} found */
function correlated(metric, { of_images, reason, correlations }) {
  const about = (/** @type {number} */ rows) => [
    h("th", { scope: "rowgroup", rowspan: rows }, metric),
    h("td", { class: "number", rowspan: rows }, number(of_images)),
  ];
  if (!correlations.length)
    return h("tbody", h("tr", about(1), h("td", { colspan: 5 }, reason ?? "no correlation")));
  return h(
    "tbody",
    correlations.map((each, at) =>
      h(
        "tr",
        at === 0 && about(correlations.length),
        h("td", each.metric),
        h("td", { class: "number" }, number(each.r2)),
        h("td", { class: "number" }, number(each.spearman)),
        h("td", { class: "number" }, chance(each.spearman_p)),
        h("td", { class: "number" }, each.models),
      ),
    ),
  );
}
