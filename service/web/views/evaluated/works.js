/** The works of an evaluation: how far each is, and why one failed. */

import { h } from "../../core/dom.js";
import { table } from "../../parts/layout.js";
import { duration } from "../../parts/numbers.js";
import { badge } from "../../parts/states.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["Work"]} Work */

/** Folded when there is nothing to wait for or to mend. @param {Evaluation} run */
export function allWorks({ works: list, status }) {
  if (status !== "succeeded") return works(list);
  return h("details", {}, h("summary", {}, `${list.length} works, all done`), works(list));
}

/** @param {Work[]} list */
function works(list) {
  return table(
    "Table of works",
    ["Work", "State", "Progress", "Time", "Attempts"],
    list.map((work) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, work.name),
        h("td", {}, badge(work.status), work.cached && h("span", { class: "label" }, "from cache")),
        h(
          "td",
          {},
          progress(work),
          work.error && h("span", { class: "bad" }, ` ${work.error.code}: ${work.error.detail}`),
        ),
        h("td", { class: "number" }, duration(work.seconds)),
        h("td", { class: "number" }, work.attempts),
      ),
    ),
  );
}

/** @param {Work} work */
function progress({ name, status, progress: { done, total } }) {
  const whole = total ?? 0;
  const share = status === "done" ? 1 : whole ? done / whole : 0;
  return h("progress", {
    max: 1,
    value: share,
    "aria-label": `${name}: ${whole ? `${done} of ${whole}` : badge(status).textContent}`,
  });
}
