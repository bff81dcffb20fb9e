/**
 * The name of an evaluation, from its labels: `run` and `step`, else `name`, `file`, or `branch` and `commit`, else
 * another label.
 */

import { h } from "../core/dom.js";
import { time } from "./dates.js";
import { count } from "./numbers.js";
import { evaluationPlace, splitCrumbs } from "./places.js";

/** @typedef {Record<string, string> | null | undefined} Labels */

const COMMIT = 7; // digits of a commit that are shown
const SHORT = 6; // characters of an id, without its kind
const NAMING = ["run", "step", "epoch", "name", "file", "branch", "commit"];

/** The number that ends the label `step`, or else `epoch`. @param {Record<string, string>} labels */
export function stepOf(labels) {
  const found = /(\d+(?:\.\d+)?)$/.exec(labels.step ?? labels.epoch ?? "");
  return found ? Number(found[1]) : null;
}

/** Empty where no label names it. @param {Labels} labels */
export function nameOf(labels) {
  if (!labels) return "";
  const { run, name, file, branch, commit } = labels;
  const step = stepOf(labels);
  if (run) return step === null ? run : `${run}, step ${count(step)}`;
  if (name || file) return name || file;
  return [branch, commit?.slice(0, COMMIT) || othersOf(labels)[0]].filter(Boolean).join(", ");
}

/** Labels that are no part of a name: `who: nightly`. @param {Record<string, string>} labels */
const othersOf = (labels) =>
  Object.entries(labels).flatMap(([label, value]) => (NAMING.includes(label) ? [] : `${label}: ${value}`));

/** The label that gives the name; `name` where there is none. @param {Record<string, string>} labels */
export const namingLabel = (labels) =>
  ["run", "name", "file", "branch"].find((label) => labels[label]) ?? "name";

/** The name, or else some digits of the id: `unnamed cBUZGk`. @param {Labels} labels @param {string} id */
export const nameOrId = (labels, id) => nameOf(labels) || `unnamed ${digitsOf(id)}`;

/** @param {string} id */
const digitsOf = (id) => id.replace(/^\w+?_/, "").slice(0, SHORT);

/** Names in their order, numbers by their size: `run2` before `run10`. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

/** What tells evaluations of the same name apart, the plainest first. @type {((of: Named) => string)[]} */
const TRAITS = [
  ({ labels }) => (labels?.commit ?? "").slice(0, COMMIT),
  ({ labels }) =>
    othersOf(labels ?? {})
      .filter((text) => !nameOf(labels).endsWith(text))
      .join(", "),
  ({ created_at }) => time(created_at),
  ({ id }) => digitsOf(id),
];

/** @typedef {{ id: string, labels: Labels, created_at: string }} Named */

/** A name for each that no other one has. @param {readonly Named[]} items @returns {Map<string, string>} By id. */
export function distinctNames(items) {
  /** @type {Map<string, Named[]>} */
  const groups = new Map();
  for (const item of new Map(items.map((each) => [each.id, each])).values()) {
    const name = nameOrId(item.labels, item.id);
    groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  return new Map(
    [...groups].flatMap(([name, group]) => {
      const trait = TRAITS.find((each) => new Set(group.map(each).filter(Boolean)).size === group.length);
      return group.map((item) => [item.id, group.length > 1 && trait ? `${name}, ${trait(item)}` : name]);
    }),
  );
}

/** The evaluation's name as a link; its id is the title. @param {string} id @param {Labels} labels @param {string} [name] */
export const evaluationLink = (id, labels, name = nameOrId(labels, id)) =>
  h("a", { class: "main", href: evaluationPlace(id), title: id }, name);

/** The way to an evaluation, for the frame. @param {Evaluation | null} run @returns {Crumb[]} */
export const evaluationCrumbs = (run) =>
  run ? [...splitCrumbs(run.dataset), [nameOrId(run.labels, run.id), evaluationPlace(run.id)]] : [];
