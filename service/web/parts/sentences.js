/**
 * Sentences: the finding of each view in one plain sentence with its number and its doubt, made from answers of
 * the API alone. A sentence says no more than its numbers do: without a test it says no "better", and what a
 * test does not show is "not shown", not "equal".
 */

import { titleOf, wordsOf, withTitles } from "./metrics.js";
import { nameOrId } from "./names.js";
import { probability, count, duration, interval, isShown, number, signed } from "./numbers.js";

/** @typedef {{ claim: string, detail: string }} Sentence The claim is shown in bold, the detail after it. */
/** @typedef {Schemas["Evaluation"]["falls"][number]} Fall */

const TOLD = 0.05; // p below which a test tells two apart
const MOST_NAMED = 3; // names in a list
const USUAL = "cider_d";

/** @param {string} claim @param {...(string | false | null | undefined)} details @returns {Sentence} */
const sentence = (claim, ...details) => ({ claim, detail: details.filter(Boolean).join(" ") });

const BIDI = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/;

/** Text of others within a sentence: if it runs from right to left, the rest does not. @param {string} text */
const isolated = (text) => (BIDI.test(text) ? `\u2068${text}\u2069` : text);

/** `2 runs`, `1 run`. @param {number} many @param {string} one @param {string} [more] */
export const plural = (many, one, more = `${one}s`) => `${count(many)} ${many === 1 ? one : more}`;

/** `a, b and c`. @param {string[]} names @param {number} [most] */
function listed(names, most = MOST_NAMED) {
  const shown = names.slice(0, most);
  const left = names.length - shown.length;
  const all = left > 0 ? [...shown, `${count(left)} more`] : shown;
  return all.length < 2 ? (all[0] ?? "") : `${all.slice(0, -1).join(", ")} and ${all[all.length - 1]}`;
}

/** A value with its interval. @param {{ value: number | null, interval?: any } | null | undefined} score @param {string} metric */
const scored = (score, metric) =>
  `${number(score?.value, metric)} ${interval(score?.interval, metric)}`.trim();

/** @param {string[]} metrics */
const main = (metrics) => (metrics.includes(USUAL) ? USUAL : metrics[0]);

/** @param {Evaluation} run Its metric that views are about: CIDEr-D, or else the first of its captions. */
export const mainMetric = (run) =>
  main(Object.keys(run.scores).filter((each) => run.scores[each].family === "postgen"));

/** What needs attention, the most useful first; "other" has the kinds that this page does not know.
 * @type {Record<string, (many: number) => string>} */
const ATTENTION = {
  behind: (many) => `${count(many)} ${many === 1 ? "is" : "are"} behind another training`,
  fall: (many) =>
    `${count(many)} ${many === 1 ? "is" : "are"} worse than expected from ${many === 1 ? "its" : "their"} training`,
  gate: (many) => `${count(many)} failed ${many === 1 ? "its gate" : "their gates"}`,
  failed: (many) => `${count(many)} failed`,
  collapsed: (many) => `${count(many)} ${many === 1 ? "says" : "say"} one caption for most images`,
  other: (many) => `${count(many)} for another reason`,
};

/** @param {Schemas["AttentionItem"]} item */
const attentionOf = ({ kind, fall }) =>
  kind === "fall" && fall?.kind === "run" ? "behind" : kind in ATTENTION ? kind : "other";

/** Runs that have not ended; a list that goes on tells not all. @param {{ items: { status: string }[], next: string | null }} unfinished */
function progressOf({ items, next }) {
  if (next) return `At least ${count(items.length)} running or queued.`;
  const running = items.filter(({ status }) => status === "running").length;
  return `${count(running)} running, ${count(items.length - running)} queued.`;
}

/** Why an evaluation needs attention, after its name. @param {Schemas["AttentionItem"]} item */
function attentionFinding({ fall, gate, caption, error }) {
  if (fall) return `is ${fallSize(fall)}`;
  if (gate)
    return `fails its gate: ${withoutStop(gateFinding(gate.gate, gate) ?? gateReason(gate) ?? gateName(gate.gate))}`;
  if (caption) return `has ${repeatedIn(caption)}`;
  return error ? `failed: ${withoutStop(error.detail)}` : "needs attention";
}

/** @param {string} text */
const withoutStop = (text) => text.replace(/\.$/, "");

/** @param {{ attention: Schemas["AttentionItem"][], name: string, unfinished: Schemas["EvaluationPage"] }} of `attention`: the gravest first, whose name is `name`. */
export function homeSentence({ attention: [gravest, ...others], name, unfinished }) {
  const found = others.map(attentionOf);
  const kinds = Object.keys(ATTENTION).flatMap((kind) => {
    const many = found.filter((each) => each === kind).length;
    return many ? [ATTENTION[kind](many)] : [];
  });
  const many = others.length;
  return sentence(
    gravest
      ? ended(`${isolated(name)} ${attentionFinding(gravest)}`)
      : "Nothing of the last 30 days needs attention.",
    many > 0 &&
      `${count(many)} more ${many === 1 ? "evaluation needs" : "evaluations need"} attention: ${listed(kinds, kinds.length)}.`,
    progressOf(unfinished),
  );
}

/** `one caption for 26 of 40 images`. @param {Schemas["RepeatedCaption"]} repeated */
export const repeatedIn = ({ images, of }) =>
  `one caption for ${images === of ? `all ${count(of)}` : `${count(images)} of ${count(of)}`} images`;

