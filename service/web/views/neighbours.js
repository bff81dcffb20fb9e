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
import { titleOf } from "../parts/metrics.js";
import { count } from "../parts/numbers.js";
import { captionsPlace, comparePlace, imagePlace } from "../parts/places.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["References"]} References */
/** @typedef {{ before: string | null, after: string | null, at: number, text: string }} Around */
/** @typedef {{ url: string, order: string, back: [string, string], ahead: number }} List `ahead`: images that are asked for beyond the place. */
/** @typedef {Record<string, string | null>} State */

const MOST = 10_000; // images of a list that are looked at
const STATE = ["sort", "search", "from", "to", "invented", "missed"];

const WAITING = { before: null, after: null, at: 0, text: "" };

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

/** The list that one came from. @param {string} id @param {Evaluation} run @returns {List | null} */
function readList(id, run) {
  const read = (/** @type {string} */ name) => query(name).value;
  const sort = read("sort");
  const higher = (/** @type {string} */ metric) => run.scores[metric]?.higher_is_better;
  if (read("list") === "captions") {
    const state = Object.fromEntries(STATE.map((name) => [name, read(name)]));
    const metric = sort.replace(/^-/, "");
    const order = sort
      ? `${orderName(sort, higher(metric))} by ${titleOf(metric)}`
      : "in the dataset's order";
    return {
      url: captionsUrl(id, state),
      order,
      back: ["all captions", captionsPlace(id, state)],
      ahead: 200,
    };
  }
  const [comparison, metric] = [read("comparison"), read("metric")];
  if (read("list") !== "comparison" || !comparison) return null;
  return {
    url: place("/v1/comparisons", comparison, "images", { metric, sort }),
    order: comparedOrder(sort, higher(metric)),
    back: ["the comparison", comparePlace(id, read("with").split(",")[0])],
    ahead: 1000,
  };
}

/** @param {string} sort @param {boolean | null | undefined} higher */
function comparedOrder(sort, higher) {
  const by = sort.replace(/^-/, "");
  if (!by) return "in the dataset's order";
  if (by !== "difference") return `${by.toUpperCase()}'s ${orderName(sort, higher)}`;
  return `where ${sort.startsWith("-") === (higher ?? true) ? "A" : "B"} is better first`;
}

/**
 * Links and keys to the images before and after.
 *
 * @param {string} id @param {string} image @param {Evaluation} run
 * @param {References} references Of the image, with those beside it in the dataset.
 */
export function neighbours(id, image, run, references) {
  const list = readList(id, run);
  const at = Math.max(1, Math.min(MOST, Number(query("at").value) || 1));
  const inOrder = { ...references, at: 0, text: "in the dataset's order" };
  const around = list ? aroundIn(list, image, at) : { value: null };
  const shown = computed(() => around.value ?? inOrder);
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
    "nav",
    { class: "bar", "aria-label": "Images beside this one" },
    arrow(before, "←", "The image before"),
    arrow(after, "→", "The next image"),
    h("span", { class: "quiet grow", role: "status" }, () => shown.value.text),
    h("a", { href: back }, label),
  );
}

/** @param {{ value: string | null }} url @param {string} sign @param {string} name */
function arrow(url, sign, name) {
  const isOff = () => !url.value;
  return h(
    "a",
    {
      class: "chip",
      href: () => url.value,
      role: () => isOff() && "link",
      "aria-disabled": () => isOff() && "true",
      "aria-label": name,
    },
    sign,
  );
}

/** Null if the list cannot be read, or does not have the image. @param {List} list @param {string} image @param {number} at @returns {{ value: Around | null }} */
function aroundIn(list, image, at) {
  const isKnown = last.url === list.url && (last.names.length > at || last.names.length === last.total);
  const limit = String(Math.min(MOST, at + list.ahead));
  const found = resource(() =>
    isKnown ? null : list.url + (list.url.includes("?") ? "&" : "?") + new URLSearchParams({ limit }),
  );
  effect(() => {
    const page = found.answer.value;
    if (!page) return;
    const names = page.items.map((/** @type {{ image: string }} */ item) => item.image);
    last = { url: list.url, names, total: page.matching ?? (page.next ? null : names.length) };
  });
  return computed(() => {
    if (!isKnown && !found.answer.value) return found.refused.value ? null : WAITING;
    const { names, total } = last;
    const here = names.indexOf(image);
    if (here < 0) return null;
    const of = total === null ? "" : ` of ${count(total)}`;
    return {
      before: names[here - 1] ?? null,
      after: names[here + 1] ?? null,
      at: here + 1,
      text: `${count(here + 1)}${of}, ${list.order}`,
    };
  });
}
