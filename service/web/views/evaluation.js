/** One evaluation: what was asked, how far it is, its scores beside their forecasts, its gates. */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { signal } from "../core/signals.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { direction, duration, interval, number, short, time } from "../parts/numbers.js";
import { answered, badge, labels, refusal } from "../parts/states.js";
import { rangeOf, whisker } from "../parts/whisker.js";

const SHARES = [
  ["human", "people's own captions"],
  ["constant", "one caption for all images"],
];

/** @param {string} id */
export function evaluation(id) {
  const found = resource(() => place("/v1/evaluations", id));
  onChange((change) => {
    if (!change || change.id === id) found.refresh();
  });
  return {
    title: id,
    content: h("div", {}, h("h1", {}, "Evaluation ", h("code", {}, id)), answered(found, () => parts(found))),
  };
}

/** Each part is made once, and follows the answer. @param {ReturnType<typeof resource>} found */
function parts(found) {
  const run = () => found.answer.value;
  return [
    heading(run, found.refresh),
    () => run().error && h("p", { class: "notice bad", role: "alert" }, h("strong", {}, run().error.code), " ", run().error.detail),
    section("Works", () => works(run().works)),
    section("Scores", () => scores(run())),
    () => run().gates.length > 0 && section("Gates", () => gates(run())),
    () => run().warnings.length > 0 && section("Warnings", () => h("ul", {}, run().warnings.map((/** @type {any} */ each) => h("li", {}, h("strong", {}, each.code), ` ${each.image ?? ""} ${each.detail}`)))),
    section("Ask for it", () => command(`curl ${location.origin}${place("/v1/evaluations", run().id)}`, "Ask for this evaluation by curl")),
  ];
}

/** @param {string} title @param {() => import("../core/dom.js").Child} content */
const section = (title, content) => h("section", { "aria-label": title }, h("h2", {}, title), content);

/** @param {() => any} run @param {() => void} refresh */
function heading(run, refresh) {
  const { dataset, checkpoint, columns, created_at } = run();
  return h(
    "dl",
    { class: "facts" },
    fact("State", () => [badge(run().status), " ", run().verdict && badge(run().verdict), " ", stop(run, refresh)]),
    fact("Dataset", h("a", { href: place("/ui/datasets", dataset.name, dataset.split) }, `${dataset.name}/${dataset.split}`), ` ${dataset.version} `, h("code", { title: dataset.digest }, short(dataset.digest))),
    checkpoint && fact("Checkpoint", h("code", { title: checkpoint }, short(checkpoint))),
    columns && fact("Columns", h("code", { title: columns }, short(columns))),
    fact("Labels", () => (Object.keys(run().labels).length ? labels(run().labels) : "none")),
    () => run().note && fact("Note", run().note),
    fact("Submitted", time(created_at)),
    fact("Ended", () => (run().finished_at ? time(run().finished_at) : "not yet")),
  );
}

/** @param {string} name @param {...import("../core/dom.js").Child} content */
const fact = (name, ...content) => h("div", {}, h("dt", {}, name), h("dd", {}, ...content));

/** @param {() => any} run @param {() => void} refresh */
function stop(run, refresh) {
  const why = signal(/** @type {Refused | null} */ (null));
  const cancel = async () => {
    try {
      await ask(`${place("/v1/evaluations", run().id)}/cancel`, { method: "POST" });
      refresh();
    } catch (error) {
      if (error instanceof Refused) why.value = error;
    }
  };
  return [
    () => !run().finished_at && h("button", { type: "button", onclick: cancel }, "Cancel"),
    () => why.value && refusal(why.value),
  ];
}

