/** How far metrics can be trusted on one split: correlations, probes, forecasts against what came, early decisions. */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onChange, onChangeOf } from "../core/live.js";
import { signal } from "../core/signals.js";
import { place, query } from "../core/urls.js";
import { section } from "../parts/layout.js";
import { splitTabs } from "../parts/places.js";
import { answered, badge, failure, refusal } from "../parts/states.js";
import { correlations } from "./trusted/correlations.js";
import { forecasts } from "./trusted/forecasts.js";
import { probed } from "./trusted/probes.js";
import { signals } from "./trusted/signals.js";

const MOST = 5; // pre-gen metrics shown for each post-gen metric

/** @param {string} name @param {string} split */
export function trust(name, split) {
  const dataset = `${name}/${split}`;
  const study = resource(() => place("/v1/datasets", name, "correlations", { split, limit: MOST }));
  const probes = resource(() => place("/v1/probes", { dataset, status: "succeeded", limit: 1 }));
  const target = query("target", "cider_d");
  const card = resource(() => place("/v1/datasets", name, "signal", { split, target: target.value }));
  const past = resource(() => place("/v1/evaluations", { dataset, status: "succeeded", limit: 200 }));
  onChange((told) => {
    if (!told || told.kind === "study") study.refresh();
    if (!told || told.kind === "probes") probes.refresh();
    if (!told || (told.kind === "evaluation" && told.status === "succeeded")) past.refresh();
    if (!told) card.refresh(); // a second of the service's time, for what one evaluation hardly changes
  });
  return {
    title: `Trust in ${dataset}`,
    content: h(
      "div",
      h("h1", `How far metrics can be trusted on ${dataset}`),
      splitTabs(name, split),
      section(
        "Do pre-gen scores predict post-gen scores?",
        answered(study, (found) => correlations(found)),
        asking("Study the correlations", "/v1/studies", { dataset }),
      ),
      section(
        "What do metrics say of captions whose quality is known?",
        answered(probes, ({ items: [latest] }) =>
          latest ? probed(latest.id) : h("p", { class: "quiet" }, "No probes have been run on this split."),
        ),
        asking("Run the probes", "/v1/probes", { dataset }),
      ),
      section(
        "Did forecasts come true?",
        answered(past, ({ items }) => forecasts(items)),
      ),
      section(
        "Which metric tells early which training will be better?",
        answered(card, (found) => signals(found, target)),
      ),
    ),
  };
}

/** A run that this page can start, followed until it ends. @param {string} text @param {string} url @param {unknown} json */
function asking(text, url, json) {
  const id = signal(/** @type {string | null} */ (null));
  const refused = signal(/** @type {Refused | null} */ (null));
  const made = resource(() => id.value && place(url, id.value));
  onChangeOf(() => id.peek(), made.refresh);
  const begin = async () => {
    refused.value = null;
    try {
      id.value = (await ask(url, { method: "POST", json })).id;
    } catch (error) {
      if (error instanceof Refused) refused.value = error;
    }
  };
  return h(
    "p",
    h("button", { type: "button", onclick: begin }, text),
    h("span", { role: "status" }, () => told(made.answer.value)),
    () => refused.value && refusal(refused.value),
  );
}

/** Nothing once it has succeeded: what it found is shown then. @param {{ status: string, error: { code: string, detail: string } | null } | null} run */
function told(run) {
  if (!run || run.status === "succeeded") return null;
  return [" ", badge(run.status), failure(run.error)];
}