/** @param {Schemas["RepeatedCaption"] | null | undefined} collapsed */
const repeatedCaption = (collapsed) =>
  collapsed && `${capitalized(repeatedIn(collapsed))}: “${isolated(collapsed.text)}”.`;

/** @param {string} text */
const ended = (text) => text.replace(/([^.?!])$/, "$1.");

/** @param {string} text */
export const capitalized = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** @param {{ run: Evaluation, board?: Schemas["Leaderboard"] | null }} of `board`: of its main metric, the first page. */
export function evaluationSentence({ run, board }) {
  const { status, error, tasks } = run;
  if (status === "failed")
    return sentence(error ? ended(capitalized(error.detail)) : "It failed: the service gives no reason.");
  if (status === "canceled") return sentence("It was stopped before its end.");
  if (status !== "succeeded") return unfinished(run);
  const metric = mainMetric(run);
  const has = metric && `${titleOf(metric)} ${scored(run.scores[metric], metric)}.`;
  const [fall] = worstFalls(run.falls ?? []);
  const repeated = repeatedCaption(run.collapsed);
  const gate =
    run.gates.find(({ verdict }) => verdict === "failed") ??
    run.gates.find(({ verdict }) => verdict !== "passed");
  if (gate)
    return sentence(
      ended(`${VERDICTS[gate.verdict ?? "open"]}: ${gate.detail ?? gateName(gate.gate)}`),
      has,
      repeated,
    );
  const passes =
    run.gates.length > 0 &&
    `It passes ${run.gates.length === 1 ? "its gate" : `its ${run.gates.length} gates`}.`;
  const rank = rankOf(run, board);
  if (repeated) return sentence(repeated, has, rank, fall && `${fallOf(fall)}.`, passes);
  if (fall) return sentence(`${fallOf(fall)}.`, has, rank, passes);
  if (has) return sentence(passes || has, passes && has, rank, references(run, metric));
  return sentence(
    tasks.length === 1 ? "Its task is done." : `All ${count(tasks.length)} tasks are done.`,
    passes,
  );
}

/** How a gate that has not passed is told. */
const VERDICTS = {
  failed: "It fails its gate",
  undecided: "Its gate is undecided",
  not_comparable: "Its gate cannot be decided",
  open: "Its gate is open",
  passed: "It passes its gate",
};

/** Its rank, and the first of the leaderboard, if it is on this page of it. @param {Evaluation} run @param {Schemas["Leaderboard"] | null | undefined} board */
function rankOf({ id, dataset }, board) {
  const own = board?.items.find(
    ({ evaluation, equal_ones: others }) => evaluation === id || others.includes(id),
  );
  if (!board || !own) return "";
  const [first] = board.items;
  const { name, split } = dataset;
  if (own.evaluation !== id)
    return `Its ${titleOf(board.metric)} equals that of ${isolated(nameOrId(own.labels, own.evaluation))}, which stands for it on the leaderboard of ${name}/${split}: rank ${count(own.rank)}.`;
  if (own === first)
    return `It leads ${name}/${split}${own.tied ? ", but others cannot be told apart from it" : ""}.`;
  const leader = isolated(nameOrId(first.labels, first.evaluation));
  return `Rank ${count(own.rank)} on ${name}/${split}${own.tied ? ", shared with others" : ""}; ${leader} leads with ${number(first.value, board.metric)}.`;
}

/** @param {Evaluation} run */
function unfinished({ status, tasks, forecast, estimate }) {
  const done = tasks.filter((task) => task.status === "done").length;
  const now = tasks.find((task) => task.status === "running");
  const [metric, seen] = Object.entries(estimate ?? {})[0] ?? [];
  const forecasts = /** @type {Record<string, any>} */ (forecast ?? {});
  const expected = typeof forecasts[USUAL]?.value === "number" && forecasts[USUAL];
  return sentence(
    status === "queued"
      ? "It is queued."
      : `It is running: ${now ? runningOf(now) : `${done} of ${plural(tasks.length, "task")} done`}.`,
    metric &&
      seen &&
      `${titleOf(metric)} is estimated at ${scored(seen, metric)} from ${count(seen.images)} of ${plural(seen.of, "image")}.`,
    expected && `${titleOf(USUAL)} is forecast at ${scored(expected, USUAL)}.`,
  );
}

/** Tasks that are not called by their metric. @type {Record<string, string>} */
const TASKS = {
  prefix: "prefix scores",
  columns: "word probabilities",
  pregen: "pre-gen scores",
  bleu: "BLEU",
};

/** @param {string} name */
export const taskTitle = (name) => TASKS[name] ?? titleOf(name).replaceAll("_", " ");

/** `captions 62 %, 40 s left`. @param {Schemas["RunTask"]} task */
export function runningOf({ name, progress: { done, total }, seconds_left: seconds }) {
  const share = total ? ` ${Math.floor((100 * done) / total)} %` : "";
  return `${taskTitle(name)}${share}${typeof seconds === "number" ? `, ${duration(seconds)} left` : ""}`;
}

const OPEN = ["waiting", "ready", "running"];

