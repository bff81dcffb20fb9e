/** The choice of the metric that a view is about, as chips. */

import { h } from "../core/dom.js";
import { chip } from "../parts/chips.js";
import { titleOf } from "../parts/metrics.js";

/** @param {() => string[]} metrics @param {{ value: string }} chosen */
export const metricChoice = (metrics, chosen) =>
  h("div", { class: "bar", role: "group", "aria-label": "Metric to predict" }, () =>
    metrics().map((metric) =>
      chip(
        titleOf(metric),
        () => chosen.value === metric,
        () => (chosen.value = metric),
      ),
    ),
  );
