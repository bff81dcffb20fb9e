/** The caller: team, scope and key, how much of the limits is used, and for an admin the team's keys. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { place } from "../core/urls.js";
import { ago, time } from "../parts/dates.js";
import { fact } from "../parts/layout.js";
import { count, duration } from "../parts/numbers.js";
import { answered } from "../parts/states.js";
import { table } from "../parts/table.js";

/** Titles of limits, and the form of those that are no counts. @type {Record<string, [string, ((value: number) => string)?]>} */
const LIMITS = {
  requests: ["Requests a minute"],
  runs: ["Unfinished runs"],
  upload_bytes: ["Uploads a day", bytes],
  stored_bytes: ["Stored uploads", bytes],
  device_seconds: ["Computing a day", duration],
};

/** @param {Schemas["Me"]} me */
export const account = ({ team, scope, key, name, expires_at, limits }) => [
  h(
    "dl.facts",
    fact("Team", team),
    fact("Scope", scope),
    key && fact("Key", name || key, expires_at && `, until ${time(expires_at)}`),
    limits.map(limit),
  ),
  key && scope === "admin" && keys(),
];

/** @param {Schemas["Me"]["limits"][number]} limit */
function limit({ name, limit, used, resets_in }) {
  const [title, form = (/** @type {number} */ value) => count(Math.round(value))] = LIMITS[name] ?? [name];
  const told = `${form(used)} of ${form(limit)}`;
  return fact(
    title,
    h("progress", { max: limit || 1, value: Math.min(used, limit || 1), "aria-label": `${title}: ${told}` }),
    ` ${told}`,
    typeof resets_in === "number" && h("span.sub", `anew in ${duration(resets_in)}`),
  );
}

/** @param {number} value */
function bytes(value) {
  const unit = Math.min(3, Math.floor(Math.log10(Math.max(1, value)) / 3));
  const digits = { maximumFractionDigits: unit ? 1 : 0 };
  return `${(value / 1000 ** unit).toLocaleString("en", digits)} ${["B", "kB", "MB", "GB"][unit]}`;
}

/** @type {Column<Schemas["Key"]>[]} */
const KEY = [
  {
    head: "Key",
    kind: "name",
    cell: ({ name, id, subject }) => [name || id, subject && h("span.sub", subject)],
  },
  { head: "Scope", phone: "value", cell: ({ scope }) => scope },
  { head: "Made", cell: ({ created_at }) => ago(created_at) },
  { head: "Last used", phone: "below", cell: ({ used_at }) => ago(used_at) || "never" },
  {
    head: "Ends",
    cell: ({ revoked_at, expires_at }) =>
      revoked_at ? ["revoked ", ago(revoked_at)] : time(expires_at) || "never",
  },
];

/** The keys of the team, which an admin may see. */
const keys = () =>
  answered(
    resource(() => place("/v1/keys", { limit: 200 })),
    ({ items }) => table(items, { name: "Keys of the team", columns: KEY, keyOf: ({ id }) => id }),
  );