/** Seconds until all tasks are done; null where one has not begun, or counts nothing yet. @param {Pick<Schemas["RunTask"], "status" | "seconds_left">[]} tasks */
export function secondsLeft(tasks) {
  const left = tasks
    .filter(({ status }) => OPEN.includes(status))
    .map(({ status, seconds_left: seconds }) => (status === "running" ? seconds : null));
  const known = left.filter((each) => typeof each === "number");
  return known.length > 0 && known.length === left.length ? Math.max(...known) : null;
}

// Gates in words, from their language

const RELATIONS = /** @type {Record<string, string>} */ ({
  ">=": "at least",
  "<=": "at most",
  ">": "above",
  "<": "below",
});
const THRESHOLD = /^\s*([A-Za-z_][\w@:]*)\s*(>=|<=|>|<)\s*(.+?)\s*$/;
const TEST = /^\s*(not_worse|better|no_significant_drop)\s*\((.+)\)\s*$/;
const MEASURED = /^([A-Za-z_][\w@:]*) (?:(between) (\S+) and )?(\S+) (>=|<=|>|<) ([^\s;]+)/;

/** @param {string} text */
const withMinus = (text) => text.replaceAll("-", "−");

/** @param {string[]} metrics */
const titlesOf = (metrics) => listed(metrics.map(titleOf), metrics.length);

/** Its condition: "CIDEr-D at least 9". @param {string} gate As it was submitted. */
export function gateName(gate) {
  const [, metric, relation, bound] = THRESHOLD.exec(gate) ?? [];
  if (metric)
    return `${titleOf(metric)} ${RELATIONS[relation]} ${withMinus(bound).replace("baseline", "the baseline")}`;
  const [, test, list] = TEST.exec(gate) ?? [];
  const given = (list ?? "").split(",").map((each) => each.trim());
  if (test === "not_worse")
    return `not worse than the baseline by more than ${given[given.length - 1]} in ${titlesOf(given.slice(0, -1))}`;
  if (test === "better") return `better than the baseline in ${titlesOf(given)}`;
  if (test) return `no significant drop in ${titlesOf(given)} against the baseline`;
  return gate;
}

/** Why it was decided so, without ids: "CIDEr-D 0.168 is below 9". @param {{ detail: string | null, scores?: Schemas["Gate"]["scores"] }} gate */
export function gateReason({ detail, scores = {} }) {
  const measured = detail?.replace(
    MEASURED,
    (_, metric, between, low, high, relation, bound) =>
      `${titleOf(metric)} ${between ? `between ${rounded(low, bound, metric)} and ` : ""}${rounded(high, bound, metric)} is ${RELATIONS[relation]} ${withMinus(bound)}`,
  );
  const named = Object.keys(scores).reduce(
    (text, metric) => text?.replaceAll(new RegExp(`\\b${metric}\\b`, "g"), titleOf(metric)),
    measured?.replace(/ \(ev_[^()]*\)/g, ""),
  );
  return named ? ended(named) : null;
}

/** As scores are shown, unless that hides the difference from the bound. @param {string} text @param {string} bound @param {string} metric */
function rounded(text, bound, metric) {
  const shown = number(Number(text), metric);
  return shown === number(Number(bound), metric) || shown === "NaN" ? withMinus(text) : shown;
}

/**
 * How far a score is from its baseline, and the gate's demand: "CIDEr-D is 0.038 [0.015, 0.061] below the baseline;
 * the gate allows 0.010."; null where no difference was measured.
 *
 * @param {string} gate As it was submitted.
 * @param {{ metric: string | null, difference: number | null, interval: any, margin?: number | null }} found
 * @param {string} [baseline] Its name.
 */
export function gateFinding(gate, { metric, difference, interval: ends, margin }, baseline = "the baseline") {
  if (!metric || difference === null) return null;
  const isBelow = difference < 0;
  const size = scored(
    { value: Math.abs(difference), interval: ends && isBelow ? [-ends[1], -ends[0]] : ends },
    metric,
  );
  return `${titleOf(metric)} is ${size} ${isBelow ? "below" : "above"} ${isolated(baseline)}; ${demandOf(gate, metric, margin)}.`;
}

/** @param {string} gate @param {string} metric @param {number | null | undefined} margin */
function demandOf(gate, metric, margin) {
  const [, test, list] = TEST.exec(gate) ?? [];
  if (test === "better") return "the gate asks for an improvement";
  if (test === "no_significant_drop") return "the gate allows no significant drop";
  if (test !== "not_worse") return `the gate asks for ${gateName(gate)}`;
  const text = list.split(",").at(-1)?.trim() ?? "";
  const amount = margin ?? Number(text);
  return `the gate allows ${isShown(amount) ? number(amount, metric) : text}`;
}

/** @param {Evaluation} run @param {string} metric */
function references({ health }, metric) {
  const { human, constant } = health?.[metric] ?? {};
  const told = [
    typeof human === "number" && `people's captions have ${number(human, metric)}`,
    typeof constant === "number" && `one caption for all images has ${number(constant, metric)}`,
  ].filter((each) => typeof each === "string");
  return told.length > 0 && `On this split ${told.join(", ")}.`;
}

