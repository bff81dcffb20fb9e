/** One training: its scores over its steps, beside those of others, and what each step changed. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey, onSteps } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed } from "../core/signals.js";
import { change, changed, place, query } from "../core/urls.js";
import { adder, filterChip, metricChips } from "../parts/chips.js";
import { forecastsOf, noneBecause, toldOf } from "../parts/forecasts.js";
import { viewHead } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { comparePlace, evaluationPlace, splitCrumbs, splitPlace } from "../parts/places.js";
import { bestStep, trainingSentence } from "../parts/sentences.js";
import { allAnswered, badge, refusalOf } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { table } from "../parts/table.js";
import { curves, newCursor } from "../plots/curves.js";
import { stepPanel } from "./training/step.js";

/** @typedef {import("../parts/steps.js").Step} Step */
/** @typedef {import("../core/api.js").Schemas["Score"]} Score */
/** @typedef {{ run: string, kind: string, steps: Step[] }} Overlay `kind`: the class of its colour. */

const USUAL = ["cider_d", "meteor", "perplexity"];
const MOST = 200;
const MOST_METRICS = 8;
const MOST_OVERLAYS = 3;
const NONE = ","; // of overlays, in the address
const HEIGHT = { first: 320, other: 190 }; // pixels

/** @param {string} name @param {string} split @param {string} run */
export function training(name, split, run) {
  const dataset = `${name}/${split}`;
  const asked = query("metrics");
  const over = query("over");
  const step = query("step");
  const wanted = computed(() => listed(asked.value).slice(0, MOST_METRICS));
  const evaluations = (/** @type {string} */ of) =>
    place("/v1/evaluations", {
      dataset,
      "label.run": of,
      limit: MOST,
      metrics: [...new Set([...USUAL, ...wanted.value])].join(","),
    });
  const own = resource(() => evaluations(run));
  const newest = resource(() =>
    place("/v1/evaluations", { dataset, "label.run": run, status: "succeeded", limit: 1 }),
  );
  const trainings = resource(() => place("/v1/trainings", { dataset, limit: 100 }));
  const steps = computed(() => stepsOf(own, run));
  const chosen = computed(() =>
    (over.value ? listed(over.value) : rivalsOf(steps.value)).slice(0, MOST_OVERLAYS),
  );
  const beside = Array.from({ length: MOST_OVERLAYS }, (_, at) =>
    resource(() => (chosen.value[at] ? evaluations(chosen.value[at]) : null)),
  );
  onSteps("steps", (away) => () => {
    const list = steps.value;
    const now = list.findIndex((each) => String(each.step) === step.value);
    const next = list[Math.max(0, Math.min(list.length - 1, now < 0 ? list.length - 1 : now + away))];
    if (next) choose(next.step);
  });
  onKey("Escape", "close the details of a step", () => change({ step: null, against: null }));
  onChange((change) => {
    if (!change || change.kind === "evaluation") [own, ...beside].forEach((each) => each.refresh());
  });
  const overlays = computed(() =>
    chosen.value.map((each, at) => ({
      run: each,
      kind: `series-${at + 1}`,
      steps: stepsOf(beside[at], each),
    })),
  );
  const metrics = computed(() =>
    wanted.value.length ? wanted.value : USUAL.filter((each) => hasScore(each, steps.value)),
  );
  const open = computed(() => steps.value.find((each) => String(each.step) === step.value) ?? null);
  const choose = (/** @type {number} */ at) => {
    change({ step: String(at), against: null });
    if (panel.offsetTop > scrollY + innerHeight) panel.scrollIntoView(); // on a phone it is below the plots
  };
  const of = { run, steps, overlays, metrics, open, choose };
  const panel = stepPanel(of);
  return {
    title: run,
    crumbs: () =>
      /** @type {import("../parts/frame.js").Crumb[]} */ ([
        ...splitCrumbs({ name, split }),
        ["training runs", splitPlace(name, split, "runs")],
        [run],
      ]),
    content: h(
      "div",
      viewHead({
        name: run,
        sentence: () =>
          steps.value.length > 0
            ? trainingSentence({ run, metric: metrics.value[0] ?? USUAL[0], steps: steps.value })
            : null,
      }),
      allAnswered([own], () => [
        () => refusalOf(own),
        () =>
          !steps.value.length &&
          own.answer.value &&
          h("p.quiet", `No evaluation on ${dataset} has the label run=${run}.`),
        () => own.answer.value?.next && h("p.notice", `Only the latest ${MOST} evaluations are shown.`),
        h(
          "div.bar",
          metricChips({
            chosen: () => metrics.value,
            choose: (list) => change({ metrics: list.join(",") }),
            known: () => Object.keys(newest.answer.value?.items[0]?.scores ?? {}),
          }),
          overlayChips(run, chosen, trainings),
        ),
        () => steps.value.length > 0 && h("div.training", plots(of), panel, stepsTable(of)),
      ]),
    ),
  };
}

