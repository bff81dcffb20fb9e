/** The head that all views have, and the parts that they are laid out with. */

import { h, replace } from "../core/dom.js";
import { path } from "../core/urls.js";
import { allNeeded } from "./states.js";

/** Its intervals are not broken over lines. @param {string} text */
const unbroken = (text) =>
  text.split(/(\[[^\]\s]+, [^\]\s]+\])/).map((part, at) => (at % 2 ? h("span.whole", part) : part));

/**
 * The name of what is shown, one sentence on it, and the way to the views beside it.
 *
 * @param {{ name: Child, sentence?: () => import("./sentences.js").Sentence | null, tabs?: Child }} of
 */
export const viewHead = ({ name, sentence, tabs }) => [
  h("h1", name),
  sentence &&
    h("p.lead", () => {
      const found = sentence();
      return found && [h("strong", unbroken(found.claim)), " ", h("span.quiet", unbroken(found.detail))];
    }),
  tabs,
];

/**
 * A view whose content is drawn once all that it needs is answered.
 *
 * @param {{ title: string, name?: Child, crumbs?: () => Crumb[], sentence?: () => import("./sentences.js").Sentence | null, tabs?: Child, kind?: string, needs: Resource[] }} of
 * @param {() => Child} render
 */
export const view = ({ title, name = title, crumbs, sentence, tabs, kind, needs }, render) => ({
  title,
  crumbs,
  content: h("div", { class: kind }, viewHead({ name, sentence, tabs }), allNeeded(needs, render)),
});

/** @param {string} name For those who hear the page. @param {[string, string][]} places Texts and addresses. @param {string} [within] The one of which a part is shown. */
export const tabs = (name, places, within) =>
  h(
    "nav.tabs",
    { "aria-label": name },
    places.map(([text, url]) => {
      const isHere = () => path.value === url.split("?")[0];
      return h(
        "a",
        { href: url, "aria-current": () => (isHere() ? "page" : url === within && "true") },
        text,
      );
    }),
  );

/** @param {string} title @param {...Child} content */
export const section = (title, ...content) =>
  h("section", { "aria-label": title }, h("h2", title), ...content);

/** One of a few facts, in a list of the class `facts`. @param {Child} name @param {...Child} content */
export const fact = (name, ...content) => h("div", h("dt", name), h("dd", ...content));

/** What is read when it is opened. @param {Child} summary @param {...Child} content */
export const folded = (summary, ...content) => h("details", h("summary", summary), ...content);

/** A word with a popover. @param {string} name @param {string} title @param {(popover: HTMLElement) => void} fill Called when it is opened first. */
export function explained(name, title, fill) {
  const popover = h("div", { popover: "auto", role: "dialog", "aria-label": name });
  popover.addEventListener("beforetoggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== "open") return;
    putNear(popover, button);
    if (!popover.hasChildNodes()) fill(popover);
  });
  const button = h("button.metric", { type: "button", title, ".popoverTargetElement": popover }, name);
  return [button, popover];
}

/** A word that a popover explains. @param {string} name @param {string} text */
export const term = (name, text) =>
  explained(name, "What it means", (popover) => replace(popover, h("p", h("strong", name)), h("p", text)));

/** @param {HTMLElement} popover @param {HTMLElement} button */
function putNear(popover, button) {
  const { left, bottom } = button.getBoundingClientRect();
  const width = Math.min(416, 0.92 * innerWidth);
  popover.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  popover.style.top = `${Math.min(bottom + 6, innerHeight - 160)}px`;
}

/** One of several values. @param {() => string[][]} options Values and their texts. @param {{ value: string }} chosen */
export function select(options, chosen) {
  const choose = (/** @type {any} */ { target }) => {
    chosen.value = target.value;
  };
  return h("select", { onchange: choose }, () =>
    options().map(([value, text]) => h("option", { value, selected: value === chosen.value }, text)),
  );
}
