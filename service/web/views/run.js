/** One training: its scores over its steps, and its best checkpoint. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { computed } from "../core/signals.js";
import { place, query } from "../core/urls.js";
import { forecastsOf } from "../parts/forecasts.js";
import { table } from "../parts/layout.js";
import { direction, interval, number } from "../parts/numbers.js";
import { evaluationPlace, splitTabs } from "../parts/places.js";
import { badge, following } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { curve } from "../plots/curve.js";

/** @typedef {import("../parts/steps.js").Step} Step */

const USUAL = ["cider_d", "meteor", "spice", "mean_max_normcount_prefix0", "perplexity"];
const MOST = 200;
const MOST_METRICS = 8;

/** @param {string} name @param {string} split @param {string} training */
export function run(name, split, training) {
  const asked = query("metrics");
  const found = resource(() =>
    place("/v1/evaluations", { dataset: `${name}/${split}`, "label.run": training, limit: MOST }),
  );
  onChange(() => found.refresh());
  const steps = computed(() => bySteps(found.answer.value?.items ?? []));
  const metrics = computed(() =>
    asked.value
      ? asked.value
          .split(",")
          .map((each) => each.trim())
          .filter(Boolean)
          .slice(0, MOST_METRICS)
      : usual(steps.value),
  );
  return {
    title: training,
    content: h(
      "div",
      h("h1", `Training ${training}`),
      splitTabs(name, split),
      h(
        "form",
        { class: "asked", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
        h(
          "label",
          "Metrics ",
          h("input", {
            size: 50,
            value: asked.value,
            placeholder: USUAL.join(","),
            spellcheck: "false",
            onchange: (/** @type {any} */ { target }) => {
              asked.value = target.value;
            },
          }),
        ),
      ),
      following(found, () => [
        () =>
          steps.value.length === 0 &&
          h("p", { class: "quiet" }, `No evaluation on ${name}/${split} has the label run=${training}.`),
        () =>
          found.answer.value?.next &&
          h("p", { class: "notice" }, `Only the latest ${MOST} evaluations are shown.`),
        h("div", { class: "figures" }, () => metrics.value.map((metric) => panel(metric, steps.value))),
        () => steps.value.length > 0 && stepsTable(metrics.value, steps.value),
      ]),
    ),
  };
}

/** Of the usual ones those that some step has. @param {any[]} steps */
const usual = (steps) => USUAL.filter((metric) => steps.some((item) => scoreOf(metric, item)));

/** @param {string} metric @param {Step} item */
const scoreOf = (metric, item) => item.scores[metric] ?? null;

/** @param {string} metric @param {Step[]} steps */
function bestOf(metric, steps) {
  let best = /** @type {Step | null} */ (null);
  let most = -Infinity;
  for (const item of steps) {
    const score = scoreOf(metric, item);
    if (!score || score.value === null) continue;
    const worth = score.higher_is_better === false ? -score.value : score.value;
    if (worth > most) [best, most] = [item, worth];
  }
  return best;
}

/** @param {string} metric @param {Step[]} steps */
function panel(metric, steps) {
  const best = bestOf(metric, steps);
  if (!best) return h("p", { class: "quiet" }, `${metric}: no evaluation of this training has such a score.`);
  const { value, interval: ends, higher_is_better } = scoreOf(metric, best);
  const points = steps.map((item) => ({
    step: item.step,
    value: scoreOf(metric, item)?.value ?? null,
    interval: scoreOf(metric, item)?.interval ?? null,
    forecast: forecastOf(metric, item),
    isWorse: isWorse(metric, item, steps),
  }));
  const worse = points.filter((point) => point.isWorse);
  const beyond = points.filter(({ forecast }) => typeof forecast?.beyond === "number");
  const said = `${metric} over ${steps.length} steps; the best is step ${best.step}: ${number(value, metric)}`;
  return h(
    "figure",
    h(
      "figcaption",
      h("strong", metric),
      h("span", { class: "quiet" }, ` ${direction(higher_is_better)}; best: `),
      h("a", { href: evaluationPlace(best.id) }, `step ${best.step}`),
      ` ${number(value, metric)} ${interval(ends, metric)}`,
      worse.length > 0 &&
        h(
          "span",
          { class: "bad" },
          `; worse than the step before: ${worse.map(({ step }) => step).join(", ")}`,
        ),
      beyond.length > 0 &&
        h(
          "span",
          { class: "quiet" },
          `; forecast beyond what other runs have shown: ${beyond.map(({ step }) => step).join(", ")}`,
        ),
    ),
    curve(points, { name: metric, best: best.step, said }),
  );
}

/** Whether it is worse than the step before, and their intervals have nothing in common. @param {string} metric @param {Step} item @param {Step[]} steps */
function isWorse(metric, item, steps) {
  const before = steps[steps.indexOf(item) - 1];
  const [now, then] = [item, before].map((each) => each && scoreOf(metric, each));
  if (!now?.interval || !then?.interval) return false;
  return now.higher_is_better === false
    ? now.interval[0] > then.interval[1]
    : now.interval[1] < then.interval[0];
}

/** @param {string} metric @param {Step} item */
function forecastOf(metric, item) {
  const found = forecastsOf(item)[metric];
  return found && !found.none_because ? found : null;
}

/** @param {string[]} metrics @param {Step[]} steps */
function stepsTable(metrics, steps) {
  const best = new Map(metrics.map((metric) => [metric, bestOf(metric, steps)?.id]));
  return table(
    "Table of steps",
    ["Step", "Evaluation", "State", "Compare", ...metrics],
    steps.map((item, at) =>
      h(
        "tr",
        h("td", { class: "number" }, item.step.toLocaleString("en")),
        h(
          "th",
          { scope: "row", class: "id" },
          h("a", { class: "main", href: evaluationPlace(item.id) }, item.id),
        ),
        h("td", badge(item.status), item.verdict && badge(item.verdict)),
        h(
          "td",
          { class: "link" },
          at > 0 &&
            h(
              "a",
              {
                href: place("/ui/compare", { a: item.id, b: steps[at - 1].id }),
                "aria-label": `Compare step ${item.step} with the step before`,
              },
              "with the step before",
            ),
        ),
        metrics.map((metric) =>
          h(
            "td",
            {
              class: [
                "number",
                best.get(metric) === item.id && "best",
                isWorse(metric, item, steps) && "bad",
              ],
            },
            number(scoreOf(metric, item)?.value, metric),
            ` ${interval(scoreOf(metric, item)?.interval, metric)}`,
            best.get(metric) === item.id && " ★",
            isWorse(metric, item, steps) && " ▼ worse",
          ),
        ),
      ),
    ),
  );
}
