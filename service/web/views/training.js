/** One training: its scores over its steps, beside those of others, and what each step changed. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey, onSteps } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed, unread } from "../core/signals.js";
import { change, changed, place, query } from "../core/urls.js";
import { listChips } from "../parts/chips.js";
import { copyLink } from "../parts/command.js";
import { forecastsOf, noneBecause, toldOf } from "../parts/forecasts.js";
import { viewHead } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { byName } from "../parts/names.js";
import { count, interval, number, signed } from "../parts/numbers.js";
import { comparePlace, evaluationPlace, splitCrumbs, splitPlace } from "../parts/places.js";
import { bestStep, fallSign, fallSize, trainingSentence, worstFalls } from "../parts/sentences.js";
import { allAnswered, badge, refusalOf, verdictBadge } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { table } from "../parts/table.js";
import { curves, newCursor } from "../plots/curves.js";
import { stepPanel } from "./training/step.js";

/** @typedef {import("../parts/steps.js").Step} Step */
/** @typedef {Schemas["Score"]} Score */
/** @typedef {{ run: string, kind: string, steps: Step[] }} Overlay `kind`: the class of its colour. */

const USUAL = ["cider_d", "meteor", "perplexity"];
const MOST = 200;
const MOST_METRICS = 8;
const LATEST_COMPARED = 50;
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
  const runs = computed(() => /** @type {string[]} */ ((trainings.answer.value?.items ?? []).map(runOf)));
  const steps = computed(() => stepsOf(own, run));
  const hasSteps = computed(() => steps.value.length > 0);
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
  onChange(() => [own, ...beside].forEach((each) => each.refresh()), "evaluation");
  const overlays = computed(() =>
    chosen.value.map((each, at) => ({
      run: each,
      kind: `series-${at + 1}`,
      steps: stepsOf(beside[at], each),
    })),
  );
  const shown = computed(() =>
    (wanted.value.length ? wanted.value : USUAL.filter((each) => hasScore(each, steps.value))).join(),
  );
  const metrics = computed(() => listed(shown.value)); // the same while other scores change
  const open = computed(() => steps.value.find((each) => String(each.step) === step.value) ?? null);
  const choose = (/** @type {number} */ at) => {
    change({ step: String(at), against: null });
    const panel = /** @type {HTMLElement | null} */ (document.querySelector(".step"));
    if (panel && panel.offsetTop > scrollY + innerHeight) panel.scrollIntoView(); // on a phone it is below the plots
  };
  const of = { run, steps, overlays, metrics, open, choose };
  const said = exchangedWords(dataset, steps, () => metrics.value[0] ?? USUAL[0]);
  const whenSaid = (/** @type {() => Child} */ render) =>
    allAnswered([own], () =>
      allAnswered(said.isBeside.value ? [said.compared] : [], () =>
        allAnswered(said.id.value ? [said.words] : [], render),
      ),
    );
  return {
    title: run,
    crumbs: () => [
      ...splitCrumbs({ name, split }),
      ["training runs", splitPlace(name, split, "runs")],
      [run],
    ],
    content: h(
      "div",
      viewHead({
        name: run,
        sentence: () =>
          trainingSentence({
            run,
            metric: metrics.value[0] ?? USUAL[0],
            steps: steps.value,
            words: said.words.answer.value?.items,
            others: overlays.value,
          }),
      }),
      whenSaid(() => [
        () => refusalOf(own),
        () =>
          !hasSteps.value &&
          own.answer.value &&
          h("p.quiet", `No evaluation on ${dataset} has the label run=${run}.`),
        () => own.answer.value?.next && h("p.notice", `Only the latest ${MOST} evaluations are shown.`),
        h(
          "div.bar",
          listChips({
            text: "+ metric",
            chosen: () => metrics.value,
            choose: (list) => change({ metrics: list.join(",") }),
            known: () => Object.keys(newest.answer.value?.items[0]?.scores ?? {}),
            least: 1,
            title: titleOf,
          }),
          h("span.quiet", "beside"),
          listChips({
            text: "+ overlay a run",
            chosen: () => chosen.value,
            choose: (list) => change({ over: list.join(",") || NONE }),
            known: () => runs.value.filter((each) => each !== run).sort(byName),
            most: MOST_OVERLAYS,
          }),
          copyLink(),
        ),
        () => hasSteps.value && unread(() => h("div.training", plots(of), stepPanel(of), stepsTable(of))),
      ]),
    ),
  };
}