/** @param {Schemas["Leaderboard"]} board Its first page. */
export function leaderboardSentence(board) {
  const [first] = board.items;
  if (!first) return null;
  const metric = board.metric;
  const leader = isolated(nameOrId(first.labels, first.evaluation));
  const value = `${titleOf(metric)} with ${number(first.value, metric)}`;
  const tied = board.items.filter(({ rank }) => rank === first.rank).length;
  const isMore = board.next !== null && tied === board.items.length;
  const others = Object.entries(board.firsts ?? {}).filter(
    ([name, id]) => name !== metric && id !== first.evaluation,
  );
  const nameById = new Map(
    board.items.map(({ evaluation, labels }) => [evaluation, isolated(nameOrId(labels, evaluation))]),
  );
  const preferred = others
    .filter(([, id]) => nameById.has(id))
    .map(([name, id]) => `${titleOf(name)} puts ${nameById.get(id)} first`);
  const repeating = board.items.filter((item) => item.is_collapsed).length;
  const details = [
    repeating > 0 &&
      `${plural(repeating, "system")} ${repeating === 1 ? "says" : "say"} one caption for most images.`,
    typeof board.detectable === "number" &&
      `A true difference of about ${number(board.detectable, metric)} from the first is found 4 times in 5.`,
    preferred.length > 0 && `${listed(preferred)}.`,
  ];
  if (board.items.length === 1)
    return sentence(`${leader} is the only system here: ${titleOf(metric)} ${scored(first, metric)}.`);
  if (tied === 1) return sentence(`${leader} leads ${value}, apart from all others.`, ...details);
  return sentence(
    `${leader} leads ${value}, but ${isMore ? "at least " : ""}${plural(tied - 1, "other")} cannot be told apart from it.`,
    ...details,
  );
}

/** The metric that the sentence of a comparison is about. @param {Schemas["Comparison"]["scores"]} scores @param {Map<string, { family: string }>} specs */
export const comparedMetric = (scores, specs) =>
  main(
    Object.keys(scores).filter(
      (name) => scores[name].difference !== null && specs.get(name)?.family === "postgen",
    ),
  );

/**
 * @param {{ comparison: Schemas["Comparison"], a: string, b: string, specs: Map<string, { family: string, higher_is_better: boolean | null }>, words?: Schemas["WordExchange"][] }} of
 *   `a`, `b`: names. `specs`: families and directions of metrics. `words`: those that A says in the place of B's.
 */
export function comparisonSentence({ comparison: { scores, status }, a, b, specs, words = [] }) {
  const names = Object.keys(scores).filter((name) => scores[name].difference !== null);
  const metric = comparedMetric(scores, specs);
  if (!metric) return status === "succeeded" ? sentence("The two have no score in common.") : null;
  const { difference, interval: ends, p, minimum_detectable: detectable } = scores[metric];
  const title = titleOf(metric);
  const test = typeof p === "number" ? `, ${probability(p)}` : "";
  const found = `${signed(difference, metric)}${ends ? ` ${interval(ends, metric)}` : ""}${test}`;
  const preferring = (/** @type {string} */ side) =>
    names.filter(
      (name) =>
        name !== metric &&
        specs.get(name)?.family === "postgen" &&
        betterSide(scores[name], specs.get(name)) === side,
    );
  const others = /** @type {const} */ (["a", "b"]).flatMap((side) => {
    const metrics = preferring(side).map(titleOf);
    return metrics.length
      ? [`${listed(metrics)} ${metrics.length === 1 ? "prefers" : "prefer"} ${side === "a" ? a : b}.`]
      : [];
  });
  const said = words.length > 0 && `${a} says ${exchanges(words)}.`;
  const side = betterSide(scores[metric], specs.get(metric));
  if (side) {
    const size = number(Math.abs(Number(difference)), metric);
    const bounds = interval(upright(ends), metric);
    return sentence(
      `${a} is ${size} ${side === "a" ? "better" : "worse"} than ${b} in ${title}${bounds && ` ${bounds}`}${test}.`,
      ...others,
      undecided(
        names.filter((name) => name !== metric && specs.get(name)?.family === "postgen"),
        scores,
      ),
      said,
    );
  }
  const claim =
    typeof p !== "number"
      ? `${title} differs by ${found}; no test of it exists.`
      : p < TOLD
        ? `They differ in ${title}: ${found}.`
        : `No difference in ${title} is shown: ${found}.`;
  return sentence(
    claim,
    typeof detectable === "number" &&
      `A difference of ${number(detectable, metric)} would be found 4 times in 5.`,
    ...others,
    said,
  );
}

/** The metrics by whose tests the two are not told apart. @param {string[]} metrics @param {Schemas["Comparison"]["scores"]} scores */
function undecided(metrics, scores) {
  const found = metrics.filter((metric) => Number(scores[metric].p ?? 0) >= TOLD);
  const told = found.map((metric) => `${titleOf(metric)} (${probability(scores[metric].p)})`);
  return told.length > 0 && `No difference is shown in ${listed(told)}.`;
}

/** Bounds of a difference as those of its size. @param {[number | null, number | null] | null | undefined} ends @returns {[number, number] | null} */
function upright(ends) {
  const [low, high] = ends ?? [];
  if (typeof low !== "number" || typeof high !== "number") return null;
  return low + high < 0 ? [-high, -low] : [low, high];
}

/** The side that a test tells to be better. @param {Schemas["Compared"]} score @param {{ higher_is_better: boolean | null } | undefined} spec */
function betterSide({ difference, p }, spec) {
  if (typeof p !== "number" || p >= TOLD || !difference || typeof spec?.higher_is_better !== "boolean")
    return null;
  return difference > 0 === spec.higher_is_better ? "a" : "b";
}

