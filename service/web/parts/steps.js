/** The evaluations of one training, in the order of its steps. */

import { stepOf } from "./names.js";

/** @typedef {Evaluation & { step: number }} Step */

/** Where none has a step: in the order in which they were submitted. @param {Evaluation[]} items The latest first. @returns {Step[]} */
export function bySteps(items) {
  const stepped = items.filter(({ labels }) => stepOf(labels) !== null);
  const list = stepped.length ? stepped : [...items].reverse();
  return list
    .map((item, at) => ({ ...item, step: stepOf(item.labels) ?? at + 1 }))
    .sort((a, b) => a.step - b.step);
}
