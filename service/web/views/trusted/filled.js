/** Columns that tell something. */

/**
 * Columns without those that have "–" in all rows.
 *
 * @template T @param {Column<T>[]} columns @param {readonly T[]} rows
 */
export const filled = (columns, rows) =>
  columns.filter(({ cell }) => rows.some((row, place) => cell(row, place) !== "–"));
