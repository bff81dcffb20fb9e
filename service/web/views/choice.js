/** A choice of one of several, as chips. */

import { h } from "../core/dom.js";
import { chip } from "../parts/chips.js";
import { titleOf } from "../parts/metrics.js";

/** @param {string} name @param {() => string[][]} options Values and texts. @param {{ value: string }} chosen */
export const choice = (name, options, chosen) =>
  h("div.bar", { role: "group", "aria-label": name }, () =>
    options().map(([value, text]) =>
      chip(
        text,
        () => chosen.value === value,
        () => (chosen.value = value),
      ),
    ),
  );

/** The metric that is predicted: one of those of a study. @param {() => Schemas["Study"] | null} study @param {{ value: string }} target */
export const targetChoice = (study, target) =>
  choice(
    "Metric to predict",
    () =>
      [...new Set([target.value, ...Object.keys(study()?.metrics ?? {})])].map((name) => [
        name,
        titleOf(name),
      ]),
    target,
  );