/** @typedef {{ run: string, steps: { value: Step[] }, overlays: { value: Overlay[] }, metrics: { value: string[] }, open: { value: Step | null }, choose: (step: number) => void }} Shown `open`: the step whose details are open. */

/** The latest evaluation of each step. @param {import("../parts/states.js").Resource} found @param {string} run */
function stepsOf({ answer }, run) {
  const items = (answer.value?.items ?? []).filter((/** @type {Step} */ { labels }) => labels.run === run);
  return bySteps(items).filter((item, at, all) => at === 0 || item.step !== all[at - 1].step);
}

/** @param {string} text */
const listed = (text) =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

/** @param {string} metric @param {Step[]} steps */
const hasScore = (metric, steps) => steps.some(({ scores }) => typeof scores[metric]?.value === "number");

/** @param {Step} item @param {string} metric */
const isFallen = ({ falls }, metric) => falls.some((each) => each.metric === metric);

/** The trainings that its steps fell below. @param {Step[]} steps */
const rivalsOf = (steps) => [
  ...new Set(steps.flatMap(({ falls }) => falls.flatMap(({ beside }) => beside?.labels.run ?? []))),
];

/** @param {string} run @param {{ value: string[] }} chosen @param {import("../parts/states.js").Resource} trainings */
const overlayChips = (run, chosen, trainings) => [
  h("span.quiet", "beside"),
  () =>
    chosen.value.map((each) =>
      filterChip(each, () =>
        change({ over: chosen.value.filter((other) => other !== each).join(",") || NONE }),
      ),
    ),
  () =>
    chosen.value.length < MOST_OVERLAYS &&
    adder(
      "+ overlay a run",
      () =>
        (trainings.answer.value?.items ?? [])
          .map((/** @type {{ run: string }} */ each) => each.run)
          .filter((/** @type {string} */ each) => each !== run && !chosen.value.includes(each))
          .map((/** @type {string} */ each) => [each, each]),
      (each) => change({ over: [...chosen.value, each].join(",") }),
    ),
];

/** A plot for each metric, with one cursor and one tooltip for all. @param {Shown} of */
function plots(of) {
  const cursor = newCursor();
  const { run, steps, overlays, metrics, open, choose } = of;
  const figure = (/** @type {string} */ metric, /** @type {number} */ at) => {
    const scores = steps.value.flatMap((item) => item.scores[metric] ?? []);
    if (!scores.length) return h("p.quiet", `No evaluation of this training has a ${titleOf(metric)}.`);
    const [{ signature, higher_is_better: higher, family }] = scores;
    const best = bestStep(metric, steps.value);
    const series = [
      { name: run, kind: "series-0", points: steps.value.map((item) => pointOf(item, metric, best)) },
      ...overlays.value.map((each) => ({
        name: each.run,
        kind: each.kind,
        points: each.steps.map((item) => ({ ...pointOf(item, metric, null), forecast: null })),
      })),
    ];
    return h(
      "figure",
      { class: ["panel card", at > 0 && "small"] },
      h("figcaption.row", h("span", metricName(metric, { signature, higher })), at === 0 && legend(series)),
      curves(series, {
        metric,
        isBounded: family === "postgen",
        height: at ? HEIGHT.other : HEIGHT.first,
        cursor,
        chosen: () => open.value?.step ?? null,
        choose,
        tooltip: (step) => tooltip(of, step),
        said: (step) => said(of, step),
      }),
      at === 0 && forecastNote(metric, steps.value),
    );
  };
  return h("div.plots", () => metrics.value.map(figure));
}

/** @param {Step} item @param {string} metric @param {Step | null} best */
function pointOf(item, metric, best) {
  const { value = null, interval: ends = null } = item.scores[metric] ?? {};
  const forecast = forecastsOf(item)[metric];
  return {
    step: item.step,
    value,
    interval: ends,
    forecast: forecast && !forecast.none_because ? forecast : null,
    isFallen: isFallen(item, metric),
    isBest: item.id === best?.id,
  };
}