/** Falls, the kinds that tell most first: against another run, against the own trend, against the step before. */
const KINDS = ["run", "trend", "step"];

/** @param {Fall[]} falls @param {string} [metric] */
export const worstFalls = (falls, metric = USUAL) =>
  [...falls].sort(
    (one, other) =>
      Number(other.metric === metric) - Number(one.metric === metric) ||
      KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind) ||
      Math.abs(other.difference) - Math.abs(one.difference),
  );

/** What it is worse than. @param {Fall} fall @param {string} [at] */
const rivalOf = (fall, at = "") =>
  ({ run: `${otherRun(fall)}${at}`, trend: "its trend", step: "the step before" })[fall.kind];

/** @param {Fall} fall */
const otherRun = ({ beside }) => isolated(beside?.labels.run ?? "another run");

/** `behind merge-64`, as a sign says it; by another metric than the main one, that is named. @param {Fall} fall @param {string} [metric] The main one. */
export const fallSign = (fall, metric = fall.metric) =>
  `${fall.kind === "run" ? "behind" : sideOf(fall)} ${rivalOf(fall)}${fall.metric === metric ? "" : ` in ${titleOf(fall.metric)}`}`;

/** @param {Fall} fall */
const sideOf = ({ difference }) => (difference < 0 ? "below" : "above");

/** `1.250 CIDEr-D below merge-64 at the same step`. @param {Fall} fall @param {string} [at] */
export const fallSize = (fall, at = "the same step") =>
  `${number(Math.abs(fall.difference), fall.metric)} ${titleOf(fall.metric)} ${sideOf(fall)} ${rivalOf(fall, ` at ${at}`)}`;

/** A fall in words, without a full stop. @param {Fall} fall */
export const fallOf = (fall) => `Step ${count(fall.step)} is ${fallSize(fall)}`;

/** `white for red (21), black for blue (4)`. @param {Schemas["WordExchange"][]} words */
const exchanges = (words) =>
  words
    .slice(0, MOST_NAMED)
    .map(({ a, b, images }) => `${isolated(a)} for ${isolated(b)} (${count(images)})`)
    .join(", ");

/**
 * @param {{ run: string, metric: string, steps: (Evaluation & { step: number })[], words?: Schemas["WordExchange"][], others?: { run: string, steps: (Evaluation & { step: number })[] }[] }} of
 *   `steps`: in their order. `words`: those that the worst fall says in the place of the other training's.
 *   `others`: trainings beside this one.
 */
export function trainingSentence({ run, metric, steps, words = [], others = [] }) {
  if (!steps.length) return null;
  const [worst] = worstFalls(
    steps.flatMap(({ falls }) => falls ?? []),
    metric,
  );
  const fallen = steps.filter(({ falls }) => falls?.length).length;
  const open = steps.filter(({ status }) => status === "running" || status === "queued").length;
  const best = bestStep(metric, steps);
  const done = steps.filter(({ status }) => status === "succeeded");
  const last = done[done.length - 1];
  const since = collapsedSince(done, ({ collapsed }) => collapsed);
  const collapse =
    last?.collapsed &&
    `Step ${count(last.step)} says ${repeatedIn(last.collapsed)}${!since || since === last ? "" : `; one caption for at least half of the images since step ${count(since.step)}`}.`;
  const details = [
    worst && last && last.step > worst.step && latestBeside(last, worst, metric, others),
    best &&
      `Its best ${titleOf(metric)} is ${scored(best.scores[metric], metric)} at step ${count(best.step)}.`,
    open > 0 && `${plural(open, "checkpoint")} ${open === 1 ? "is" : "are"} not scored yet.`,
  ];
  const fall =
    worst && `${fallOf(worst)}${worst.beside && words.length ? `; it says ${exchanges(words)}` : ""}.`;
  if (fall)
    return sentence(
      collapse || fall,
      collapse && fall,
      fallen > 1 &&
        `${plural(fallen - 1, "other step")} ${fallen === 2 ? "is" : "are"} worse than expected, too.`,
      ...details,
    );
  if (collapse) return sentence(collapse, ...details);
  if (!best) return sentence(`No checkpoint of ${run} has a ${titleOf(metric)} yet.`, details[2]);
  return sentence(
    `No step of ${run} is worse than expected; its best ${titleOf(metric)} is ${scored(best.scores[metric], metric)} at step ${count(best.step)}.`,
    details[2],
  );
}

/** The first of the last steps, if all of these have collapsed. @template T @param {T[]} steps @param {(step: T) => unknown} hasCollapsed @returns {T | undefined} */
export const collapsedSince = (steps, hasCollapsed) =>
  steps[steps.findLastIndex((step) => !hasCollapsed(step)) + 1];

/** The score of the latest step after a fall, beside that of the training that the fall is behind. @param {Evaluation & { step: number }} last @param {Fall} fall @param {string} metric @param {{ run: string, steps: (Evaluation & { step: number })[] }[]} others */
function latestBeside({ step, scores }, { beside }, metric, others) {
  const other = others.find(({ run }) => run === beside?.labels.run);
  const rival = other?.steps.find((each) => each.step === step)?.scores[metric];
  if (!other || typeof rival?.value !== "number" || typeof scores[metric]?.value !== "number") return null;
  return `At step ${count(step)} it has ${scored(scores[metric], metric)}, ${isolated(other.run)} ${scored(rival, metric)}.`;
}

