/** A table of numbers as a heat map: one cell has the focus, arrow keys move it. */

import { h } from "../core/dom.js";
import { onArrows } from "./arrows.js";

/**
 * @template T
 * @param {{ rows: string[], columns: string[], at: (row: string, column: string) => T, share: (cell: T) => number | null, told: (cell: T) => string, chosen: (cell: T) => boolean, choose: (cell: T) => void, name: string }} of
 *   `share`: from −1 to 1, or null where there is no number.
 */
export function heat({ rows, columns, at, share, told, chosen, choose, name }) {
  const table = h(
    "table.heat",
    { role: "grid", "aria-label": name },
    h(
      "thead",
      h(
        "tr",
        h("td"),
        columns.map((column) => h("th", { scope: "col" }, h("span", column))),
      ),
    ),
    h(
      "tbody",
      rows.map((row) =>
        h(
          "tr",
          h("th", { scope: "row" }, row),
          columns.map((column) => cell(at(row, column))),
        ),
      ),
    ),
  );
  const cells = () => /** @type {HTMLElement[]} */ ([...table.querySelectorAll("[role=gridcell]")]);
  (cells().find((each) => each.ariaSelected === "true") ?? cells()[0])?.setAttribute("tabindex", "0");
  onArrows(table, cells, {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns.length,
    ArrowDown: columns.length,
  });
  return table;

  /** @param {T} item */
  function cell(item) {
    const value = share(item);
    return h("td", {
      role: "gridcell",
      tabindex: "-1",
      class: value === null ? "none" : value < 0 ? "under" : "over",
      style: { "--share": Math.abs(value ?? 0).toFixed(3) },
      title: told(item),
      "aria-label": told(item),
      "aria-selected": () => String(chosen(item)),
      onfocus: () => choose(item),
    });
  }
}
