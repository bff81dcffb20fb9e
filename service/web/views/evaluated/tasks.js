/** The tasks of an evaluation: how far each is, when one is tried again, and why one failed. */

import { h } from "../../core/dom.js";
import { folded } from "../../parts/layout.js";
import { duration } from "../../parts/numbers.js";
import { capitalized, plural, taskTitle } from "../../parts/sentences.js";
import { badge } from "../../parts/states.js";
import { table } from "../../parts/table.js";
import { attemptOf, shareOf } from "../tasks.js";

/** @typedef {Schemas["RunTask"]} Task */

/** Folded when there is nothing to wait for or to mend. @param {Evaluation} run @param {() => number} now In milliseconds. */
export function allTasks({ tasks: list, status }, now) {
  if (status === "succeeded") return folded(`${plural(list.length, "task")}, all done`, tasks(list, now));
  const skipped = list.filter(({ error }) => isSkipped(error));
  const others = list.filter(({ error }) => !isSkipped(error));
  return [
    tasks(others, now),
    skipped.length > 0 &&
      folded(
        `${plural(skipped.length, "task")} did not run, since ${skipped.length === 1 ? "it needs" : "they need"} one that failed`,
        h("p.quiet", skipped.map(({ name }) => taskTitle(name)).join(", ")),
      ),
  ];
}

/** @param {readonly Task[]} list @param {() => number} now */
const tasks = (list, now) =>
  table(list, {
    name: "Table of tasks",
    columns: [
      { head: "Task", kind: "name", cell: ({ name }) => h("span", { title: name }, taskTitle(name)) },
      {
        head: "State",
        phone: "value",
        cell: ({ status, cached, retry_at, error }) => [
          h("span", { title: error?.code }, badge(retry_at ? "retrying" : status)),
          " ",
          cached && h("span.label", "from cache"),
        ],
      },
      {
        head: "Progress",
        phone: "below",
        cell: (task) => [progress(task), h("span.sub", toldOf(task, list))],
      },
      { head: "Time", kind: "number", cell: (task) => duration(lasted(task, now())) },
      { head: "Attempts", kind: "number", cell: ({ attempts }) => attempts },
    ],
  });

/** Seconds of its attempt, so far if it runs. @param {Task} task @param {number} now */
const lasted = ({ status, seconds, started_at }, now) =>
  started_at && status === "running" ? (now - new Date(started_at).valueOf()) / 1000 : seconds;

/** Whether it was not tried, since a task that it needs failed. @param {Task["error"]} error */
const isSkipped = (error) => error?.code === "needs_failed";

/** @param {Task} task @param {readonly Task[]} list */
const toldOf = (task, list) => [
  task.retry_at && `${attemptOf(task)}. `,
  typeof task.seconds_left === "number" && `about ${duration(task.seconds_left)} left`,
  task.error && failureOf(task, task.error, list),
];

/** Each cause once. @param {Task} task @param {NonNullable<Task["error"]>} error @param {readonly Task[]} list */
function failureOf(task, error, list) {
  const first = list.find((each) => each.error?.code === error.code && each.error.detail === error.detail);
  return first && first !== task
    ? h("span.bad", `the same as ${taskTitle(first.name)}`)
    : h("span.bad", capitalized(error.detail));
}

/** @param {Task} task */
function progress(task) {
  if (task.status !== "running" && task.status !== "done") return null;
  const { done, total } = task.progress;
  const told = total ? `${done} of ${total}` : badge(task.status).textContent;
  return h("progress", { max: 1, value: shareOf(task), "aria-label": `${taskTitle(task.name)}: ${told}` });
}
