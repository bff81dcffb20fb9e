/** What surrounds every view: the way to the others, whether the service is there, keys, theme. */

import { ask, isKeyNeeded, isReached } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey, shortcuts } from "../core/keyboard.js";
import { isLive } from "../core/live.js";
import { effect, signal } from "../core/signals.js";
import { path } from "../core/urls.js";
import { signIn, signOut } from "./sign_in.js";

const PLACES = [
  ["/", "Home"],
  ["/ui/now", "Now"],
  ["/docs", "API"],
];
const THEMES = ["auto", "light", "dark"];

/** @param {HTMLElement} main */
export function frame(main) {
  const help = keyList();
  onKey("?", "what keys do", () => help.showModal());
  return [
    h("a", { class: "skip", href: "#content" }, "Skip to the content"),
    h(
      "header",
      { class: "frame" },
      h("a", { class: "brand", href: "/" }, "Prescore"),
      h(
        "nav",
        { "aria-label": "Places" },
        PLACES.map(([url, name]) => link(url, name)),
      ),
      who(),
      state(),
      theme(),
      h("button", { type: "button", onclick: () => help.showModal(), "aria-label": "What keys do" }, "?"),
    ),
    h("div", { role: "status", class: "notices" }, notices),
    main,
    help,
  ];
}

/** @param {string} url @param {string} name */
function link(url, name) {
  return h("a", { href: url, "aria-current": () => (path.value === url ? "page" : null) }, name);
}

/** The team whose key is used, and a way out. */
function who() {
  const team = signal("");
  ask("/v1/me").then(
    (me) => {
      if (me.key) team.value = me.team;
    },
    () => {},
  );
  return () =>
    team.value &&
    h(
      "span",
      { class: "quiet" },
      `team ${team.value} `,
      h("button", { type: "button", onclick: signOut }, "Sign out"),
    );
}

function state() {
  return h("span", { class: "live", "data-live": () => String(isLive.value) }, () =>
    isLive.value ? "live" : "not live",
  );
}

function notices() {
  if (!isReached.value)
    return h("p", { class: "notice bad" }, "The service does not answer; it is asked again by and by.");
  if (isKeyNeeded.value) return signIn();
  return null;
}

function theme() {
  const chosen = signal(stored() ?? "auto");
  effect(() => {
    document.documentElement.dataset.theme = chosen.value;
    localStorage.setItem("theme", chosen.value);
  });
  return h(
    "label",
    { class: "theme" },
    h("span", {}, "Colours "),
    h(
      "select",
      {
        onchange: (/** @type {Event} */ event) => {
          chosen.value = /** @type {HTMLSelectElement} */ (event.target).value;
        },
      },
      THEMES.map((name) => h("option", { value: name, selected: name === chosen.peek() }, name)),
    ),
  );
}

function stored() {
  const found = localStorage.getItem("theme");
  return found && THEMES.includes(found) ? found : null;
}

function keyList() {
  const made = h(
    "dialog",
    { "aria-label": "What keys do" },
    h("h2", {}, "What keys do"),
    h("dl", { class: "keys" }, () =>
      shortcuts.value.map(({ key, text }) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  return made;
}