/** @template {Evaluation & { step: number }} Step @param {string} metric @param {Step[]} steps */
export function bestStep(metric, steps) {
  const measured = steps.filter(({ scores }) => typeof scores[metric]?.value === "number");
  const sign = measured[0]?.scores[metric].higher_is_better === false ? -1 : 1;
  const worth = (/** @type {Step} */ { scores }) => sign * Number(scores[metric].value);
  return measured.reduce(
    (best, each) => (!best || worth(each) > worth(best) ? each : best),
    /** @type {Step | null} */ (null),
  );
}

/** @param {Schemas["CaptionerTraining"][]} items Of one split. */
export function trainingsSentence(items) {
  if (!items.length) return null;
  const ranked = items.filter(({ best, metric }) => best && metric === items[0].metric);
  const sign = items[0].higher_is_better === false ? -1 : 1;
  const [first] = ranked.sort((one, other) => sign * (Number(other.best?.value) - Number(one.best?.value)));
  const fallen = items.flatMap(({ run, metric, steps }) => {
    const [fall] = steps.flatMap((step) => step.fall ?? []).reverse();
    return fall ? [`${isolated(run)} at step ${count(fall.step)} is ${fallSign(fall, metric)}`] : [];
  });
  const repeating = items.flatMap(({ run, steps }) => {
    const done = steps.filter(({ status }) => status === "succeeded");
    const since = collapsedSince(done, (step) => step.is_collapsed);
    return since
      ? [`${isolated(run)} has said one caption for most images since step ${count(since.step)}`]
      : [];
  });
  const best = first?.best
    ? `${first.run} has the checkpoint with the best ${titleOf(first.metric)}: ${number(first.best.value, first.metric)} at step ${count(first.best.step)}.`
    : `${plural(items.length, "training run")}, none with a score yet.`;
  const falling =
    fallen.length > 0
      ? `${listed(fallen)}.`
      : `No step is worse than expected in ${titleOf(items[0].metric)}.`;
  return repeating.length > 0 ? sentence(`${listed(repeating)}.`, best, falling) : sentence(best, falling);
}

/** @param {{ wording: Schemas["CaptionPage"]["wording"] | null | undefined, collapsed: Evaluation["collapsed"] | null | undefined }} of `wording`: of all captions. */
export function captionsSentence({ wording, collapsed }) {
  const repeated = repeatedCaption(collapsed);
  if (!wording?.of) return repeated ? sentence(repeated) : null;
  const words = (/** @type {{ word: string, captions: number }[]} */ items) =>
    items
      .slice(0, MOST_NAMED)
      .map(({ word, captions }) => `${isolated(word)} (${count(captions)})`)
      .join(", ");
  const { of, copied, without_bigram: without, invented, missed } = wording;
  const [worst, ...others] = invented;
  const claim = worst
    ? `${count(worst.captions)} of ${plural(of, "caption")} ${worst.captions === 1 ? "says" : "say"} “${isolated(worst.word)}”, which no reference of the image says.`
    : `Each content word of ${plural(of, "caption")} is in a reference of its image.`;
  return sentence(
    repeated || claim,
    repeated && claim,
    !repeated && others.length > 0 && `Next: ${words(others)}.`,
    !repeated && missed.length > 0 && `Most often missed: ${words(missed)}.`,
    `${copied ? count(copied) : "None"} ${copied > 1 ? "are references" : "is a reference"} word for word.`,
    without > 0 &&
      `${count(without)} ${without > 1 ? "share" : "shares"} no two successive words with a reference.`,
  );
}

/** @param {{ caption: Schemas["Caption"] | null | undefined }} of */
export function imageSentence({ caption }) {
  if (!caption) return null;
  const { invented, missed, nearest } = caption;
  if (!nearest) return sentence("The image has no reference.");
  return sentence(
    invented.length
      ? `The caption says ${listed(invented)}, which no reference says.`
      : "Each content word of the caption is in a reference.",
    missed.length > 0 && `It does not say ${listed(missed)}, which the nearest reference says.`,
  );
}

/** @param {{ dataset: Schemas["Dataset"], split: string }} of */
export function datasetSentence({ dataset, split }) {
  const found = dataset.splits[split];
  if (!found) return null;
  const each = found.references / found.images;
  return sentence(
    `${plural(found.images, "image")} with ${Number.isInteger(each) ? `${plural(each, "caption")}${found.images === 1 ? "" : " each"}` : `${plural(found.references, "caption")} by people`}.`,
    picturesOf(found, dataset.pictures_shown),
  );
}

/** @param {{ images: number, pictures: number }} split @param {boolean} isShown */
function picturesOf({ images, pictures }, isShown) {
  if (!pictures) return `${images === 1 ? "It has" : "They have"} no pictures.`;
  if (!isShown) return `${plural(pictures, "picture")} ${pictures === 1 ? "is" : "are"} not shown.`;
  if (pictures === images) return images === 1 ? "It has a picture." : "All have pictures.";
  return `${count(pictures)} of ${plural(images, "image")} ${pictures === 1 ? "has a picture" : "have pictures"}.`;
}

/** @typedef {Record<string, Schemas["MetricHealth"]> | null | undefined} Health By metric; null: no probes have been run. */

const MOST_TRUSTED = 0.5; // of people's score, for one caption for all images, from which on no metric is recommended
const NO_PROBES = "no probes have been run on this split";
const NOT_MEASURED = "the probes have no score of one caption for all images";

