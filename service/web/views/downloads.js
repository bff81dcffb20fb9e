/** Downloads: tables as CSV, which the service makes. */

import { h } from "../core/dom.js";

/** A chip that saves what a place answers as CSV. @param {() => string} urlOf @param {string} name Of the file, without its ending. @param {string} [text] */
export const csvChip = (urlOf, name, text = "CSV") =>
  h("button.chip", { type: "button", title: "Download as CSV", onclick: () => saveCsv(urlOf(), name) }, text);

/** @param {string} url @param {string} name */
async function saveCsv(url, name) {
  const answer = await fetch(url, { headers: { Accept: "text/csv" } });
  if (!answer.ok) return;
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: `${name}.csv` });
  link.click();
  URL.revokeObjectURL(link.href);
}
