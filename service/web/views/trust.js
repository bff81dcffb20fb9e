/** Which metric to trust on one split: predictors, forecasts against outcomes, early decisions, probes. */

import { ask, refusedBy, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange } from "../core/live.js";
import { computed, signal } from "../core/signals.js";
import { place, query } from "../core/urls.js";
import { section, view } from "../parts/layout.js";
import { withTitles } from "../parts/metrics.js";
import { splitCrumbs, splitTabs } from "../parts/places.js";
import { strongest, trustSentence } from "../parts/sentences.js";
import { allAnswered, answered, badge, failure, refusal } from "../parts/states.js";
import { targetChoice } from "./choice.js";
import { stopButton } from "./stop.js";
import { stateOf, taskProgress } from "./tasks.js";
import { correlations } from "./trusted/correlations.js";
import { forecasts } from "./trusted/forecasts.js";
import { probed } from "./trusted/probes.js";
import { signals } from "./trusted/signals.js";

const ALL = 1000; // pre-gen metrics for each post-gen metric: more than there are

/** @param {string} name @param {string} split */
export function trust(name, split) {
  const dataset = `${name}/${split}`;
  const target = query("target", "cider_d");
  const study = resource(() => place("/v1/datasets", name, "correlations", { split, limit: ALL }));
  const past = resource(() =>
    place("/v1/evaluations", { dataset, status: "succeeded", limit: 200, metrics: target.value }),
  );
  const card = resource(() => place("/v1/datasets", name, "signal", { split, target: target.value }));
  const probes = resource(() => place("/v1/probes", { dataset, status: "succeeded", limit: 1 }));
  onChange((told) => {
    if (!told || told.kind === "study") study.refresh();
    if (!told || told.kind === "probes") probes.refresh();
    if (!told || (told.kind === "evaluation" && told.status === "succeeded")) {
      past.refresh();
      if (study.answer.peek()?.none_because) study.refresh(); // there may be enough to study now
    }
    if (!told) card.refresh(); // a second of the service's time, for what one evaluation hardly changes
  });
  const latest = () => /** @type {Schemas["Probes"] | null} */ (probes.answer.value?.items[0] ?? null);
  return view(
    {
      title: `Which metric to trust on ${dataset}`,
      name: "Which metric to trust",
      crumbs: () => [...splitCrumbs({ name, split }), ["Which metric to trust"]],
      sentence: () =>
        study.answer.value &&
        probes.answer.value &&
        trustSentence({
          health: latest()?.health,
          reason: latest()?.probes.single?.find(({ reason }) => reason)?.reason,
          correlations: study.answer.value,
          target: target.value,
        }),
      tabs: splitTabs(name, split),
      kind: "long",
      needs: [study, past, probes],
    },
    () =>
      allAnswered([card], () => [
        targetChoice(
          () =>
            [study.answer.value?.study?.metrics, latest()?.health].flatMap((each) => Object.keys(each ?? {})),
          target,
        ),
        headed(
          "Pre-gen metrics that predict it",
          starter("Study the correlations", "/v1/studies", "study", dataset, () =>
            withTitles(study.answer.value?.none_because ?? ""),
          ),
          () => correlations(study.answer.value, target.value),
        ),
        section("Forecasts and results", () =>
          forecasts(past.answer.value.items, target.value, predictorOf(study.answer.value, target.value)),
        ),
        section("Metrics that tell early which training run ends better", answered(card, signals)),
        headed(
          "Captions of known quality",
          starter("Run the probes", "/v1/probes", "probes", dataset),
          () => {
            const run = latest();
            return run ? probed(run, target) : h("p.quiet", "No probes have been run on this split.");
          },
        ),
      ]),
  );
}

/** @param {Schemas["Correlations"]} found @param {string} target */
const predictorOf = ({ study }, target) => strongest(study?.metrics[target]?.correlations ?? [])?.metric;

/** A section with a button below its content. @param {string} title @param {Child} button @param {Child} content */
const headed = (title, button, content) =>
  h("section", { "aria-label": title }, h("h2", title), content, button);

/** A button that starts a run; the run is followed until it ends, and can be stopped. @param {string} text @param {string} url @param {string} kind @param {string} dataset @param {() => string} [hindrance] Why it cannot be started; empty where it can. */
function starter(text, url, kind, dataset, hindrance = () => "") {
  const refused = signal(/** @type {import("../core/api.js").Refused | null} */ (null));
  const latest = resource(() => place(url, { dataset, limit: 1 }));
  onChange((told) => (!told || told.kind === kind) && latest.refresh());
  const run = computed(() => latest.answer.value?.items[0] ?? null);
  const openId = computed(() => (run.value && !run.value.finished_at ? run.value.id : null));
  const begin = async () => {
    refused.value = null;
    await ask(url, { method: "POST", json: { dataset } }).then(latest.refresh, (error) => {
      refused.value = refusedBy(error);
    });
  };
  return h(
    "div.bar.started",
    { "data-kind": kind },
    h(
      "span",
      { role: "status" },
      () => openId.value && [badge(stateOf(run.value)), taskProgress(run.value.tasks)],
    ),
    () => openId.value && stopButton(text, () => place(url, openId.peek() ?? ""), latest.refresh),
    h(
      "button",
      { type: "button", disabled: () => openId.value !== null || hindrance() !== "", onclick: begin },
      text,
    ),
    () => hindrance() && h("span.quiet", `Not yet: ${hindrance()}.`),
    () => run.value?.status === "failed" && failure(run.value.error),
    () => refused.value && refusal(refused.value),
  );
}
