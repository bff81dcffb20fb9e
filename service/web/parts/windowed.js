/**
 * A table of which only the rows that are seen exist, however many there are. All rows are equally
 * high. `j` and `k` go through them; the next page is asked for before its end is seen.
 */

import { each, h } from "../core/dom.js";
import { onKey, onSteps } from "../core/keyboard.js";
import { computed, effect, signal } from "../core/signals.js";

const ROW = 36; // pixels, as the style sheet has it
const AROUND = 8; // rows above and below those that are seen
const AHEAD = 60; // rows before the end at which more are asked for

/**
 * @template T
 * @param {{ value: T[], peek(): T[] }} items
 * @param {{ columns: () => (string | Node)[], keyOf: (item: T) => string, cells: (item: () => T) => import("../core/dom.js").Child, name: string, what: string, more?: () => void, hasMore?: () => boolean, keys?: Record<string, [string, (item: T) => void]> }} how
 *   `cells`: the cells of a row, of which one holds `a.main`. `what`: what the rows are, in the plural. `keys`: what other keys do with the row that has the focus.
 */
export function windowed(
  items,
  { columns, keyOf, cells, name, what, more = () => {}, hasMore = () => false, keys = {} },
) {
  const top = signal(0);
  const height = signal(600);
  const first = computed(() => Math.max(0, Math.floor(top.value / ROW) - AROUND));
  const last = computed(() =>
    Math.min(items.value.length, Math.ceil((top.value + height.value) / ROW) + AROUND),
  );
  const shown = computed(() =>
    items.value.slice(first.value, last.value).map((item, at) => ({ item, place: first.value + at })),
  );
  const rows = h(
    "tbody",
    space(() => first.value * ROW),
    each(
      () => shown.value,
      ({ item }) => keyOf(item),
      (row) =>
        h(
          "tr",
          { "aria-rowindex": () => row().place + 2, "data-place": () => row().place },
          cells(() => row().item),
        ),
    ),
    space(() => (items.value.length - last.value) * ROW),
  );
  const table = h(
    "table",
    { "aria-rowcount": () => (hasMore() ? -1 : items.value.length + 1) },
    h(
      "thead",
      h("tr", { "aria-rowindex": 1 }, () => columns().map((column) => h("th", { scope: "col" }, column))),
    ),
    rows,
  );
  const frame = h("div", { class: "windowed", tabindex: "0", role: "region", "aria-label": name }, table);
  frame.addEventListener(
    "scroll",
    () => {
      top.value = frame.scrollTop;
    },
    { passive: true },
  );
  const watcher = new ResizeObserver(() => {
    height.value = frame.clientHeight;
  });
  watcher.observe(frame);
  effect(() => {
    if (top.value <= items.value.length * ROW) return;
    frame.scrollTop = 0; // another, shorter list
    top.value = 0;
  });
  effect(() => {
    if (last.value > items.value.length - AHEAD && items.value.length && hasMore()) more();
  });

  const placeOf = () => Number(document.activeElement?.closest("tr")?.getAttribute("data-place") ?? -1);
  const move = (/** @type {number} */ step) => () => {
    const now = rows.contains(document.activeElement) ? placeOf() : -1;
    const next = Math.max(0, Math.min(items.peek().length - 1, now < 0 ? 0 : now + step));
    const [above, below] = [next * ROW, (next + 2) * ROW - frame.clientHeight];
    if (frame.scrollTop > above) frame.scrollTop = above;
    if (frame.scrollTop < below) frame.scrollTop = below;
    top.value = frame.scrollTop;
    /** @type {HTMLElement | null} */ (rows.querySelector(`tr[data-place="${next}"] a.main`))?.focus();
  };
  onSteps(what, move);
  for (const [key, [text, action]] of Object.entries(keys)) {
    onKey(key, text, () => {
      const item = items.peek()[placeOf()];
      if (item) action(item);
    });
  }
  return frame;
}

/** @param {() => number} height */
const space = (height) =>
  h("tr", { "aria-hidden": "true", class: "space" }, h("td", { style: () => ({ height: `${height()}px` }) }));
