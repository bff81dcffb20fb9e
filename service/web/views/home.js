/** The first view: what needs attention, how trainings go, what was evaluated last, and how to begin. */

import { pages, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onRows } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { computed, onEnd, signal } from "../core/signals.js";
import { place } from "../core/urls.js";
import { ago } from "../parts/dates.js";
import { section, viewHead } from "../parts/layout.js";
import { metricName, titleOf } from "../parts/metrics.js";
import { evaluationLink, stepOf } from "../parts/names.js";
import { count, duration, interval, number, signed } from "../parts/numbers.js";
import { captionsPlace, evaluationPlace, runPlace, splitLink, splitPlace } from "../parts/places.js";
import { homeSentence } from "../parts/sentences.js";
import { allAnswered, badge, refusalOf } from "../parts/states.js";
import { table } from "../parts/table.js";
import { trainingCards } from "./trainings.js";

/** @typedef {import("../core/api.js").Schemas["AttentionItem"]} Attention */
/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["Dataset"]} Dataset */
/** @typedef {import("../core/api.js").Schemas["Queue"]} Queue */

const METRICS = ["cider_d", "meteor"];
const MOST = 20; // evaluations of a page
const MOST_ATTENTION = 10;
const MOST_TRAININGS = 6;
const NEAR = "200px"; // below what is seen

export function home() {
  const attention = resource(() => place("/v1/attention", { limit: MOST_ATTENTION }));
  const trainings = resource(() => place("/v1/trainings", { limit: MOST_TRAININGS }));
  const latest = pages(() => place("/v1/evaluations", { limit: MOST, metrics: METRICS.join(",") }));
  const datasets = resource(() => place("/v1/datasets", { limit: 100 }));
  const queues = resource(() => "/v1/queues");
  onChange((change) => {
    if (change && change.kind !== "evaluation") return;
    for (const each of [attention, trainings, latest, queues]) each.refresh();
  });
  const all = [attention, trainings, latest, datasets, queues];
  const items = () => attention.answer.value?.items ?? [];
  const jobs = (/** @type {"running" | "waiting"} */ state) =>
    (queues.answer.value?.items ?? []).reduce(
      (/** @type {number} */ sum, /** @type {Queue} */ each) => sum + each[state],
      0,
    );
  const isEmpty = computed(() => latest.answer.value !== null && latest.items.value.length === 0);
  return {
    title: "Home",
    content: h(
      "div",
      viewHead({
        name: "Home",
        sentence: () =>
          isEmpty.value
            ? {
                claim: "How good are an image captioner's captions?",
                detail: "Nothing has been scored here yet. A command scores the first.",
              }
            : attention.answer.value && queues.answer.value
              ? homeSentence({ attention: items(), running: jobs("running"), queued: jobs("waiting") })
              : null,
      }),
      allAnswered(all, () => [
        () => all.map(refusalOf),
        () => isEmpty.value && firstSteps(),
        () => items().length > 0 && section("Needs attention", attentionTable(attention)),
        () =>
          trainings.answer.value?.items.length > 0 &&
          section("Training runs", trainingCards(trainings.answer.value.items)),
        () => !isEmpty.value && section("Latest evaluations", latestTable(latest)),
        section("Datasets", () => datasetCards(datasets.answer.value?.items ?? [])),
        () => !isEmpty.value && section("Score something", dropPlace()),
      ]),
    ),
  };
}

/** @param {import("../parts/states.js").Resource} attention */
function attentionTable(attention) {
  const items = computed(() => /** @type {Attention[]} */ (attention.answer.value?.items ?? []));
  return h(
    "div.headless",
    table(items, {
      name: "Table of what needs attention",
      keyOf: ({ kind, evaluation }) => `${kind} ${evaluation}`,
      columns: [
        { head: "Kind", kind: "narrow", phone: "below", cell: ({ kind }) => KINDS[kind].badge() },
        {
          head: "Evaluation",
          kind: "name",
          cell: (item) => [evaluationLink(item.evaluation, item.labels), h("span.sub", reason(item))],
        },
        { head: "Dataset", kind: "quiet", cell: ({ dataset }) => splitLink(dataset) },
        { head: "When", kind: "quiet narrow", cell: ({ at }) => ago(at) },
        { head: "Cause", kind: "narrow", phone: "value", cell: cause },
      ],
    }),
  );
}

/** @param {string} tone @param {string} text */
const sign = (tone, text) => () => h("span", { class: ["badge", tone] }, text);

/** Its sign, and the text and address of its cause.
 * @type {Record<Attention["kind"], { badge: () => Node, cause: string, place: (item: Attention) => string }>} */
const KINDS = {
  fall: { badge: sign("bad", "▼ worse"), cause: "Why →", place: fallPlace },
  collapsed: {
    badge: sign("wait", "collapsed"),
    cause: "Captions →",
    place: ({ evaluation }) => captionsPlace(evaluation),
  },
  gate: {
    badge: sign("bad", "gate failed"),
    cause: "Verdict →",
    place: ({ evaluation }) => evaluationPlace(evaluation),
  },
  failed: {
    badge: sign("bad", "failed"),
    cause: "Evaluation →",
    place: ({ evaluation }) => evaluationPlace(evaluation),
  },
};

