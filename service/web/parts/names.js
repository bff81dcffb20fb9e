/** The name of an evaluation, from the label that tells most: of a training with its step. */

import { h } from "../core/dom.js";
import { evaluationPlace } from "./places.js";
import { stepOf } from "./steps.js";

const NAMING = ["name", "file", "branch"]; // labels, in the order in which they are looked for after `run`

/** Empty where no label names it. @param {Record<string, string> | null | undefined} labels */
export function nameOf(labels) {
  if (!labels) return "";
  const step = stepOf(labels);
  if (labels.run) return step === null ? labels.run : `${labels.run}, step ${step}`;
  return NAMING.map((label) => labels[label]).find(Boolean) ?? "";
}

/** @param {Record<string, string> | null | undefined} labels @param {string} id */
export const nameOrId = (labels, id) => nameOf(labels) || id;

/** Its name as a link, and its id. @param {string} id @param {Record<string, string> | null | undefined} labels */
export function evaluationLink(id, labels) {
  const name = nameOf(labels);
  const link = h("a", { class: "main", href: evaluationPlace(id) }, name || id);
  return name ? [link, h("span", { class: "quiet id" }, ` ${id}`)] : link;
}
