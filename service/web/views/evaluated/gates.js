/** The gates of an evaluation: the verdict, the difference against the margin, and the images that fell most. */

import { h } from "../../core/dom.js";
import { section } from "../../parts/layout.js";
import { titleOf } from "../../parts/metrics.js";
import { imagePlace } from "../../parts/places.js";
import { gateFinding, gateName, gateReason } from "../../parts/sentences.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { axis, intervalBar, markLabels } from "../../plots/intervals.js";
import { extent, padded } from "../../plots/scale.js";
import { differenceTable, imageColumns, imageRow } from "../compared/differences.js";

/** @typedef {Schemas["Gate"]} Gate */

/** Why it was decided so: of its largest loss, else as the service tells it, without ids. @param {Gate} gate @param {Evaluation} run @param {(id: string) => string} nameOf */
function reasonOf(gate, run, nameOf) {
  const lossOf = (/** @type {[string, Schemas["GateScore"]]} */ [metric, { difference, baseline }]) =>
    ((run.scores[metric]?.higher_is_better === false ? 1 : -1) * Number(difference)) /
    (Math.abs(Number(baseline)) || 1);
  const [worst] = Object.entries(gate.scores)
    .filter(([, { difference }]) => difference !== null)
    .sort((one, other) => lossOf(other) - lossOf(one));
  if (!worst) return gateReason(gate);
  const [metric, { difference, difference_interval: interval, margin, evaluation }] = worst;
  const found = { metric, difference, interval, margin };
  return gateFinding(gate.gate, found, evaluation ? nameOf(evaluation) : undefined);
}

/** The evaluation with gates whose details are fit to be read. @param {Evaluation} run @param {(id: string) => string} nameOf @returns {Evaluation} */
export const withReasons = (run, nameOf) => ({
  ...run,
  gates: run.gates.map((gate) => ({ ...gate, detail: reasonOf(gate, run, nameOf) })),
});

/** @param {Evaluation} run @param {string | undefined} told What the sentence above tells already. */
export const gates = (run, told) =>
  run.gates.length > 0 &&
  section(
    "Gates",
    run.gates.map((gate) => gateTable(gate, run, told)),
  );

/** @param {Gate} gate @param {Evaluation} run @param {string | undefined} told */
function gateTable(gate, run, told) {
  const rows = Object.entries(gate.scores).map(([metric, each]) => {
    const higher = run.scores[metric]?.higher_is_better ?? true;
    return {
      ...{ metric, higher, a: each.value, b: each.baseline, difference: each.difference, p: each.p },
      interval: each.difference_interval,
      detectable: each.minimum_detectable,
      margin: each.margin === null ? null : higher ? -each.margin : each.margin, // where it fails
    };
  });
  const range = padded(
    extent(rows.flatMap(({ difference, margin, interval }) => [0, difference, margin, ...(interval ?? [])])),
  );
  const reasons = [
    gate.detail,
    gate.no_baseline && "There was no baseline to compare with.",
    gate.baseline_failed && "The baseline failed its own gates.",
  ];
  return h(
    "article.gate",
    h("h3", h("span", { title: gate.gate }, gateName(gate.gate)), " ", badge(gate.verdict)),
    reasons.map((reason) => reason && !told?.includes(reason) && h("p.quiet", reason)),
    differenceTable(rows, {
      name: `Table of the gate ${gateName(gate.gate)}`,
      heads: ["Score", "Baseline", "Difference"],
      bar: {
        head: ["Against the margin", axis(range)],
        cell: ({ metric, difference, interval, margin }) =>
          difference !== null && [
            intervalBar({ value: difference, interval }, range, {
              metric,
              marks: { "no difference": 0, "the margin": margin },
            }),
            markLabels(margin, metric, range),
          ],
      },
      aboutOf: () => ({ dataset: run.dataset }),
    }),
  );
}

/** The images that fell most against the baseline of a failed gate. @param {string} id @param {Schemas["CaptionDrops"] | null} drops */
export function fallenImages(id, drops) {
  const { metric = null, baseline = null, images = [] } = drops ?? {};
  if (!metric || !baseline || !images.length) return null;
  const rows = images.map((each) => imageRow(each, metric));
  return section(
    `Images that fell most by ${titleOf(metric)}`,
    table(rows, {
      name: "Images that fell most",
      columns: imageColumns(
        ["Here", "Baseline", "Difference", "Caption here", "Caption of the baseline"],
        () => metric,
        ({ image }) => imagePlace(id, image, { with: baseline }),
        ["Here:", "Baseline:"],
      ),
    }),
  );
}
