/**
 * Tables, told by their columns. With `window` only the rows that are seen exist, however many there are: the
 * page scrolls, all rows are equally high, `j` and `k` go through them, and the next page of rows is asked for
 * before the end is seen.
 */

import { each, h } from "../core/dom.js";
import { onKey, onSteps } from "../core/keyboard.js";
import { computed, effect, onEnd, signal, unread } from "../core/signals.js";

/**
 * @template T
 * @typedef {object} Column
 * @property {Child} head
 * @property {(row: T, place: number) => Child} cell `place`: from 0.
 * @property {string} [kind] Classes: `name` (the head of the row, with a link `a.main`), `number`, `narrow`, `wide`.
 * @property {boolean} [once] Made once for each row, so that what has the focus in it keeps it.
 * @property {"mark" | "value" | "below"} [phone] Where a phone shows it: before the name, beside it, or below it. Others are left out there.
 * @property {(row: T) => string | null} [tone] More classes of the cell.
 * @property {(row: T) => number | null} [shade] From 0 to 1.
 * @property {Sort | Sort[]} [sort] Without a `text` the head itself is the button; else it stands beside it.
 */
/** @typedef {{ direction: () => "ascending" | "descending" | "none", choose: () => void, text?: Child, told?: string }} Sort `told`: the button's name for those who hear the page. */
/**
 * @template T
 * @typedef {object} Window
 * @property {string} what What the rows are, in the plural.
 * @property {() => void} [more]
 * @property {() => boolean} [hasMore]
 * @property {Record<string, [string, (row: T) => void]>} [keys] What other keys do with the row that has the focus.
 * @property {{ wide: number, narrow: number }} [rowHeight] Pixels; narrow: on a phone.
 */

const ROW = { wide: 52, narrow: 76 };
const AROUND = 8; // rows above and below those that are seen
const AHEAD = 60; // rows before the end at which more are asked for
const COVERED = 90; // pixels of the screen that the frame and the head of the table cover

const phone = matchMedia("(max-width: 640px)");
export const isPhone = signal(phone.matches);
phone.addEventListener("change", () => (isPhone.value = phone.matches));

/**
 * @template T
 * @param {readonly T[] | { value: readonly T[] }} items A signal's rows are followed.
 * @param {{ name: string, columns: Column<T>[] | (() => Column<T>[]), keyOf?: (row: T) => string | number, tone?: (row: T) => string | null, window?: Window<T>, above?: () => T[] }} how `above`: rows that are none of the items, and are not counted.
 */
export function table(items, { name, columns, keyOf, tone, window: windowOf, above }) {
  const rows = () => ("value" in items ? items.value : items);
  const listed = computed(() => (typeof columns === "function" ? columns() : columns));
  const keys = new Map();
  const key = keyOf ?? ((/** @type {T} */ row) => keys.get(row) ?? keys.set(row, keys.size).get(row));
  const frame = h("div", {
    class: windowOf ? "windowed" : "scrolled",
    tabindex: "0",
    role: "region",
    "aria-label": name,
  });
  const seen = windowOf ? windowed(frame, rows, windowOf) : null;
  const first = () => seen?.first.value ?? 0;
  const shown = computed(() =>
    rows()
      .slice(first(), seen?.last.value)
      .map((item, at) => ({ item, place: first() + at })),
  );
  /** @param {() => T} item @param {() => number} [place] */
  const rowOf = (item, place) =>
    h(
      "tr",
      {
        class: () => tone?.(item()),
        "data-place": place,
        "aria-rowindex": () => (seen && place ? place() + 2 : null),
      },
      () => listed.value.map((column) => cellOf(column, item, place)),
    );
  const body = h(
    "tbody",
    () => above?.().map((item) => rowOf(() => item)),
    seen && space(() => first() * seen.row.value),
    each(
      () => shown.value,
      ({ item }) => key(item),
      (row) =>
        rowOf(
          () => row().item,
          () => row().place,
        ),
    ),
    seen && space(() => (rows().length - seen.last.value) * seen.row.value),
  );
  frame.append(
    h(
      "table",
      {
        class: listed.value.some((column) => column.phone) && "cards-on-phone",
        "aria-rowcount": () => seen && (windowOf?.hasMore?.() ? -1 : rows().length + 1),
      },
      h(
        "thead",
        h("tr", () => listed.value.map(headOf)),
      ),
      body,
    ),
  );
  if (windowOf && seen) goThrough(body, rows, seen, windowOf);
  return frame;
}

