/** Where the page is: its path and query are its state, so that every view can be sent to others. */

import { computed, signal, unread } from "./signals.js";

const here = signal(new URL(location.href), (a, b) => a.href === b.href);

addEventListener("popstate", () => {
  here.value = new URL(location.href);
  restore();
});

export const path = computed(() => here.value.pathname);
/** The whole query, with its question mark. */
export const search = computed(() => here.value.search);

/** @param {string} url A place of this page. @param {{ instead?: boolean }} [how] */
export function go(url, { instead = false } = {}) {
  const next = new URL(url, location.href);
  if (next.href === location.href) return;
  if (!instead) keep();
  history[instead ? "replaceState" : "pushState"](instead ? history.state : null, "", next);
  here.value = next;
}

/** Links of this page are followed without loading it anew; others, and those for a new tab, not. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const link = /** @type {HTMLAnchorElement | null} */ (target.closest("a[href]"));
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !isPage(link.pathname)) return;
    event.preventDefault();
    if (link.pathname === location.pathname && link.hash) {
      document.getElementById(decodeURIComponent(link.hash.slice(1)))?.focus();
      return;
    }
    go(link.href);
    scrollTo(0, 0);
  });
}

/** @param {string} pathname */
const isPage = (pathname) => pathname === "/" || pathname.startsWith("/ui/");

/**
 * A value of the query, as text; `otherwise` where there is none. To set it changes the address.
 *
 * @param {string} name
 * @param {string} [otherwise]
 */
export function query(name, otherwise = "") {
  const found = computed(() => here.value.searchParams.get(name) ?? otherwise);
  return {
    get value() {
      return found.value;
    },
    set value(text) {
      change({ [name]: text === otherwise ? null : text });
    },
  };
}

/** All values of the query whose names begin so, by their whole names. @param {string} prefix */
export const queries = (prefix) =>
  computed(() =>
    Object.fromEntries([...here.value.searchParams].filter(([name]) => name.startsWith(prefix))),
  );

/** @param {Record<string, string | null>} values Null: without it. */
export function change(values) {
  go(changed(values), { instead: true });
}

/** @param {Record<string, string | null>} values */
export function changed(values) {
  const url = new URL(unread(() => here.value));
  for (const [name, text] of Object.entries(values)) {
    if (text === null || text === "") url.searchParams.delete(name);
    else url.searchParams.set(name, text);
  }
  return url.href;
}

/**
 * An address of parts: `place("/ui/datasets", name, split)`, and of a query.
 *
 * @param {string} root
 * @param {...(string | Record<string, string | number | null | undefined>)} parts
 */
export function place(root, ...parts) {
  const names = parts.filter((part) => typeof part === "string").map(encodeURIComponent);
  const values = parts.flatMap((part) => (typeof part === "string" ? [] : Object.entries(part)));
  const given = values.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return [root, ...names].join("/") + (text && `?${text}`);
}

// Where one was on a view, for when one comes back to it: how far it was scrolled, and which link had the focus.
// It is kept with the entry of the browser's history, and found again once the view has its content.

const LONGEST = 3_000; // milliseconds that a view may take to have its content

/** @typedef {{ page: number, focus: string | null }} Kept */

history.scrollRestoration = "manual";

/** Note where one is, before one leaves. */
function keep() {
  const focus = document.activeElement?.closest("main a")?.getAttribute("href") ?? null;
  /** @type {Kept} */
  const kept = { page: scrollY, focus };
  history.replaceState(kept, "");
}

/** Go where one was, as soon as that is there; not if one does something else meanwhile. */
function restore() {
  const kept = /** @type {Kept | null} */ (history.state);
  if (!kept) return;
  const until = performance.now() + LONGEST;
  const isOver = new AbortController();
  for (const name of ["wheel", "keydown", "pointerdown", "popstate"]) {
    addEventListener(name, () => isOver.abort(), { signal: isOver.signal, capture: true });
  }
  const look = () => {
    if (isOver.signal.aborted || performance.now() > until) return isOver.abort();
    if (!isAt(kept)) return requestAnimationFrame(look);
    isOver.abort();
  };
  requestAnimationFrame(look);
}

/** @param {Kept} kept Whether all is as it was; what is not yet is tried. */
function isAt({ page, focus }) {
  scrollTo(0, page);
  const link = focus && document.querySelector(`main a[href="${CSS.escape(focus)}"]`);
  if (link) /** @type {HTMLElement} */ (link).focus({ preventScroll: true });
  return Math.abs(scrollY - page) < 2 && (!focus || link !== null);
}
