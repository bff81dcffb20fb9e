/** What metrics say of captions whose quality is known: a table for each probe, and the health. */

import { resource } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { place } from "../../core/urls.js";
import { table } from "../../parts/layout.js";
import { time } from "../../parts/dates.js";
import { isShown, number } from "../../parts/numbers.js";
import { answered } from "../../parts/states.js";

/** @typedef {import("../../core/api.js").Schemas["ProbeRow"]} Row */
/** @typedef {import("../../core/api.js").Schemas["MetricHealth"]} Health */

/** @param {string} id */
export function probed(id) {
  const found = resource(() => place("/v1/probes", id));
  return answered(found, ({ health, probes, finished_at }) => [
    h("p", { class: "quiet" }, `Run at ${time(finished_at)}.`),
    health && healthTable(health),
    Object.entries(probes).map(([probe, rows]) =>
      h("details", h("summary", `Probe ${probe}`), probeTable(probe, rows)),
    ),
  ]);
}

/** @type {["human" | "constant" | "constant_of_human" | "rare_of_human", string][]} */
const HEALTH = [
  ["human", "People's captions"],
  ["constant", "One caption for all images"],
  ["constant_of_human", "… by people's references, as a share of people's"],
  ["rare_of_human", "Drop without rare words"],
];

/** @param {Record<string, Health>} health */
function healthTable(health) {
  return table(
    "Table of health",
    ["Metric", ...HEALTH.map(([, text]) => text)],
    Object.entries(health).map(([metric, each]) =>
      h(
        "tr",
        h("th", { scope: "row" }, metric),
        HEALTH.map(([key]) => h("td", { class: "number" }, number(each[key]))),
      ),
    ),
  );
}

/** @param {string} probe @param {Row[]} rows */
function probeTable(probe, rows) {
  const metrics = Object.keys(rows[0]?.scores ?? {});
  return table(
    `Probe ${probe}`,
    ["Captions", "Replaced", ...metrics],
    rows.map((row) =>
      h(
        "tr",
        h(
          "th",
          { scope: "row" },
          row.name,
          row.text && h("bdi", { class: "quiet" }, ` “${row.text}”`),
          (row.note || row.reason) && h("span", { class: "quiet" }, ` ${row.note || row.reason}`),
        ),
        h("td", { class: "number" }, number(row.share)),
        metrics.map((metric) =>
          h(
            "td",
            { class: "number" },
            number(row.scores[metric]),
            isShown(row.drop[metric]) && h("span", { class: "quiet" }, ` −${number(row.drop[metric])}`),
          ),
        ),
      ),
    ),
  );
}