/** @template T @param {Column<T>} column */
function headOf({ head, kind, sort = [] }) {
  const sorts = [sort].flat();
  const directions = () => sorts.map(({ direction }) => direction());
  return h(
    "th",
    {
      scope: "col",
      class: kind,
      "aria-sort": () => sorts.length > 0 && (directions().find((each) => each !== "none") ?? "none"),
    },
    (!sorts.length || sorts[0].text !== undefined) && [head, " "],
    sorts.map(({ text = head, told, choose, direction }) =>
      h(
        "button.sort",
        { type: "button", "aria-label": told, onclick: choose },
        text,
        () => SORTED[direction()] || (text !== head && " ⇅"),
      ),
    ),
  );
}

const SORTED = { ascending: " ▲", descending: " ▼", none: "" };

/** @template T @param {Column<T>} column @param {() => T} row @param {() => number} [place] */
function cellOf({ kind = "", cell, once, phone, tone, shade }, row, place = () => -1) {
  const isName = kind.split(" ").includes("name");
  const classes = [kind, phone && `phone-${phone}`];
  const part = shade && computed(() => shade(row()));
  return h(
    isName ? "th" : "td",
    {
      scope: isName && "row",
      class:
        tone || shade
          ? () => [...classes, tone?.(row()), typeof part?.value === "number" && "shaded"]
          : classes,
      style: part && (() => ({ "--shade": part.value ?? 0 })),
    },
    once ? unread(() => cell(row(), place())) : () => cell(row(), place()),
  );
}

/** Which rows are seen. @template T @param {HTMLElement} frame @param {() => readonly T[]} rows @param {Window<T>} of */
function windowed(frame, rows, { more, hasMore, rowHeight = ROW }) {
  const top = signal(0); // pixels of the table that are above the screen
  const height = signal(innerHeight);
  const row = computed(() => (isPhone.value ? rowHeight.narrow : rowHeight.wide));
  const first = computed(() =>
    Math.max(0, Math.min(rows().length, Math.floor(top.value / row.value)) - AROUND),
  );
  const last = computed(() =>
    Math.min(rows().length, Math.ceil((top.value + height.value) / row.value) + AROUND),
  );
  effect(() => frame.style.setProperty("--row", `${row.value}px`));
  const look = () => {
    top.value = Math.max(0, -frame.getBoundingClientRect().top);
    height.value = innerHeight;
  };
  addEventListener("scroll", look, { passive: true });
  const watcher = new ResizeObserver(() => {
    frame.classList.toggle("over", frame.scrollWidth > frame.clientWidth);
    look();
  });
  watcher.observe(document.documentElement);
  watcher.observe(frame);
  onEnd(() => {
    removeEventListener("scroll", look);
    watcher.disconnect();
  });
  effect(() => {
    if (last.value > rows().length - AHEAD && rows().length && hasMore?.()) more?.();
  });
  return { look, row, first, last };
}

/**
 * `j`, `k` and the keys of the table's own.
 *
 * @template T
 * @param {HTMLElement} body @param {() => readonly T[]} rows
 * @param {{ look: () => void, row: { value: number } }} seen @param {Window<T>} of
 */
function goThrough(body, rows, { look, row }, { what, keys = {} }) {
  const placeOf = () => Number(document.activeElement?.closest("tr")?.getAttribute("data-place") ?? -1);
  onSteps(what, (step) => () => {
    const now = body.contains(document.activeElement) ? placeOf() : -1;
    const next = Math.max(0, Math.min(rows().length - 1, now < 0 ? 0 : now + step));
    const start = scrollY + (body.querySelector(".space")?.getBoundingClientRect().top ?? 0);
    const [above, below] = [start + next * row.value - COVERED, start + (next + 2) * row.value - innerHeight];
    scrollTo(0, Math.max(below, Math.min(above, scrollY)));
    look();
    /** @type {HTMLElement | null} */ (body.querySelector(`tr[data-place="${next}"] a.main`))?.focus();
  });
  for (const [key, [text, action]] of Object.entries(keys)) {
    onKey(key, text, () => {
      const item = rows()[placeOf()];
      if (item) action(item);
    });
  }
}

/** @param {() => number} height */
const space = (height) =>
  h("tr.space", { "aria-hidden": "true" }, h("td", { style: () => ({ height: `${height()}px` }) }));
