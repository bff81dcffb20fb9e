/** The first view: what needs attention, how trainings go, what was evaluated last, and how to begin. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onRows } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed, effect, onEnd, signal, unread } from "../core/signals.js";
import { place } from "../core/urls.js";
import { ago } from "../parts/dates.js";
import { section, viewHead } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { distinctNames, evaluationLink, nameOrId, stepOf } from "../parts/names.js";
import { count, number } from "../parts/numbers.js";
import { captionsPlace, evaluationPlace, runPlace, splitLink, splitPlace } from "../parts/places.js";
import {
  capitalized,
  fallSize,
  gateFinding,
  gateReason,
  homeSentence,
  plural,
  repeatedIn,
  runningOf,
} from "../parts/sentences.js";
import { allAnswered, badge, loading, refusalOf, verdictBadge } from "../parts/states.js";
import { table } from "../parts/table.js";
import { trainingCards } from "./trainings.js";

/** @typedef {Schemas["AttentionItem"]} Attention */
/** @typedef {Attention & { checkpoints: Attention[] }} Row `checkpoints`: of one training run, of which this is the latest. */
/** @typedef {Map<string, string>} Names By evaluation. */

const METRICS = ["cider_d", "meteor"];
const MOST = 10; // evaluations of a page
const MOST_COUNTED = 50; // of those that run or are queued
const MOST_ATTENTION = 50;
const FIRST_ATTENTION = 6;
const MOST_TRAININGS = 6;
const NEAR = "200px"; // below what is seen

export function home() {
  const evaluations = (/** @type {Record<string, string | number>} */ asked) =>
    place("/v1/evaluations", { metrics: METRICS.join(","), ...asked });
  const attention = resource(() => place("/v1/attention", { limit: MOST_ATTENTION }));
  const isBegun = computed(() => Boolean(attention.answer.value ?? attention.refused.value));
  // Cards stand below what needs attention, and are asked for after it.
  const trainings = resource(() =>
    isBegun.value ? place("/v1/trainings", { limit: MOST_TRAININGS }) : null,
  );
  const latest = pages(() => evaluations({ limit: MOST }));
  const datasets = resource(() => place("/v1/datasets", { limit: 100 }));
  const unfinished = resource(() => evaluations({ status: "unfinished", limit: MOST_COUNTED }));
  const changing = [attention, trainings, latest, unfinished];
  onChange(() => changing.forEach((each) => each.refresh()), "evaluation");
  const all = [...changing, datasets];
  const items = computed(() => byUse(attention.answer.value?.items ?? []));
  const names = computed(() => distinctNames(items.value.map(namedOf)));
  const hasAttention = computed(() => items.value.length > 0);
  const isEmpty = computed(() => latest.answer.value !== null && latest.items.value.length === 0);
  const begin = signal(/** @type {typeof import("./begin.js").firstSteps | null} */ (null));
  effect(() => {
    if (isEmpty.value) import("./begin.js").then((found) => (begin.value = found.firstSteps));
  });
  const told = () =>
    attention.answer.value && unfinished.answer.value
      ? homeSentence({
          attention: items.value,
          name: items.value.length ? nameIn(names.value, items.value[0]) : "",
          unfinished: unfinished.answer.value,
        })
      : null;
  return {
    title: "Home",
    content: h(
      "div.home",
      viewHead({ name: "Home", sentence: () => (isEmpty.value ? NOTHING : told()) }),
      allAnswered([attention, unfinished, latest], () => {
        const first = () => [
          () => all.map(refusalOf),
          () => isEmpty.value && begin.value?.(),
          () => hasAttention.value && section("Needs attention", attentionTable(items, names)),
          allAnswered(all, others),
        ];
        const others = () => [
          () =>
            trainings.answer.value?.items.length > 0 &&
            section("Training runs", trainingCards(trainings.answer.value.items)),
          () => !isEmpty.value && section("Latest evaluations", latestTable(latest)),
          () => !isEmpty.value && section("Score something", dropPlace()),
          section("Datasets", () => datasetCards(datasets.answer.value?.items ?? [])),
        ];
        return () => (isEmpty.value && !begin.value ? loading() : unread(first));
      }),
    ),
  };
}

const NOTHING = {
  claim: "How good are an image captioner's captions?",
  detail: "Nothing has been scored here yet. Add a dataset, then score captions or a checkpoint on it.",
};

