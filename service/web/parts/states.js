/** What stands where an answer will be: that it is asked for, why it was refused, or the answer. */

import { h } from "../core/dom.js";
import { computed, unread } from "../core/signals.js";

/** @typedef {import("../core/dom.js").Child} Child */
/** @typedef {ReturnType<typeof import("../core/api.js").resource>} Resource */

/**
 * @param {Resource} resource
 * @param {(answer: any) => Child} render Made anew for each answer.
 */
export const answered = (resource, render) => [
  () => refusalOf(resource),
  () => resource.answer.value !== null && render(resource.answer.value),
  () =>
    resource.answer.value === null &&
    !resource.refused.value &&
    h("p", { class: "quiet", "aria-busy": "true" }, "Loading…"),
];

/**
 * @param {Resource} resource
 * @param {() => Child} render Made once, when there is an answer; it follows the next ones by itself.
 */
export function following(resource, render) {
  const isThere = computed(() => resource.answer.value !== null);
  const there = {
    get value() {
      return isThere.value || null;
    },
  };
  return answered(/** @type {Resource} */ ({ ...resource, answer: there }), () => unread(render));
}

/** Why it was refused; a key that is missing is asked for elsewhere. @param {Pick<Resource, "refused">} resource */
export const refusalOf = ({ refused }) =>
  refused.value && refused.value.status !== 401 && refusal(refused.value);

/** @param {import("../core/api.js").Refused} refused */
export function refusal(refused) {
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", refused.message),
    refused.fields.length > 0 &&
      h(
        "ul",
        refused.fields.map((text) => h("li", text)),
      ),
  );
}

const WORDS = {
  queued: "queued",
  running: "running",
  waiting: "waiting",
  ready: "queued",
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

/** Why a run or a task failed. @param {{ code: string, detail: string } | null} error */
export const failure = (error) =>
  error && h("p", { class: "notice bad", role: "alert" }, h("strong", error.code), " ", error.detail);
