/** What stands where an answer will be: that it is asked for, why it was refused, or the answer. */

import { h } from "../core/dom.js";

/** @typedef {import("../core/dom.js").Child} Child */
/** @typedef {ReturnType<typeof import("../core/api.js").resource>} Resource */

/**
 * @param {Resource} resource
 * @param {(answer: any) => Child} render
 */
export const answered = (resource, render) => () => {
  const refused = resource.refused.value;
  const answer = resource.answer.value;
  return [
    refused && refused.status !== 401 && refusal(refused),
    answer !== null && render(answer),
    answer === null && !refused && h("p", { class: "quiet", "aria-busy": "true" }, "Asking…"),
  ];
};

/** @param {import("../core/api.js").Refused} refused */
export function refusal(refused) {
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", {}, refused.message),
    refused.fields.length > 0 && h("ul", {}, refused.fields.map((text) => h("li", {}, text))),
  );
}

const WORDS = {
  queued: "waits",
  running: "runs",
  succeeded: "done",
  failed: "failed",
  canceled: "canceled",
  passed: "passed",
  undecided: "undecided",
  not_comparable: "not comparable",
};

/** @param {string | null | undefined} status Told by a word, a form and a colour. */
export function badge(status) {
  const name = status ?? "none";
  return h("span", { class: ["badge", name] }, WORDS[/** @type {keyof typeof WORDS} */ (name)] ?? name);
}

/** @param {Record<string, string>} labels */
export const labels = (labels) =>
  Object.entries(labels ?? {}).map(([name, value]) => h("span", { class: "label" }, `${name}=${value}`));