/** @param {Attention} item @returns {import("../parts/names.js").Named} */
const namedOf = ({ evaluation, labels, at }) => ({ id: evaluation, labels, created_at: at });

/** @param {Names} names @param {Attention} item */
const nameIn = (names, { evaluation, labels }) => names.get(evaluation) ?? nameOrId(labels, evaluation);

/** @param {{ value: Attention[] }} items @param {{ value: Names }} names */
function attentionTable(items, names) {
  const isWhole = signal(false);
  const rows = computed(() => joinCheckpoints(items.value));
  const shown = computed(() => (isWhole.value ? rows.value : rows.value.slice(0, FIRST_ATTENTION)));
  return [
    h(
      "div.headless",
      table(shown, {
        name: "Table of what needs attention",
        keyOf: ({ kind, evaluation }) => `${kind} ${evaluation}`,
        columns: [
          { head: "Kind", kind: "narrow", phone: "below", cell: sign },
          {
            head: "Evaluation",
            kind: "name",
            cell: (item) => [subject(item, names.value), splitOnPhone(item), h("span.sub", reason(item))],
          },
          { head: "Dataset", kind: "quiet", cell: ({ dataset }) => splitLink(dataset) },
          { head: "When", kind: "quiet narrow", cell: ({ at }) => ago(at) },
          { head: "Cause", kind: "narrow", phone: "value", cell: (item) => cause(item, names.value) },
        ],
      }),
    ),
    () =>
      shown.value.length < rows.value.length &&
      more(`Show all ${items.value.length} evaluations`, () => (isWhole.value = true)),
  ];
}

/** Collapsed checkpoints of one training run are one row. @param {Attention[]} items @returns {Row[]} */
function joinCheckpoints(items) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  for (const item of items) {
    const { kind, evaluation, labels, dataset } = item;
    const key = kind === "collapsed" && labels.run ? [dataset.digest, dataset.split, labels.run] : evaluation;
    const row = rows.get(String(key));
    if (row) row.checkpoints.push(item);
    else rows.set(String(key), { ...item, checkpoints: [item] });
  }
  return [...rows.values()];
}

/** @param {Row} row @param {Names} names */
const subject = ({ evaluation, labels, dataset, checkpoints }, names) =>
  checkpoints.length > 1
    ? h(
        "a.main",
        { href: runPlace(dataset.name, dataset.split, labels.run) },
        h("bdi", labels.run),
        stepsOf(checkpoints),
      )
    : evaluationLink(evaluation, labels, names.get(evaluation));

/** `, steps 2 to 6`, of those that tell their step. @param {Attention[]} checkpoints */
function stepsOf(checkpoints) {
  const steps = checkpoints.map(({ labels }) => stepOf(labels)).filter((step) => step !== null);
  const [first, last] = [Math.min(...steps), Math.max(...steps)].map(count);
  return first !== last && steps.length ? `, steps ${first} to ${last}` : "";
}

/** The split, which has no column there. @param {{ dataset: { name: string, split: string } }} of */
const splitOnPhone = ({ dataset: { name, split } }) => h("span.sub.on-phone", `${name}/${split}`);

/** @param {string} text @param {() => void} press @param {() => boolean} [isBusy] */
const more = (text, press, isBusy = () => false) =>
  h("button.more", { type: "button", onclick: press, disabled: isBusy }, text);

/** A class and a text, and what the way to the cause is called.
 * @type {Record<Attention["kind"], string[]>} */
const SIGNS = {
  fall: ["bad", "▼ worse", "Why →"],
  gate: ["bad", "gate failed", "Verdict →"],
  failed: ["bad", "failed", "Evaluation →"],
  collapsed: ["wait", "collapsed", "Captions →"],
};

/** The kinds that tell most first, each as the service orders it. @param {Attention[]} items */
const byUse = (items) => Object.keys(SIGNS).flatMap((kind) => items.filter((each) => each.kind === kind));

/** @param {Attention} item */
function sign({ kind }) {
  const [tone, text] = SIGNS[kind];
  return h("span", { class: ["badge", tone] }, text);
}

/** @param {Row} row @param {Names} names */
function cause(row, names) {
  const { kind, labels, dataset, checkpoints } = row;
  const [text, of, href] =
    checkpoints.length > 1
      ? ["Training →", labels.run, runPlace(dataset.name, dataset.split, labels.run)]
      : [SIGNS[kind][2], nameIn(names, row), causePlace(row)];
  return h("a", { href, "aria-label": `${text} of ${of}` }, text);
}

