/** The tasks of an evaluation: how far each is, and why one failed. */

import { h } from "../../core/dom.js";
import { table } from "../../parts/layout.js";
import { duration } from "../../parts/numbers.js";
import { badge } from "../../parts/states.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["RunTask"]} Task */

/** Folded when there is nothing to wait for or to mend. @param {Evaluation} run */
export function allTasks({ tasks: list, status }) {
  if (status !== "succeeded") return tasks(list);
  return h("details", h("summary", `${list.length} tasks, all done`), tasks(list));
}

/** @param {Task[]} list */
function tasks(list) {
  return table(
    "Table of tasks",
    ["Task", "State", "Progress", "Time", "Attempts"],
    list.map((task) =>
      h(
        "tr",
        h("th", { scope: "row" }, task.name),
        h("td", badge(task.status), task.cached && h("span", { class: "label" }, "from cache")),
        h(
          "td",
          progress(task),
          task.error && h("span", { class: "bad" }, ` ${task.error.code}: ${task.error.detail}`),
        ),
        h("td", { class: "number" }, duration(task.seconds)),
        h("td", { class: "number" }, task.attempts),
      ),
    ),
  );
}

/** @param {Task} task */
function progress({ name, status, progress: { done, total } }) {
  const whole = total ?? 0;
  const share = status === "done" ? 1 : whole ? done / whole : 0;
  return h("progress", {
    max: 1,
    value: share,
    "aria-label": `${name}: ${whole ? `${done} of ${whole}` : badge(status).textContent}`,
  });
}