/** @typedef {{ run: string, steps: { value: Step[] }, overlays: { value: Overlay[] }, metrics: { value: string[] }, open: { value: Step | null }, choose: (step: number) => void }} Shown `open`: the step whose details are open. */

/** The words that the worst step says in the place of another training's, if the two have been compared. @param {string} dataset @param {{ value: Step[] }} steps @param {() => string} metric */
function exchangedWords(dataset, steps, metric) {
  const fall = computed(
    () =>
      worstFalls(
        steps.value.flatMap(({ falls }) => falls),
        metric(),
      )[0],
  );
  const isBeside = computed(() => Boolean(fall.value?.beside));
  const compared = resource(() =>
    isBeside.value
      ? place("/v1/comparisons", { dataset, status: "succeeded", limit: LATEST_COMPARED })
      : null,
  );
  const id = computed(() => {
    const own = steps.value.find(({ falls }) => falls.includes(fall.value))?.id;
    const pairs = /** @type {Schemas["Comparison"][]} */ (compared.answer.value?.items ?? []);
    return pairs.find(({ a, b }) => a === own && b === fall.value?.beside?.evaluation)?.id ?? null;
  });
  const words = resource(() =>
    id.value ? place("/v1/comparisons", id.value, "words", { metric: fall.value.metric, limit: 3 }) : null,
  );
  return { isBeside, compared, id, words };
}

/** The latest evaluation of each step. @param {Resource} found @param {string} run */
function stepsOf({ answer }, run) {
  const items = (answer.value?.items ?? []).filter((/** @type {Step} */ { labels }) => labels.run === run);
  return bySteps(items).filter((item, at, all) => at === 0 || item.step !== all[at - 1].step);
}

/** @param {{ run: string }} training */
const runOf = ({ run }) => run;

/** @param {string} text */
const listed = (text) =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

/** @param {string} metric @param {Step[]} steps */
const hasScore = (metric, steps) => steps.some(({ scores }) => typeof scores[metric]?.value === "number");

/** Its fall by this metric that tells most. @param {Step} item @param {string} metric */
const fallBy = ({ falls }, metric) => worstFalls(falls.filter((each) => each.metric === metric))[0];

/** The trainings that its steps are behind. @param {Step[]} steps */
const rivalsOf = (steps) => [
  ...new Set(steps.flatMap(({ falls }) => falls.flatMap(({ beside }) => beside?.labels.run ?? []))),
];

/** A plot for each metric, with one cursor and one tooltip for all. @param {Shown} of */
function plots(of) {
  const cursor = newCursor();
  const figures = () => of.metrics.value.map((metric, at) => figure(metric, at === 0, cursor, of));
  return h("div.plots", figures);
}