/** Of a fall: the training's view with the step's details open, by the metric of the fall. @param {Attention} item */
function causePlace({ kind, evaluation, dataset, labels, fall }) {
  if (kind === "collapsed") return captionsPlace(evaluation);
  if (!fall) return evaluationPlace(evaluation);
  const metrics = fall.metric === METRICS[0] ? null : [fall.metric, METRICS[0]].join(",");
  return runPlace(dataset.name, dataset.split, labels.run, { metrics, step: fall.step });
}

/** @param {Row} row */
function reason({ fall, gate, caption, error, checkpoints }) {
  if (checkpoints.length > 1)
    return `${plural(checkpoints.length, "checkpoint")} with one caption for most images`;
  if (fall) return fallSize(fall);
  if (gate) return gateFinding(gate.gate, gate) ?? gateReason(gate);
  if (!caption) return error && capitalized(error.detail);
  return [`${repeatedIn(caption)}: `, h("bdi", caption.text)];
}

/** @param {ReturnType<typeof pages>} latest */
function latestTable(latest) {
  const names = computed(() => distinctNames(/** @type {Evaluation[]} */ (latest.items.value)));
  const shown = table(/** @type {{ value: Evaluation[] }} */ (latest.items), {
    name: "Table of the latest evaluations",
    keyOf: ({ id }) => id,
    columns: [
      {
        head: "Name",
        kind: "name",
        cell: (run) => [evaluationLink(run.id, run.labels, names.value.get(run.id)), splitOnPhone(run)],
      },
      { head: "Dataset", cell: ({ dataset }) => splitLink(dataset) },
      { head: "State", phone: "below", cell: state },
      {
        head: [metricName("cider_d"), " ± 95 %"],
        kind: "number",
        phone: "value",
        cell: (run) => score(run, "cider_d"),
      },
      { head: [metricName("meteor"), " ± 95 %"], kind: "number", cell: (run) => score(run, "meteor") },
      { head: "Submitted", kind: "quiet narrow", cell: ({ created_at }) => ago(created_at) },
    ],
  });
  onRows(() => [.../** @type {NodeListOf<HTMLElement>} */ (shown.querySelectorAll("a.main"))], "evaluations");
  return [shown, () => latest.next.value && more("More", latest.more, () => latest.isMore.value)];
}

/** What it does now and for how long, or how it ended. @param {Evaluation} run */
function state({ status, verdict, tasks }) {
  const task = status === "running" && tasks.find((each) => each.status === "running");
  if (!task) return [badge(status), " ", verdictBadge(verdict)];
  return h("span.badge.running", `running: ${runningOf(task)}`);
}

/** With half of its interval; until it is there, its forecast. @param {Evaluation} run @param {string} metric */
function score({ scores, forecast }, metric) {
  const { value = null, interval: ends = null } = scores[metric] ?? {};
  const expected = /** @type {Record<string, any>} */ (forecast ?? {})[metric]?.value;
  if (value !== null)
    return [
      h("span.sub.on-phone", titleOf(metric)),
      number(value, metric),
      ends && h("span.quiet", ` ±${number((ends[1] - ends[0]) / 2, metric)}`),
    ];
  return typeof expected === "number" ? h("i.quiet", `${number(expected, metric)} forecast`) : "–";
}

/** @param {Dataset[]} items */
const datasetCards = (items) =>
  items.length
    ? h(
        "ul.cards",
        items.map(({ name, version, splits }) =>
          h(
            "li",
            h("div.row", h("h3", name), h("span.quiet", version)),
            Object.entries(splits).map(([split, { images }]) =>
              h(
                "div.row",
                h("a", { href: splitPlace(name, split) }, split),
                h("span.quiet", plural(images, "image")),
              ),
            ),
          ),
        ),
      )
    : h("p.quiet", "None yet.");

/** A place for files, whose script is loaded when it is nearly seen. */
function dropPlace() {
  const dropZone = signal(/** @type {typeof import("./submit.js").dropZone | null} */ (null));
  const frame = h("div.drop-place", () => dropZone.value?.());
  const watcher = new IntersectionObserver(
    async (entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      watcher.disconnect();
      dropZone.value = (await import("./submit.js")).dropZone;
    },
    { rootMargin: NEAR },
  );
  watcher.observe(frame);
  onEnd(() => watcher.disconnect());
  return frame;
}
