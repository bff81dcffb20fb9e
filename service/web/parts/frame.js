/** The frame that surrounds every view: the way to the others, the finder, whether the service is there, keys, theme. */

import { ask, isKeyNeeded, isReached } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey, shortcuts } from "../core/keyboard.js";
import { isLive } from "../core/live.js";
import { effect, signal } from "../core/signals.js";
import { path } from "../core/urls.js";

/** @typedef {string[]} Crumb A name, and its address unless it is the view itself. */

const PLACES = [
  ["/", "Home"],
  ["/ui/now", "Jobs"],
  ["/docs", "API"],
];
const OUTCOME_SHOWN = 10_000; // milliseconds
const THEMES = /** @type {Record<string, string>} */ ({ auto: "◐", light: "☀\ufe0e", dark: "☾" }); // their signs

/** The way to the view that is shown. */
export const crumbs = signal(/** @type {Crumb[]} */ ([]));

const outcome = signal("");
let outcomeEnd = 0;

/** Tells for some seconds that an action has succeeded, on whichever view one is. @param {string} text */
export function announce(text) {
  clearTimeout(outcomeEnd);
  outcome.value = text;
  outcomeEnd = setTimeout(() => (outcome.value = ""), OUTCOME_SHOWN);
}

/** @param {HTMLElement} main */
export function frame(main) {
  const help = keyList();
  onKey("?", "shortcuts", () => help.showModal());
  return [
    h("a.skip", { href: "#content" }, "Skip to the content"),
    h(
      "header.frame",
      h("a.brand", { href: "/" }, "Prescore"),
      h("nav", { "aria-label": "Places" }, PLACES.map(placeLink)),
      h("nav.crumbs", { "aria-label": "Way to this view" }, () => crumbs.value.map(crumb)),
      h(
        "button.find",
        { type: "button", "aria-keyshortcuts": "Control+K", onclick: find },
        h("span", "Find", h("span.wide", " a run, an image, a metric")),
        h("kbd", "Ctrl K"),
      ),
      team(),
      h(
        "span.live",
        { "data-live": () => String(isLive.value), title: "Whether changes are shown as they happen" },
        h("span", () => (isLive.value ? "live" : "not live")),
      ),
      theme(),
      h("button.wide", { type: "button", "aria-label": "Shortcuts", onclick: () => help.showModal() }, "?"),
    ),
    h("nav.back", { "aria-label": "Back" }, back),
    h("div.notices", { role: "status" }, notices),
    main,
    h("p.outcome", { role: "status" }, () => outcome.value),
    help,
  ];
}

const isFinderLost = signal(false);

/** Finds runs, images, metrics and splits. */
export function find() {
  import("../views/finder.js").then(
    ({ openFinder }) => openFinder(),
    () => (isFinderLost.value = true),
  );
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  find();
});

/** @param {string[]} place */
const placeLink = ([url, name]) =>
  h("a", { href: url, "aria-current": () => (path.value === url ? "page" : null) }, name);

/** @param {Crumb} crumb */
const crumb = ([name, url]) => (url ? h("a", { href: url }, name) : h("span", name));

/** On a phone, instead of the whole way: the view above. */
function back() {
  const [name, url] = crumbs.value.findLast(([, url]) => url) ?? [];
  return url && h("a", { href: url }, `‹ ${name}`);
}

/** The team whose key is used, and a way out. */
function team() {
  const name = signal("");
  ask("/v1/me").then(
    (me) => me.key && (name.value = me.team),
    () => {},
  );
  const leave = async () => (await import("./sign_in.js")).signOut();
  const out = () => h("button", { type: "button", onclick: leave }, "Sign out");
  return () => name.value && h("span.quiet", `team ${name.value} `, out());
}

/** The form that asks for a key, which is loaded once one is needed. */
const signIn = signal(/** @type {(() => Node) | null} */ (null));
effect(() => {
  if (isKeyNeeded.value) import("./sign_in.js").then((found) => (signIn.value = found.signIn));
});

function notices() {
  if (!isReached.value)
    return h("p.notice.bad", "The service does not answer. The page asks it again by itself.");
  if (isKeyNeeded.value) return signIn.value?.();
  if (isFinderLost.value) return h("p.notice.bad", "The finder could not be loaded. Load the page anew.");
  return null;
}

function theme() {
  const stored = localStorage.getItem("theme") ?? "";
  const chosen = signal(Object.hasOwn(THEMES, stored) ? stored : "auto");
  const names = Object.keys(THEMES);
  effect(() => {
    document.documentElement.dataset.theme = chosen.value;
    localStorage.setItem("theme", chosen.value);
  });
  const choose = () => (chosen.value = names[(names.indexOf(chosen.value) + 1) % names.length]);
  return h(
    "button.theme",
    {
      type: "button",
      title: "Change the theme",
      "aria-label": () => `Theme: ${chosen.value}`,
      onclick: choose,
    },
    () => THEMES[chosen.value],
    h("span.wide", () => ` ${chosen.value}`),
  );
}

function keyList() {
  return h(
    "dialog",
    { "aria-label": "Shortcuts" },
    h("h2", "Shortcuts"),
    h("dl.keys", () =>
      [...shortcuts.value, { key: "Ctrl K", text: "find a run, an image, a metric, a split" }].map(
        ({ key, text }) => [h("dt", h("kbd", key)), h("dd", text)],
      ),
    ),
    h("form", { method: "dialog" }, h("button", "Close")),
  );
}
