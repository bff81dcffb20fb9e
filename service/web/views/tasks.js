/** How far the tasks of a run are: a bar, what is done now, and how long it will take. */

import { h } from "../core/dom.js";
import { count, duration } from "../parts/numbers.js";
import { lasting } from "../parts/dates.js";
import { plural, runningOf, secondsLeft, taskTitle } from "../parts/sentences.js";

/** @typedef {Schemas["RunTask"]} Task */

/** @param {{ status: string, tasks: Task[] }} run `retrying`: nothing runs, and a task is tried again later. */
export function stateOf({ status, tasks }) {
  const isOpen = status === "running" || status === "queued";
  const isRunning = tasks.some((task) => task.status === "running");
  return isOpen && !isRunning && tasks.some(({ retry_at }) => retry_at) ? "retrying" : status;
}

/** @param {Task} task From 0 to 1. */
export const shareOf = ({ status, progress: { done, total } }) =>
  status === "done" ? 1 : status === "running" && total ? done / total : 0;

/** `4 of 9 tasks`. @param {Task[]} tasks */
const doneOf = (tasks) =>
  `${count(tasks.filter(({ status }) => status === "done").length)} of ${plural(tasks.length, "task")}`;

/** `dev on shapes/test (running, 4 of 9 tasks)`. @param {string} name @param {{ status: string, tasks: Task[], dataset: { name: string, split: string } }} run */
export const describeRun = (name, run) =>
  `${name} on ${run.dataset.name}/${run.dataset.split} (${stateOf(run)}, ${doneOf(run.tasks)})`;

/** @param {Task[]} tasks */
export function taskProgress(tasks) {
  const done = tasks.filter(({ status }) => status === "done").length;
  const told = doneOf(tasks);
  return [
    h("progress", { max: tasks.length || 1, value: done, "aria-label": told, title: told }),
    h("span.sub", [told, workOf(tasks)].filter(Boolean).join(" · ")),
  ];
}

/** `about 40 s left`; empty where it is not known. @param {Task[]} tasks */
export function leftOf(tasks) {
  const seconds = secondsLeft(tasks);
  return seconds === null ? "" : `about ${duration(seconds)} left`;
}

/** `3 min since submission, about 40 s left`. @param {{ created_at: string, tasks: Task[] }} run */
export const timesOf = ({ created_at, tasks }) =>
  [`${lasting(created_at)} since submission`, leftOf(tasks)].filter(Boolean).join(", ");

/** @param {Task[]} tasks */
function workOf(tasks) {
  const running = tasks.filter(({ status }) => status === "running").map(runningOf);
  return running.join("; ") || tasks.filter(({ retry_at }) => retry_at).map(retryOf)[0];
}

/** As "columns: attempt 2 of 3 in 40 s". @param {Task} task */
const retryOf = (task) =>
  `${taskTitle(task.name)}: ${attemptOf(task)}${task.error ? ` (${task.error.detail})` : ""}`;

/** The attempt that comes next, as "attempt 2 of 3 in 40 s". @param {Task} task */
export function attemptOf({ attempts, attempts_allowed, retry_at }) {
  const seconds = (new Date(retry_at ?? "").valueOf() - Date.now()) / 1000;
  const next = seconds > 1 ? `in ${duration(seconds)}` : "now";
  const of = typeof attempts_allowed === "number" ? ` of ${attempts_allowed}` : "";
  return `attempt ${attempts + 1}${of} ${next}`;
}
