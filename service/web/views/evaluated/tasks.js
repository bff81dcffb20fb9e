/** The tasks of an evaluation: how far each is, when one is tried again, and why one failed. */

import { h } from "../../core/dom.js";
import { duration } from "../../parts/numbers.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";

/** @typedef {import("../../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../../core/api.js").Schemas["RunTask"]} Task */

/** Folded when there is nothing to wait for or to mend. @param {Evaluation} run */
export function allTasks({ tasks: list, status }) {
  if (status !== "succeeded") return tasks(list);
  return h("details", h("summary", `${list.length} tasks, all done`), tasks(list));
}

/** @param {readonly Task[]} list */
const tasks = (list) =>
  table(list, {
    name: "Table of tasks",
    columns: [
      { head: "Task", kind: "name", cell: ({ name }) => name },
      {
        head: "State",
        phone: "value",
        cell: ({ status, cached, retry_at }) => [
          badge(retry_at ? "retrying" : status),
          cached && h("span", { class: "label" }, "from cache"),
        ],
      },
      {
        head: "Progress",
        phone: "below",
        cell: (task) => [progress(task), h("span", { class: "sub" }, toldOf(task))],
      },
      { head: "Time", kind: "number", cell: ({ seconds }) => duration(seconds) },
      { head: "Attempts", kind: "number", cell: ({ attempts }) => attempts },
    ],
  });

/** @param {Task} task */
function toldOf({ attempts, attempts_allowed: allowed, retry_at, seconds_left: left, error }) {
  const seconds = retry_at ? (new Date(retry_at).valueOf() - Date.now()) / 1000 : null;
  const next = `attempt ${attempts + 1}${allowed ? ` of ${allowed}` : ""}`;
  return [
    seconds !== null && `retrying ${seconds > 1 ? `in ${duration(seconds)}` : "now"}, ${next}. `,
    typeof left === "number" && `about ${duration(left)} left`,
    error && h("span", { class: "bad" }, `${error.code}: ${error.detail}`),
  ];
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