/** Metrics by the share of people's score that one caption for all images has, in percent, the lowest first. @param {Health} health */
const constantShares = (health) =>
  Object.entries(health ?? {})
    .flatMap(([metric, { constant_of_human: share }]) =>
      typeof share === "number" ? [{ metric, share: Math.round(100 * share) }] : [],
    )
    .sort((one, other) => one.share - other.share);

const TRAINING_REMEDY = "Add a split named train to the dataset, and run the probes again.";

/** Whether a split of training captions would tell more. @param {Health} health @param {string | null | undefined} reason */
const isWithoutTraining = (health, reason) =>
  constantShares(health).length === 0 && Boolean(reason?.startsWith("no training captions"));

/** Why it is not known which metric to trust. @param {Health} health @param {string | null | undefined} reason Of the probe. */
const untoldBecause = (health, reason) =>
  !health ? NO_PROBES : `${NOT_MEASURED}${reason ? ` (${reason})` : ""}`;

/**
 * @param {{ health: Health, reason?: string | null, correlations: Schemas["Correlations"] | null, target: string }} of
 *   `reason`: why the probe of one caption for all images has no score.
 */
export function trustSentence({ health, reason, correlations, target }) {
  const found = correlations?.study;
  const predictors = found?.metrics[target]?.correlations ?? [];
  const shares = constantShares(health);
  const others = shares.filter(({ share }) => share > shares[0].share);
  const own = others.length > 1 && others.find(({ metric }) => metric === target); // one alone is in the claim
  return sentence(
    mostTrusted(health, reason),
    isWithoutTraining(health, reason) && TRAINING_REMEDY,
    own && `With ${titleOf(target)} it gets ${own.share}\u00a0%.`,
    shares.length > 0 && "How well metrics agree with people's ratings is not measured here.",
    found && strongest(predictors)
      ? `${predictor(predictors, target)}, ${chosenOf(found.pregen)}.`
      : `Not known yet which pre-gen metric predicts ${titleOf(target)}.`,
  );
}

/** @param {Health} health @param {string | null | undefined} reason */
function mostTrusted(health, reason) {
  const shares = constantShares(health);
  if (!shares.length) return `Not known yet which metric to trust here: ${untoldBecause(health, reason)}.`;
  const least = shares[0].share;
  const first = shares.filter(({ share }) => share === least);
  const others = shares.slice(first.length);
  const names = listed(first.map(({ metric }) => titleOf(metric)));
  const gives = `${names} ${first.length === 1 ? "gives" : "give"} one caption for all images ${least}\u00a0% of people's score`;
  if (least >= 100 * MOST_TRUSTED) return `Trust no metric alone here: even ${gives}.`;
  if (!others.length) return `${gives}; no other metric was probed.`;
  const [low, high] = [others[0].share, others[others.length - 1].share];
  const rest = others.length === 1 ? titleOf(others[0].metric) : `the ${others.length} other metrics`;
  return `${names} ${first.length === 1 ? "is" : "are"} hardest to fool here: one caption for all images gets ${least}\u00a0% of people's score; with ${rest} ${low === high ? low : `${low} to ${high}`}\u00a0%.`;
}

/** Whether to trust a metric of captions on a split. @param {string} metric @param {Health} health */
export function trustOf(metric, health) {
  const shares = constantShares(health);
  const own = shares.find((each) => each.metric === metric);
  if (!own) return `Not known yet whether to trust it on this split: ${untoldBecause(health, null)}.`;
  const gives = `it gives one caption for all images ${own.share}\u00a0% of people's score`;
  const [{ metric: first, share: least }] = shares;
  if (own.share > least)
    return `On this split ${titleOf(first)} is harder to fool, and to be trusted more: ${gives}, ${titleOf(first)} ${least}\u00a0%.`;
  if (least >= 100 * MOST_TRUSTED) return `On this split it is not to be trusted alone: ${gives}.`;
  return shares.length === 1
    ? `On this split ${gives}; no other metric was probed.`
    : `On this split it is the hardest to fool, and to be trusted most: ${gives}, the least of ${shares.length} metrics.`;
}

/** Pairs, forecasts: fewer are told one by one, not as a share. */
export const FEW = 5;
export const PERCENTS = [5, 10, 25, 50]; // of a training run's steps, at which early scores are compared
const ENOUGH = 0.9; // of pairs, for a metric to be recommended
const MANY = 20; // pairs, of which all are right whichever training run is left out

/** The metric that decides earliest, or that none is sure to. @param {Schemas["SignalCard"]} card */
export function earlyFinding({ pairs, target, metrics }) {
  if (pairs < FEW)
    return pairs
      ? `${plural(pairs, "pair")} of training runs ${pairs === 1 ? "is" : "are"} too few to say which metric decides early.`
      : "No pair of training runs tells which metric decides early.";
  for (const percent of PERCENTS) {
    const [best] = metrics
      .map(({ metric, decisions }) => ({ metric, decision: decisionAt(decisions, percent) }))
      .filter(({ decision }) => surely(decision) >= ENOUGH)
      .sort((a, b) => (b.decision?.accuracy ?? 0) - (a.decision?.accuracy ?? 0));
    if (best?.decision)
      return `At ${percent} % of the steps, ${titleOf(best.metric)} has the final order in ${titleOf(target)} of ${decidedShare(best.decision)} of ${count(best.decision.pairs)} pairs of training runs.`;
  }
  return `No metric surely has the final order in ${titleOf(target)} of ${ENOUGH * 100} % of ${count(pairs)} pairs of training runs in the first half of the steps.`;
}

