/** The gates of an evaluation: the verdict, the baseline, and what difference could be seen. */

import { h } from "../../core/dom.js";
import { table } from "../../parts/layout.js";
import { chance, interval, number } from "../../parts/numbers.js";
import { evaluationPlace } from "../../parts/places.js";
import { badge } from "../../parts/states.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */

/** @param {Evaluation} run */
export function gates(run) {
  return run.gates.map((gate) =>
    h(
      "article",
      { class: "gate" },
      h("h3", h("code", gate.gate), " ", badge(gate.verdict)),
      gate.detail && h("p", gate.detail),
      gate.no_baseline && h("p", { class: "quiet" }, "There was no baseline to compare with."),
      gate.baseline_failed && h("p", { class: "quiet" }, "The baseline failed its own gates."),
      table(
        `Table of the gate ${gate.gate}`,
        ["Metric", "Score", "Baseline", "Difference", "p", "Detectable from"],
        Object.entries(/** @type {Record<string, any>} */ (gate.scores)).map(([name, each]) =>
          h(
            "tr",
            h("th", { scope: "row" }, name),
            h("td", { class: "number" }, `${number(each.value, name)} ${interval(each.interval, name)}`),
            h(
              "td",
              { class: "number" },
              each.evaluation
                ? h("a", { href: evaluationPlace(each.evaluation) }, number(each.baseline, name))
                : number(each.baseline, name),
            ),
            h("td", { class: "number" }, number(each.difference, name)),
            h("td", { class: "number" }, chance(each.p)),
            h("td", { class: "number" }, number(each.minimum_detectable, name)),
          ),
        ),
      ),
    ),
  );
}