/** The training's view with the step's details open, by the metric that fell. @param {Attention} item */
function fallPlace({ dataset, labels, fall }) {
  const step = fall?.step ?? stepOf(labels);
  const metrics = fall && fall.metric !== METRICS[0] ? [fall.metric, METRICS[0]].join(",") : null;
  return runPlace(dataset.name, dataset.split, labels.run, { metrics, step });
}

/** @param {Attention} item */
const cause = (item) =>
  h(
    "a",
    {
      href: KINDS[item.kind].place(item),
      "aria-label": `${KINDS[item.kind].cause} of ${item.labels.run ?? item.evaluation}`,
    },
    KINDS[item.kind].cause,
  );

/** @param {Attention} item */
function reason({ fall, gate, caption, error }) {
  if (fall) return fallReason(fall);
  if (gate) {
    const told =
      gate.difference === null
        ? gate.detail
        : `${signed(gate.difference, gate.metric ?? "")} ${interval(gate.interval, gate.metric ?? "")}`;
    return [gate.gate, told].filter(Boolean).join(": ");
  }
  if (caption) {
    const of =
      caption.images === caption.of
        ? `all ${count(caption.of)}`
        : `${count(caption.images)} of ${count(caption.of)}`;
    return [`one caption for ${of} images: `, h("bdi", caption.text)];
  }
  return error?.detail;
}

/** @param {NonNullable<Attention["fall"]>} fall */
function fallReason({ metric, kind, difference, beside }) {
  const side = difference < 0 ? "below" : "above";
  const against = {
    run: `${beside?.labels.run ?? "another run"} at this step`,
    trend: "the line between the steps beside it",
    step: "the step before",
  }[kind];
  return `${number(Math.abs(difference), metric)} ${titleOf(metric)} ${side} ${against}`;
}

/** @param {ReturnType<typeof pages>} latest */
function latestTable(latest) {
  const shown = table(/** @type {{ value: Evaluation[] }} */ (latest.items), {
    name: "Table of the latest evaluations",
    keyOf: ({ id }) => id,
    columns: [
      { head: "Name", kind: "name", cell: ({ id, labels }) => evaluationLink(id, labels) },
      { head: "Dataset", cell: ({ dataset }) => splitLink(dataset) },
      { head: "State", phone: "below", cell: state },
      { head: metricName("cider_d"), kind: "number", phone: "value", cell: (run) => score(run, "cider_d") },
      { head: metricName("meteor"), kind: "number", cell: (run) => score(run, "meteor") },
      { head: "Submitted", kind: "quiet narrow", cell: ({ created_at }) => ago(created_at) },
    ],
  });
  onRows(() => [.../** @type {NodeListOf<HTMLElement>} */ (shown.querySelectorAll("a.main"))], "evaluations");
  return [
    shown,
    () =>
      latest.next.value &&
      h("button.more", { type: "button", onclick: latest.more, disabled: () => latest.isMore.value }, "More"),
  ];
}

/** What it does now and for how long, or how it ended. @param {Evaluation} run */
function state({ status, verdict, tasks }) {
  const task = status === "running" && tasks.find((each) => each.status === "running");
  if (!task) return [badge(status), " ", verdict && badge(verdict)];
  const { done, total } = task.progress;
  const told = [
    `${task.name}${total > 0 ? ` ${Math.floor((100 * done) / total)} %` : ""}`,
    typeof task.seconds_left === "number" && `${duration(task.seconds_left)} left`,
  ];
  return h("span.badge.running", told.filter(Boolean).join(", "));
}

/** With half of its interval; until it is there, its forecast. @param {Evaluation} run @param {string} metric */
function score(run, metric) {
  const found = run.scores[metric];
  const forecast = /** @type {Record<string, any>} */ (run.forecast ?? {})[metric];
  if (typeof found?.value === "number") {
    const half = found.interval && (found.interval[1] - found.interval[0]) / 2;
    return [number(found.value, metric), half !== null && h("span.quiet", ` ±${number(half, metric)}`)];
  }
  return typeof forecast?.value === "number"
    ? h("i.quiet", `${number(forecast.value, metric)} forecast`)
    : "–";
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
                h("span.quiet", `${count(images)} images`),
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

/** How to begin with this very service. */
function firstSteps() {
  const command = signal(/** @type {typeof import("../parts/command.js").command | null} */ (null));
  import("../parts/command.js").then((found) => (command.value = found.command));
  const here = location.origin;
  return section(
    "Begin",
    h("p", "Captions of any system, without a checkpoint:"),
    () =>
      command.value?.(
        `export PRESCORE_URL=${here}\nprescore score captions.json --dataset NAME/SPLIT`,
        "Score captions by a command",
      ),
    h("p", "A checkpoint, which the service decodes and scores:"),
    () =>
      command.value?.(
        `prescore submit model.safetensors --url ${here} --dataset NAME/SPLIT --wait`,
        "Submit a checkpoint by a command",
      ),
    h("p", "Or a file, here. ", h("a", { href: "/docs" }, "The whole API"), " takes captions too."),
    dropPlace(),
  );
}
