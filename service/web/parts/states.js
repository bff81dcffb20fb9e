/** What stands where an answer will be: that it is asked for, why it was refused, or the answer. */

import { h } from "../core/dom.js";
import { computed, unread } from "../core/signals.js";

/** @typedef {ReturnType<typeof import("../core/api.js").resource>} Resource */

/**
 * @param {Resource} resource
 * @param {(answer: any) => Child} render Made anew for each answer.
 */
export const answered = (resource, render) => [
  () => refusalOf(resource),
  () => resource.answer.value !== null && render(resource.answer.value),
  () => resource.answer.value === null && !resource.refused.value && loading(),
  () => resource.isSlow.value && slow([resource]),
];

/**
 * @param {Resource} resource
 * @param {() => Child} render Made once, when there is an answer; it follows the next ones by itself.
 */
export const following = (resource, render) => allNeeded([resource], render);

/**
 * Made once, when all have an answer: what is drawn at once does not move. Refusals are told above.
 *
 * @param {Resource[]} resources
 * @param {() => Child} render It follows the next answers by itself.
 */
export function allNeeded(resources, render) {
  const isThere = computed(() => resources.every(({ answer }) => answer.value !== null));
  return [() => resources.map(refusalOf), drawnOnce(resources, isThere, render)];
}

/**
 * The same, when each has its answer or will get none.
 *
 * @param {Resource[]} resources
 * @param {() => Child} render It shows each refusal in its place.
 */
export function allAnswered(resources, render) {
  let was = false;
  const isThere = computed(() => (was ||= resources.every(isSettled)));
  return [() => !isThere.value && resources.map(refusalOf), drawnOnce(resources, isThere, render)];
}

/** @param {Resource[]} resources @param {{ value: boolean }} isThere @param {() => Child} render */
const drawnOnce = (resources, isThere, render) => [
  () => isThere.value && unread(render),
  () => !isThere.value && !resources.some(({ refused }) => refused.value) && loading(),
  () => resources.some(({ isSlow }) => isSlow.value) && slow(resources),
];

/** @param {Resource} resource */
const isSettled = ({ answer, refused }) => {
  const status = refused.value?.status ?? 0;
  return answer.value !== null || (status >= 400 && status < 500 && status !== 401);
};

export const loading = () => h("p.quiet", { "aria-busy": "true" }, "Loading…");

/** Below what is drawn already: nothing moves. @param {Resource[]} resources */
function slow(resources) {
  const again = () => resources.filter(({ isSlow }) => isSlow.peek()).forEach(({ retry }) => retry());
  return h(
    "p.notice",
    { role: "status" },
    "The service has not answered for 10 s; the page goes on waiting. ",
    h("button", { type: "button", onclick: again }, "Retry"),
  );
}

/** Why it was refused; a key that is missing is asked for elsewhere. @param {Pick<Resource, "refused">} resource */
export const refusalOf = ({ refused }) =>
  refused.value && refused.value.status !== 401 && refusal(refused.value);

/** @param {import("../core/api.js").Refused} refused */
export function refusal(refused) {
  return h(
    "div.notice.bad",
    { role: "alert" },
    h("p", refused.message),
    refused.fields.length > 0 &&
      h(
        "ul",
        refused.fields.map((text) => h("li", text)),
      ),
  );
}

const WORDS = /** @type {Record<string, string>} */ ({ ready: "queued", succeeded: "done" });

/** @param {string | null | undefined} status Told by a word, a form and a colour. */
export function badge(status) {
  const name = status ?? "none";
  return h("span", { class: ["badge", name] }, WORDS[name] ?? name.replace("_", " "));
}

/** The verdict of all gates, which differs from the state. @param {string | null | undefined} verdict */
export const verdictBadge = (verdict) =>
  verdict && h("span", { class: ["badge", verdict] }, `gate ${verdict.replace("_", " ")}`);

/** @param {Record<string, string>} labels */
export const labels = (labels) =>
  Object.entries(labels ?? {}).map(([name, value]) => h("span.label", `${name}=${value}`));

/** Why a run or a task failed. @param {{ code: string, detail: string } | null} error */
export const failure = (error) =>
  error && h("p.notice.bad", { role: "alert", title: error.code }, error.detail);
