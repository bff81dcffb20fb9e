/** The finder: runs, images, metrics, splits and the page's own views by a part of their names. */

import { ask, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { go, place } from "../core/urls.js";
import { openDialog } from "../parts/dialogs.js";
import { crumbs } from "../parts/frame.js";
import { evaluationPlace, imagePlace, runPlace, splitPlace } from "../parts/places.js";
import { titleOf } from "../parts/metrics.js";
import { nameOrId } from "../parts/names.js";
import { refusalOf } from "../parts/states.js";

/** @typedef {Schemas["NameMatch"]} Item */
/** @typedef {{ name: string, detail: string, url: string | (() => Promise<string>) }} Hit */

const CALM = 120; // milliseconds without a key after which it is asked
const MOST = 30;

const VIEWS = [
  { name: "Home", detail: "what needs attention", url: "/" },
  { name: "Jobs", detail: "what runs and is queued; workers, limits, keys", url: "/ui/now" },
  { name: "API", detail: "the interface's description", url: "/docs" },
];
/** @type {[Item["kind"], string][]} */
const KINDS = [
  ["evaluation", "Evaluations"],
  ["training", "Training runs"],
  ["split", "Splits"],
  ["image", "Images"],
  ["metric", "Metrics"],
];

/** @type {HTMLDialogElement | null} */
let opened = null;

/** Opens the dialog; Escape closes it, and the focus is where it was. */
export function openFinder() {
  if (opened) return;
  openDialog(() => {
    opened = finder();
    opened.addEventListener("close", () => (opened = null));
    return opened;
  });
}

function finder() {
  const text = signal("");
  const asked = signal("");
  const active = signal(0);
  const isChosen = signal(false); // by Enter, before the answer has come
  const found = resource(() => asked.value && place("/v1/search", { q: asked.value, limit: MOST }));
  const groups = computed(() => groupsOf(text.value, asked.value ? (found.answer.value?.items ?? []) : []));
  const hits = computed(() => groups.value.flatMap((group) => group.hits));
  const isDone = computed(() => asked.value === text.value && !found.isAsking.value);
  let timer = 0;
  onEnd(() => clearTimeout(timer));
  const typed = (/** @type {any} */ { target }) => {
    text.value = target.value.trim();
    isChosen.value = false;
    active.value = 0;
    clearTimeout(timer);
    timer = setTimeout(() => (asked.value = text.peek()), CALM);
  };
  const open = async (/** @type {Hit | undefined} */ hit) => {
    if (!hit) return;
    dialog.close();
    const url = typeof hit.url === "string" ? hit.url : await hit.url();
    if (url === "/" || url.startsWith("/ui/")) go(url);
    else location.assign(url);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const many = hits.peek().length;
    if (step && many) active.value = (active.peek() + step + many) % many;
    if (event.key === "Enter") isChosen.value = true;
    if (step || event.key === "Enter") event.preventDefault();
  };
  effect(() => {
    hits.value;
    active.value = 0;
  });
  const group = (/** @type {{ title: string, hits: Hit[] }} */ { title, hits: found }) =>
    h(
      "div",
      { role: "group", "aria-label": title },
      h("p.sub", { "aria-hidden": "true" }, title),
      found.map((hit) => option(hit, hits.peek().indexOf(hit), active, open)),
    );
  const field = h("input", {
    type: "search",
    role: "combobox",
    "aria-label": "Find a run, an image, a metric, a split",
    "aria-controls": "finder-list",
    "aria-expanded": () => String(hits.value.length > 0),
    "aria-activedescendant": () => (hits.value.length ? `found-${active.value}` : null),
    "aria-autocomplete": "list",
    autocomplete: "off",
    autofocus: true,
    spellcheck: "false",
    maxlength: 100,
    placeholder: "A part of a name",
    oninput: typed,
    onkeydown: press,
  });
  const dialog = h(
    "dialog.finder",
    { "aria-label": "Find" },
    field,
    () => refusalOf(found),
    h("div", { role: "listbox", id: "finder-list", "aria-label": "Found" }, () => groups.value.map(group)),
    h("p.quiet", { role: "status" }, () => told(text.value, hits.value.length, isDone.value)),
  );
  effect(() => {
    document.getElementById(`found-${active.value}`)?.scrollIntoView({ block: "nearest" });
  });
  effect(() => {
    if (isChosen.value && isDone.value) open(hits.peek()[active.peek()]);
  });
  return dialog;
}

/** @param {string} text @param {number} many @param {boolean} isDone */
function told(text, many, isDone) {
  if (!text) return "Type a part of the name of a run, an image, a metric or a split.";
  if (!isDone) return "Searching…";
  if (!many) return `Nothing has “${text}” in its name.`;
  return `${many} found; Enter opens, arrow keys go through them.`;
}

/** @param {Hit} hit @param {number} at @param {{ value: number }} active @param {(hit: Hit) => void} open */
const option = (hit, at, active, open) =>
  h(
    "div",
    {
      role: "option",
      id: `found-${at}`,
      "aria-selected": () => String(active.value === at),
      onmousemove: () => (active.value = at),
      onclick: () => open(hit),
    },
    h("bdi", hit.name),
    hit.detail && h("span.sub", hit.detail),
  );

/** @param {string} text @param {Item[]} items @returns {{ title: string, hits: Hit[] }[]} */
function groupsOf(text, items) {
  const views = VIEWS.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  const groups = KINDS.map(([kind, title]) => ({
    title,
    hits: items.filter((item) => item.kind === kind).map(hitOf),
  }));
  return [...groups, { title: "Views", hits: views }].filter(({ hits }) => hits.length);
}

/** @param {Item} item @returns {Hit} */
function hitOf({ kind, name, detail, dataset, evaluation, image, run, labels }) {
  const [of, split] = (dataset ?? "").split("/");
  if (kind === "training")
    return { name, detail: `${detail} on ${dataset}`, url: runPlace(of, split, run ?? "") };
  if (kind === "metric") return { name: titleOf(name), detail, url: () => boardOf(name) };
  if (kind === "evaluation") {
    const called = nameOrId(labels, name);
    const isTold = !detail || called.includes(detail.replace(/^[^=]*=/, ""));
    return { name: called, detail: `${dataset}${isTold ? "" : `, ${detail}`}`, url: evaluationPlace(name) };
  }
  return { name, detail, url: evaluation ? imagePlace(evaluation, image ?? "") : splitPlace(of, split) };
}

/** A leaderboard by this metric: of the split that one is at, or else of the first one. @param {string} metric */
async function boardOf(metric) {
  const [, url] = crumbs.peek()[0] ?? [];
  if (url?.startsWith("/ui/datasets/")) return url + place("", { metric });
  const { items } = await ask(place("/v1/datasets", { limit: 1 })).catch(() => ({ items: [] }));
  const [first] = items;
  return first ? splitPlace(first.name, Object.keys(first.splits)[0]) + place("", { metric }) : "/";
}
