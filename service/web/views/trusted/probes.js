/** Captions whose quality is known: how healthy metrics are, and a folded table for each probe. */

import { h } from "../../core/dom.js";
import { ago } from "../../parts/dates.js";
import { folded, term } from "../../parts/layout.js";
import { byUsualOrder, metricName, titleOf } from "../../parts/metrics.js";
import { isShown, number, signed } from "../../parts/numbers.js";
import { table } from "../../parts/table.js";
import { filled } from "./filled.js";

/** @typedef {Schemas["ProbeRow"]} Row */
/** @typedef {Schemas["MetricHealth"]} Health */

const TITLES = /** @type {Record<string, string>} */ ({
  human: "People against other people",
  frequent: "A frequent word made unknown",
  rare: "Rare words made unknown",
  swap: "One word in the place of another",
  random: "Words replaced at random",
  single: "One caption for all images",
});
const ROWS = /** @type {Record<string, string>} */ ({
  RvR: "People's captions against other people's",
  SvR: "The captioner's against the same",
  "R1 unchanged": "People's captions as they are",
  "single sentence": "One caption for all images",
  "single sentence, as RvR": "One caption, against the references of people's captions",
  random: "Words replaced at random",
});

/** @param {Schemas["Probes"]} run @param {{ value: string }} target */
export const probed = ({ health, probes, finished_at }, target) => [
  () => health && healthTable(health, target.value),
  h("p.quiet", "Probes were run ", ago(finished_at), "."),
  Object.entries(probes).map(([probe, rows]) => {
    const title = TITLES[probe] ?? probe;
    const told = h("span.quiet", () => reading(rows, target.value));
    return folded([title, told], () => probeTable(title, rows, target.value));
  }),
];

/** What a probe's table shows of one metric. @param {Row[]} rows @param {string} metric */
export function reading(rows, metric) {
  const title = titleOf(metric);
  const of = rows[0]?.scores[metric];
  if (typeof of !== "number") return `: ${notMeasured(rows)}`;
  const dropOf = (/** @type {Row} */ row) => row.drop[metric] ?? -Infinity;
  const worst = rows.reduce((one, other) => (dropOf(other) > dropOf(one) ? other : one));
  const drop = dropOf(worst);
  if (drop === -Infinity)
    return `: ${rows.some(({ reason }) => reason) ? notMeasured(rows) : `${title} ${number(of, metric)}`}`;
  return isShown(drop)
    ? `: ${worst.name in ROWS ? "it" : `“${nameOfRow(worst)}”`} lowers ${title} by ${number(drop, metric)}, from ${number(of, metric)} of unchanged captions`
    : `: no loss in ${title}`;
}

/** That a probe has no score, and why. @param {Row[]} rows */
function notMeasured(rows) {
  const reason = rows.find((row) => row.reason)?.reason;
  return reason ? `not measured: ${reason}` : "not measured";
}

/** @param {Row} row */
const nameOfRow = ({ name }) =>
  ROWS[name] ?? name.replace(/^T = (\d+)$/, "Words in fewer than $1 captions").replace(" -> ", " → ");

/** @type {["human" | "constant_of_human" | "rare_of_human", string, string][]} */
const HEALTH = [
  ["human", "People", "The score of people's captions against other people's."],
  [
    "constant_of_human",
    "One caption as a share of people's",
    "The score of one caption for all images, against as many references as each of people's captions has, as a share of people's: the higher, the less the metric tells.",
  ],
  [
    "rare_of_human",
    "Lost without rare words",
    "The share of people's score that is lost when rare words are unknown.",
  ],
];

const SHARE_NOTE =
  "For the share, one caption has as many references as people's captions: one fewer than on the leaderboard.";

/** @param {Record<string, Health>} health @param {string} target */
function healthTable(health, target) {
  const rows = byUsualOrder(Object.keys(health), target)
    .map((metric) => /** @type {[string, Health]} */ ([metric, health[metric]]))
    .filter(([, each]) => HEALTH.some(([key]) => each[key] !== null));
  const [, told] = HEALTH.filter(([key]) => rows.some(([, each]) => each[key] !== null)).sort(
    ([one], [other]) => Number(other === "constant_of_human") - Number(one === "constant_of_human"),
  )[0] ?? ["", ""];
  /** @type {Column<[string, Health]>[]} */
  const columns = [
    { head: "Metric", kind: "name", cell: ([metric]) => metricName(metric) },
    ...HEALTH.map(([key, name, text]) => ({
      head: term(name, text),
      kind: "number",
      phone: name === told ? /** @type {const} */ ("value") : undefined,
      cell: (/** @type {[string, Health]} */ [metric, each]) =>
        key.endsWith("of_human") ? share(each[key]) : number(each[key], metric),
    })),
  ];
  if (!rows.length) return null;
  return [
    h("p.quiet.on-phone", `Beside each metric: ${told}.`),
    table(rows, { name: "Health of metrics", columns: filled(columns, rows) }),
    rows.some(([, each]) => each.constant_of_human !== null) && h("p.quiet", SHARE_NOTE),
  ];
}

/** @param {number | null | undefined} value */
const share = (value) => (typeof value === "number" ? `${(100 * value).toFixed(0)} %` : "–");

/** @param {string} name @param {Row[]} rows @param {string} target */
const probeTable = (name, rows, target) =>
  table(rows, {
    name,
    columns: [
      {
        head: "Captions",
        kind: "name",
        cell: (row) => [
          nameOfRow(row),
          row.text && h("bdi.sub", `“${row.text}”`),
          h("span.sub", row.note || row.reason),
        ],
      },
      { head: "Replaced", kind: "number", cell: (row) => share(row.share) },
      ...byUsualOrder(Object.keys(rows[0]?.scores ?? {}), target).map((metric) => ({
        head: metricName(metric),
        kind: "number",
        cell: (/** @type {Row} */ { scores, drop }) => [
          number(scores[metric], metric),
          isShown(drop[metric]) && h("span.sub", signed(-Number(drop[metric]), metric)),
        ],
      })),
    ],
  });
