/**
 * Where one was on a view, for when one comes back to it: how far it was scrolled, and which link had
 * the focus. It is kept with the entry of the browser's history, and found again once the view has its
 * content.
 */

const LONGEST = 3_000; // milliseconds that a view may take to have its content
const LIST = ".windowed";

/** @typedef {{ page: number, list: number, focus: string | null }} Kept */

history.scrollRestoration = "manual";

/** Note where one is, before one leaves. */
export function keep() {
  const focus = document.activeElement?.closest("main a")?.getAttribute("href") ?? null;
  /** @type {Kept} */
  const kept = { page: scrollY, list: document.querySelector(LIST)?.scrollTop ?? 0, focus };
  history.replaceState(kept, "");
}

/** Go where one was, as soon as that is there; not if one does something else meanwhile. */
export function restore() {
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
function isAt({ page, list, focus }) {
  const frame = document.querySelector(LIST);
  if (frame && list) frame.scrollTop = list;
  scrollTo(0, page);
  const link = focus && document.querySelector(`main a[href="${CSS.escape(focus)}"]`);
  if (link) /** @type {HTMLElement} */ (link).focus({ preventScroll: true });
  const isScrolled =
    Math.abs(scrollY - page) < 2 && (!list || (frame !== null && Math.abs(frame.scrollTop - list) < 2));
  return isScrolled && (!focus || link !== null);
}