/** @param {import("../plots/curves.js").Series[]} series */
const legend = (series) =>
  h(
    "ul.legend",
    series.map(({ name, kind }) => h("li", h("span", { class: ["swatch", kind] }), h("bdi", name))),
    h("li", "ribbons: 95 % intervals"),
    series[0].points.some(({ forecast }) => forecast) &&
      h("li", h("span.swatch.forecast"), "forecast before decoding"),
  );

/** Why the latest step has no forecast. @param {string} metric @param {Step[]} steps */
function forecastNote(metric, steps) {
  const latest = steps[steps.length - 1];
  const why = noneBecause(latest) ?? toldOf(latest)[metric]?.none_because;
  return why && h("p.quiet", `No forecast for step ${count(latest.step)}: ${why}`);
}

/** A score beside those of the overlays at the same step. @param {Shown} of @param {string} metric @param {number} step */
function scoresAt({ steps, overlays }, metric, step) {
  const scoreOf = (/** @type {Step[]} */ list) => list.find((item) => item.step === step)?.scores[metric];
  const score = scoreOf(steps.value);
  const others = overlays.value.map(({ run, kind, steps }) => {
    const value = scoreOf(steps)?.value ?? null;
    const difference = typeof score?.value === "number" && value !== null ? score.value - value : null;
    return { run, kind, value, difference };
  });
  return { score, others };
}

/** What all plots have at a step. @param {Shown} of @param {number} step */
const tooltip = (of, step) => [
  h("strong", `step ${count(step)}`),
  of.metrics.value.map((metric) => {
    const { score, others } = scoresAt(of, metric, step);
    return [
      h(
        "div.row",
        h("span", titleOf(metric)),
        h("span", `${number(score?.value, metric)} ${interval(score?.interval, metric)}`),
      ),
      others.map(({ run, kind, value, difference }) =>
        h(
          "div.row.quiet",
          h("span", h("span", { class: ["swatch", kind] }), run),
          h("span", `${number(value, metric)} (${signed(difference, metric)})`),
        ),
      ),
    ];
  }),
];

/** The same in words. @param {Shown} of @param {number} step */
const said = (of, step) =>
  [
    `step ${count(step)}`,
    ...of.metrics.value.map((metric) => {
      const { score, others } = scoresAt(of, metric, step);
      const beside = others.map(({ run, difference }) => `, ${signed(difference, metric)} against ${run}`);
      return `${titleOf(metric)} ${number(score?.value, metric)}${beside.join("")}`;
    }),
  ].join("; ");

/** @param {Shown} of */
function stepsTable({ steps, metrics, choose }) {
  const open = (/** @type {number} */ step) => (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(step);
  };
  return h(
    "div.steps",
    table(steps, {
      name: "Table of steps",
      keyOf: ({ id }) => id,
      columns: () => [
        {
          head: "Step",
          kind: "name",
          cell: ({ step }) =>
            h(
              "a.main",
              { href: changed({ step: String(step), against: null }), onclick: open(step) },
              `Step ${count(step)}`,
            ),
        },
        {
          head: "State",
          phone: "below",
          cell: ({ status, verdict }) => [badge(status), " ", verdict && badge(verdict)],
        },
        ...metrics.value.map((metric, at) => ({
          head: titleOf(metric),
          kind: "number",
          phone: /** @type {"value" | undefined} */ (at ? undefined : "value"),
          tone: (/** @type {Step} */ item) => (bestStep(metric, steps.value)?.id === item.id ? "best" : null),
          cell: (/** @type {Step} */ item) => scoreCell(item, metric, steps.value),
        })),
        {
          head: "Links",
          kind: "narrow",
          cell: (item) => [
            h("a", { href: evaluationPlace(item.id), title: item.id }, "evaluation"),
            steps.value.indexOf(item) > 0 && [
              " · ",
              compareLink(item, steps.value[steps.value.indexOf(item) - 1]),
            ],
          ],
        },
      ],
    }),
  );
}

/** @param {Step} item @param {Step} before */
const compareLink = (item, before) =>
  h(
    "a",
    {
      href: comparePlace(item.id, before.id),
      "aria-label": `Compare step ${count(item.step)} with the step before`,
    },
    "compare",
  );

/** @param {Step} item @param {string} metric @param {Step[]} steps */
function scoreCell(item, metric, steps) {
  const { value = null, interval: ends = null } = item.scores[metric] ?? {};
  return [
    isFallen(item, metric) && [h("span.badge.bad", "▼ fell"), " "],
    bestStep(metric, steps)?.id === item.id && "★ ",
    number(value, metric),
    h("span.sub", interval(ends, metric)),
  ];
}
