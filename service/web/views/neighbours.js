/**
 * The images before and after one, in the order of the list that one came from, else of the dataset. That list
 * stands in the address: `list=captions` with `sort`, `search`, `from`, `to`, `invented`, `missed`, or
 * `list=comparison` with `comparison`, `metric`, `sort`; and `at`, the place in it, from 1.
 */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onSteps } from "../core/keyboard.js";
import { computed, effect } from "../core/signals.js";
import { go, place, query, search } from "../core/urls.js";
import { copyLink } from "../parts/command.js";
import { titleOf } from "../parts/metrics.js";
import { count } from "../parts/numbers.js";
import { captionsPlace, comparePlace, imagePlace } from "../parts/places.js";

/** @typedef {{ before: string | null, after: string | null, at: number, text: string }} Around */
/** @typedef {{ url: string, order: string, back: [string, string], ahead: number }} List `ahead`: images that are asked for beyond the place. */
/** @typedef {Record<string, string>} State */

const MOST = 10_000; // images of a list that are looked at
export const STATE = ["sort", "search", "from", "to", "invented", "missed"];

/** The list that was looked at last, through which one goes without asking again. */
let last = { url: "", names: /** @type {string[]} */ ([]), total: /** @type {number | null} */ (null) };

/** The list's captions. @param {string} id @param {State} state @param {Record<string, any>} [more] */
export const captionsUrl = (id, { sort, search, from, to, invented, missed }, more) =>
  place("/v1/evaluations", id, "captions", {
    ...{ sort, search, invented, missed },
    ...{ at_least: sort && from, at_most: sort && to },
    ...more,
  });

/** @param {string} sort A metric, after a `-` the highest first. @param {boolean | null | undefined} higher Whether a high score is good. */
export function orderName(sort, higher) {
  const isDescending = sort.startsWith("-");
  if (typeof higher !== "boolean") return `${isDescending ? "highest" : "lowest"} first`;
  return `${isDescending === higher ? "best" : "worst"} first`;
}

/** The list that one came from. @param {string} id @param {Evaluation} run @param {State} state @returns {List | null} */
function readList(id, { scores }, state) {
  const { list, comparison, metric, sort = "" } = state;
  const by = sort.replace(/^-/, "");
  if (list === "captions") {
    const order = by && `${orderName(sort, scores[by]?.higher_is_better)} by ${titleOf(by)}`;
    const listed = Object.fromEntries(STATE.map((name) => [name, state[name]]));
    return {
      url: captionsUrl(id, listed),
      order: order || UNSORTED,
      back: ["all captions", captionsPlace(id, listed)],
      ahead: 200,
    };
  }
  if (list !== "comparison" || !comparison) return null;
  return {
    url: place("/v1/comparisons", comparison, "images", { metric, sort }),
    order: comparedOrder(by, sort, scores[metric]?.higher_is_better),
    back: ["the comparison", comparePlace(id, (state.with ?? "").split(",")[0])],
    ahead: 1000,
  };
}

const UNSORTED = "in the dataset's order";

/** @param {string} by @param {string} sort @param {boolean | null | undefined} higher */
function comparedOrder(by, sort, higher) {
  if (!by) return UNSORTED;
  if (by !== "difference") return `${by.toUpperCase()}'s ${orderName(sort, higher)}`;
  return `where ${sort.startsWith("-") === (higher ?? true) ? "A" : "B"} is better first`;
}

/**
 * Links and keys to the images before and after.
 *
 * @param {string} id @param {string} image @param {Evaluation} run
 * @param {Schemas["References"]} references Of the image, with those beside it in the dataset.
 */
export function neighbours(id, image, run, references) {
  const list = readList(id, run, Object.fromEntries(new URLSearchParams(search.value)));
  const at = Math.max(1, Math.min(MOST, Number(query("at").value) || 1));
  const around = list ? aroundIn(list, image, at) : { value: null };
  const shown = computed(() => around.value ?? { ...references, at: 0, text: UNSORTED });
  const to = (/** @type {string | null} */ name, /** @type {number} */ step) => {
    if (name === null) return null;
    const state = new URLSearchParams(search.value);
    if (shown.value.at) state.set("at", String(shown.value.at + step));
    return imagePlace(id, name, Object.fromEntries(state));
  };
  const before = computed(() => to(shown.value.before, -1));
  const after = computed(() => to(shown.value.after, 1));
  onSteps("images", (step) => () => {
    const url = (step > 0 ? after : before).value;
    if (url) go(url);
  });
  const [label, back] = list?.back ?? ["all captions", captionsPlace(id)];
  return h(
    "nav.bar",
    { "aria-label": "Images beside this one" },
    arrow(before, "←", "The image before"),
    arrow(after, "→", "The next image"),
    h("span.quiet.grow", { role: "status" }, () => shown.value.text),
    h("a", { href: back }, label),
    copyLink(),
  );
}

/** @param {{ value: string | null }} url @param {string} sign @param {string} name */
function arrow(url, sign, name) {
  return h(
    "a.chip",
    {
      href: () => url.value,
      role: () => !url.value && "link",
      "aria-disabled": () => !url.value && "true",
      "aria-label": name,
    },
    sign,
  );
}

/** Null if the list cannot be read, or does not have the image. @param {List} list @param {string} image @param {number} at @returns {{ value: Around | null }} */
function aroundIn({ url, order, ahead }, image, at) {
  const isKnown = last.url === url && (last.names.length > at || last.names.length === last.total);
  const limit = Math.min(MOST, at + ahead);
  const found = resource(() => (isKnown ? null : `${url}${url.includes("?") ? "&" : "?"}limit=${limit}`));
  effect(() => {
    const page = found.answer.value;
    if (!page) return;
    const names = page.items.map((/** @type {{ image: string }} */ item) => item.image);
    last = { url, names, total: page.matching ?? (page.next ? null : names.length) };
  });
  return computed(() => {
    if (!isKnown && !found.answer.value)
      return found.refused.value ? null : { before: null, after: null, at: 0, text: "" };
    const { names, total } = last;
    const here = names.indexOf(image);
    const of = total === null ? "" : ` of ${count(total)}`;
    if (here < 0) return null;
    return {
      before: names[here - 1] ?? null,
      after: names[here + 1] ?? null,
      at: here + 1,
      text: `${count(here + 1)}${of}, ${order}`,
    };
  });
}