/** It stays while its points change, so that it keeps the focus. @param {string} metric @param {boolean} isFirst @param {import("../plots/curves.js").Cursor} cursor @param {Shown} of */
function figure(metric, isFirst, cursor, of) {
  const { run, steps, overlays, open, choose } = of;
  const found = computed(() => steps.value.find(({ scores }) => scores[metric])?.scores[metric] ?? null);
  const isThere = computed(() => found.value !== null);
  const series = computed(() => [
    { name: run, kind: "series-0", points: pointsOf(steps.value, metric) },
    ...overlays.value.map(({ run, kind, steps }) => ({
      name: run,
      kind,
      points: pointsOf(steps, metric).map((point) => ({ ...point, forecast: null, isBest: false })),
    })),
  ]);
  const drawn = () => {
    const { signature, higher_is_better: higher, family } = /** @type {Score} */ (found.value);
    return h(
      "figure",
      { class: ["panel card", !isFirst && "small"] },
      h(
        "figcaption",
        metricName(metric, { signature, higher }),
        typeof higher === "boolean" && ` · ${higher ? "higher" : "lower"} is better`,
      ),
      curves(() => series.value, {
        metric,
        isBounded: family === "postgen",
        height: isFirst ? HEIGHT.first : HEIGHT.other,
        cursor,
        chosen: () => open.value?.step ?? null,
        choose,
        tooltip: (step) => [h("strong", `step ${count(step)}`), linesAt(of, step).map(tooltipRow)],
        said: (step) =>
          [`step ${count(step)}`, ...linesAt(of, step).map(({ name, text }) => `${name} ${text}`)].join("; "),
        note: () => (isFirst ? fallNote(metric, of) : null),
      }),
      isFirst && [
        () => open.value === null && h("div.fall", fallNote(metric, of)?.content),
        () => legend(series.value),
        () => forecastNote(metric, steps.value),
      ],
    );
  };
  return () =>
    isThere.value ? unread(drawn) : h("p.quiet", `No evaluation of this training has a ${titleOf(metric)}.`);
}

/** What the worst fall was, and the way to its images. @param {string} metric @param {Shown} of */
function fallNote(metric, { steps, choose }) {
  const [worst] = worstFalls(
    steps.value.flatMap(({ falls }) => falls),
    metric,
  );
  if (!worst) return null;
  const { step, beside } = worst;
  const { id } = steps.value.find(({ falls }) => falls.includes(worst)) ?? {};
  const content = [
    h("strong", `step ${count(step)}`),
    h("div.quiet", fallSize(worst, `step ${count(step)}`)),
    h("button.link", { type: "button", onclick: () => choose(step) }, "see the images →"),
    id &&
      beside && [
        " · ",
        h(
          "a",
          { href: comparePlace(id, beside.evaluation) },
          `compare with ${beside.labels.run ?? "the other"}`,
        ),
      ],
  ];
  return { step, content };
}

/** @param {Step[]} steps @param {string} metric */
function pointsOf(steps, metric) {
  const best = bestStep(metric, steps);
  return steps.map((item) => ({
    step: item.step,
    value: item.scores[metric]?.value ?? null,
    interval: item.scores[metric]?.interval,
    forecast: forecastsOf(item)[metric],
    isFallen: Boolean(fallBy(item, metric)),
    isCollapsed: Boolean(item.collapsed),
    isBest: item.id === best?.id,
  }));
}

/** @param {import("../plots/curves.js").Series[]} series */
const legend = (series) =>
  h(
    "ul.legend",
    series.map(({ name, kind }) => h("li", h("span", { class: ["swatch", kind] }), h("bdi", name))),
    h("li", "ribbons: 95 % intervals"),
    series[0].points.some(({ forecast }) => forecast?.interval) &&
      h("li", h("span.swatch.forecast"), "forecast before decoding"),
    series[0].points.some(({ isBest }) => isBest) &&
      h("li", h("span.swatch.best"), "best step, ★ in the table"),
    series.some(({ points }) => points.some(({ isFallen }) => isFallen)) &&
      h("li", h("span.swatch.fell"), "worse than expected"),
    series.some(({ points }) => points.some(({ isCollapsed }) => isCollapsed)) &&
      h("li", h("span.swatch.collapsed"), "one caption for most images"),
    h("li", "Select a point to see what its step changed"),
  );

/** Why the latest step has no forecast, while it is not measured. @param {string} metric @param {Step[]} steps */
function forecastNote(metric, steps) {
  const latest = steps[steps.length - 1];
  if (typeof latest.scores[metric]?.value === "number") return null;
  const why = toldOf(latest)[metric]?.none_because ?? noneBecause(latest);
  return why && h("p.quiet", `No forecast for step ${count(latest.step)}: ${why}.`);
}