/** @param {any[]} list */
function works(list) {
  return h(
    "table",
    { class: "works" },
    h("thead", {}, h("tr", {}, ["Work", "State", "Progress", "Time", "Attempts"].map((name) => h("th", { scope: "col" }, name)))),
    h(
      "tbody",
      {},
      list.map((work) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, work.name),
          h("td", {}, badge(work.status), work.cached && h("span", { class: "label" }, "kept from before")),
          h("td", {}, progress(work), work.error && h("span", { class: "bad" }, ` ${work.error.code}: ${work.error.detail}`)),
          h("td", { class: "number" }, duration(work.seconds)),
          h("td", { class: "number" }, work.attempts),
        ),
      ),
    ),
  );
}

/** @param {any} work */
function progress({ name, status, progress: { done, total } }) {
  const whole = total ?? 0;
  const share = status === "done" || status === "succeeded" ? 1 : whole ? done / whole : 0;
  return h("progress", { max: 1, value: share, "aria-label": `${name}: ${whole ? `${done} of ${whole}` : badge(status).textContent}` });
}

/** Scores that are measured, and those that are only forecast yet. @param {any} run */
function scores(run) {
  const forecasts = run.forecast && !run.forecast.none_because ? run.forecast : {};
  const names = [...new Set([...Object.keys(run.scores), ...Object.keys(forecasts)])];
  if (!names.length) return h("p", { class: "quiet" }, "None yet.");
  return [
    run.forecast?.none_because && h("p", { class: "quiet" }, `No forecast: ${run.forecast.none_because}`),
    h(
      "div",
      { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Table of scores" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ["Metric", "Score", "Interval", "Drawn", "Forecast", "Health", "Signature"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, names.map((name) => scoreRow(name, run.scores[name], forecasts[name], run.health?.[name], run.estimate?.[name]))),
      ),
    ),
  ];
}

/** @param {string} name @param {any} score @param {any} forecast @param {any} health @param {any} estimate */
function scoreRow(name, score, forecast, health, estimate) {
  const shown = score ?? { value: estimate?.value ?? null, interval: estimate?.interval ?? null };
  const range = rangeOf([shown, forecast].filter(Boolean));
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name, score && h("span", { class: "quiet" }, ` ${direction(score.higher_is_better)}`)),
    h("td", { class: "number" }, number(shown.value), !score && estimate && h("span", { class: "quiet" }, ` of ${estimate.images} of ${estimate.of} images`)),
    h("td", { class: "number" }, interval(shown.interval)),
    h("td", {}, whisker(shown, range, { forecast })),
    h("td", { class: "number" }, forecast && (forecast.none_because ?? `${number(forecast.value)} ${interval(forecast.interval)}`)),
    h("td", {}, health && SHARES.flatMap(([key, told]) => (health[key] === null ? [] : [h("span", { class: "label", title: told }, `${key} ${number(health[key])}`)]))),
    h("td", {}, score && h("code", {}, score.signature)),
  );
}

/** @param {any} run */
function gates(run) {
  return run.gates.map((/** @type {any} */ gate) =>
    h(
      "article",
      { class: "gate" },
      h("h3", {}, h("code", {}, gate.gate), " ", badge(gate.verdict)),
      gate.detail && h("p", {}, gate.detail),
      gate.no_baseline && h("p", { class: "quiet" }, "There was no baseline to compare with."),
      gate.baseline_failed && h("p", { class: "quiet" }, "The baseline failed its own gates."),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ["Metric", "Score", "Baseline", "Difference", "p", "Could be seen from"].map((name) => h("th", { scope: "col" }, name)))),
        h(
          "tbody",
          {},
          Object.entries(gate.scores).map(([name, each]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, name),
              h("td", { class: "number" }, `${number(each.value)} ${interval(each.interval)}`),
              h("td", { class: "number" }, each.evaluation ? h("a", { href: place("/ui/evaluations", each.evaluation) }, number(each.baseline)) : number(each.baseline)),
              h("td", { class: "number" }, number(each.difference)),
              h("td", { class: "number" }, number(each.p)),
              h("td", { class: "number" }, number(each.minimum_detectable)),
            ),
          ),
        ),
      ),
    ),
  );
}