/** @param {Schemas["EarlyDecision"][]} decisions @param {number} percent */
export const decisionAt = (decisions, percent) => decisions.find((each) => each.percent === percent);

/** The share of pairs that are surely right. @param {Schemas["EarlyDecision"] | undefined} decision */
function surely(decision) {
  if (!decision?.accuracy || decision.pairs < FEW) return 0;
  return decision.interval?.[0] ?? (decision.pairs >= MANY ? decision.accuracy : 0);
}

/** `2 of 2`, or `93 % (85–99)` of enough pairs. @param {Schemas["EarlyDecision"] | undefined} decision */
export function decidedShare(decision) {
  const { accuracy, interval: ends, pairs = 0 } = decision ?? {};
  if (typeof accuracy !== "number") return "–";
  if (pairs < FEW) return `${Math.round(accuracy * pairs)} of ${pairs}`;
  const [whole, low, high] = [accuracy, ...(ends ?? [])].map((each) => Math.round(100 * each));
  return ends ? `${whole} % (${low}–${high})` : `${whole} %`;
}

/**
 * Each of few forecasts, with its interval and what was measured.
 *
 * @param {{ metric: string, pairs: { forecast: { value: number | null, interval: any }, value: number }[] }} of
 */
export function forecastsSentence({ metric, pairs }) {
  if (!pairs.length) return `No forecast of ${titleOf(metric)} can be compared with a measured value yet.`;
  const each = pairs.map(({ forecast, value }) => {
    const ends = forecast.interval;
    const isMissed = ends && (value < ends[0] || value > ends[1]);
    return `${scored(forecast, metric)}${ends ? "" : " without an interval"}, measured ${number(value, metric)}${isMissed ? ", outside it" : ""}`;
  });
  const many = pairs.length === 1 ? "One forecast" : `${count(pairs.length)} forecasts`;
  return `${many} so far: ${titleOf(metric)} ${each.join("; ")}: too few to judge.`;
}

/** @param {{ correlations: Schemas["Correlations"], target: string }} of */
export function pregenSentence({ correlations: { study, none_because: reason }, target }) {
  const found = study?.metrics[target]?.correlations ?? [];
  if (!study || !strongest(found))
    return sentence(
      `Not known yet which pre-gen metric predicts ${titleOf(target)} here: ${study ? `the study has no ${titleOf(target)}` : withTitles(reason ?? "no study of this split has been made")}.`,
    );
  return sentence(`${predictor(found, target)}.`, `${capitalized(chosenOf(study.pregen))}.`);
}

/** The one that agrees most over models. @param {Schemas["Correlation"][]} correlations */
export const strongest = (correlations) =>
  correlations
    .filter(({ spearman }) => typeof spearman === "number")
    .sort((one, other) => Math.abs(Number(other.spearman)) - Math.abs(Number(one.spearman)))[0];

/** The strongest, and how many are as strong. @param {Schemas["Correlation"][]} found @param {string} target */
function predictor(found, target) {
  const { metric, spearman, models } = strongest(found);
  const others = found.filter((each) => isAsStrong(each.spearman, spearman)).length - 1;
  const as = others > 0 ? `, as well as ${plural(others, "other metric")}` : "";
  const words = wordsOf(metric);
  return `${words === titleOf(metric) ? words : `The ${words}`} predicts ${titleOf(target)} best here${as} (Spearman ${signed(spearman)} over ${plural(models, "model")})`;
}

const ROUNDING = 1e-9;

/** @param {number | null} one @param {number | null} other */
const isAsStrong = (one, other) =>
  one !== null && other !== null && Math.abs(Math.abs(one) - Math.abs(other)) < ROUNDING;

/** @param {Schemas["Remaining"]} pregen */
const chosenOf = ({ remain }) => `picked from ${plural(remain, "metric")}, so partly chance`;

/** That no worker is there, or that some do not answer; empty where all answer. @param {Schemas["Worker"][]} workers */
export function workersProblem(workers) {
  if (!workers.length) return "No worker is running";
  const silent = workers.filter(({ state }) => state === "not_answering").length;
  if (!silent) return "";
  return `${count(silent)} of ${plural(workers.length, "worker")} ${silent === 1 ? "is" : "are"} not answering`;
}

/** @param {{ running: number, queued: number, workers: Schemas["Worker"][] }} of */
export function jobsSentence({ running, queued, workers }) {
  const waiting = queued > 0 ? `${plural(queued, "evaluation")} ${queued === 1 ? "is" : "are"} queued` : "";
  const problem = workersProblem(workers);
  if (!workers.length)
    return sentence(
      `${problem}${waiting && `: ${waiting}`}.`,
      "Start one with: prescore worker inference, prescore worker metrics.",
    );
  const busy = workers.filter(({ state }) => state === "busy").length;
  const works = `${plural(running, "job")} running, ${count(queued)} queued`;
  return sentence(
    problem ? `${problem}: ${works}.` : `${works}.`,
    !problem && `${count(busy)} of ${plural(workers.length, "worker")} ${busy === 1 ? "is" : "are"} busy.`,
  );
}