/** What all plots have at a step: each score, and those of the overlays beside it. @param {Shown} of @param {number} step */
function linesAt({ steps, overlays, metrics }, step) {
  const scoreAt = (/** @type {Step[]} */ list, /** @type {string} */ metric) =>
    list.find((item) => item.step === step)?.scores[metric];
  return metrics.value.flatMap((metric) => {
    const score = scoreAt(steps.value, metric);
    const others = overlays.value.map(({ run, kind, steps }) => {
      const value = scoreAt(steps, metric)?.value ?? null;
      const difference = typeof score?.value === "number" && value !== null ? score.value - value : null;
      return { name: run, kind, text: `${number(value, metric)} (${signed(difference, metric)})` };
    });
    const text = `${number(score?.value, metric)} ${interval(score?.interval, metric)}`.trim();
    return [{ name: titleOf(metric), kind: "", text }, ...others];
  });
}

/** @param {ReturnType<typeof linesAt>[number]} line */
const tooltipRow = ({ name, kind, text }) =>
  h(
    "div",
    { class: ["row", kind && "quiet"] },
    h("span", kind && h("span", { class: ["swatch", kind] }), name),
    h("span", text),
  );

/** @param {Shown} of */
function stepsTable({ steps, metrics, choose }) {
  const open = (/** @type {MouseEvent} */ event, /** @type {number} */ step) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(step);
  };
  const before = (/** @type {Step} */ { id }) =>
    steps.value[steps.value.findIndex((each) => each.id === id) - 1];
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
              {
                href: changed({ step: String(step), against: null }),
                onclick: (/** @type {MouseEvent} */ event) => open(event, step),
              },
              `Step ${count(step)}`,
            ),
        },
        {
          head: "State",
          phone: "below",
          cell: ({ status, verdict, collapsed, falls, scores }) => {
            const [main, ...others] = metrics.value;
            const [fall] = worstFalls(falls, main);
            return [
              badge(status),
              collapsed && [" ", badge("collapsed")],
              verdict && [" ", verdictBadge(verdict)],
              fall && [" ", h("span.badge.bad", `▼ ${fallSign(fall, main)}`)],
              h(
                "span.sub.on-phone",
                others
                  .map((metric) => `${titleOf(metric)} ${number(scores[metric]?.value, metric)}`)
                  .join(" · "),
              ),
            ];
          },
        },
        ...metrics.value.map((metric, at) => scoreColumn(metric, at === 0, steps)),
        {
          head: "Links",
          kind: "narrow",
          cell: (item) => [
            h("a", { href: evaluationPlace(item.id), title: item.id }, "scores"),
            before(item) && [" · ", compareLink(item, before(item).id, `step ${count(before(item).step)}`)],
            rivalsOf([item]).length > 0 && h("span.sub", rivalLink(item, metrics.value[0])),
          ],
        },
      ],
    }),
  );
}

/** @param {string} metric @param {boolean} isFirst @param {{ value: Step[] }} steps @returns {Column<Step>} */
function scoreColumn(metric, isFirst, steps) {
  const isBest = (/** @type {Step} */ { id }) => bestStep(metric, steps.value)?.id === id;
  return {
    head: titleOf(metric),
    kind: "number",
    phone: isFirst ? "value" : undefined,
    tone: (item) => (isBest(item) ? "best" : null),
    cell: (item) => [
      isFirst && h("span.on-phone", `${titleOf(metric)} `),
      isBest(item) && "★ ",
      number(item.scores[metric]?.value, metric),
      h("span.sub", interval(item.scores[metric]?.interval, metric)),
    ],
  };
}

/** @param {Step} item @param {string} other @param {string} name */
const compareLink = (item, other, name) =>
  h("a", { href: comparePlace(item.id, other) }, "compare with ", h("bdi", name));

/** The way to the comparison with the training that it is behind. @param {Step} item @param {string} metric */
function rivalLink(item, metric) {
  const [{ beside }] = worstFalls(
    item.falls.filter((each) => each.beside),
    metric,
  );
  return beside && compareLink(item, beside.evaluation, `${beside.labels.run}, step ${beside.labels.step}`);
}
