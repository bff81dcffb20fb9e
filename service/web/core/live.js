/**
 * What changes at the service, as it happens. A browser opens six connections to a service and no
 * more, so one tab listens and tells the others; when it is closed, another listens.
 */

import { onEnd, signal } from "./signals.js";

/** @typedef {{ kind: string, id: string, version: number, status: string }} Change */

const STREAM = "/v1/events?recent=true"; // it begins with what changed a moment ago
const RECENT = 20_000; // milliseconds, less than this moment
const NAME = "prescore-events";
const PAUSE = 3_000; // milliseconds until a stream that was refused is asked for again
const began = Date.now();
const channel = new BroadcastChannel(NAME);

/** Whether changes are heard of: by this tab, or by another that tells this one. */
export const isLive = signal(false);

/** @type {Set<(change: Change | null) => void>} */
const listeners = new Set();

/**
 * @param {(change: Change | null) => void} action Null: some may have been missed.
 * @param {string} [kind] Of the runs that are heeded; all by default.
 */
export function onChange(action, kind) {
  const heed = (/** @type {Change | null} */ change) => {
    if (!change || !kind || change.kind === kind) action(change);
  };
  listeners.add(heed);
  onEnd(() => listeners.delete(heed));
}

/**
 * @param {() => string | null} idOf Of one run, or null: of none yet.
 * @param {() => void} action What is done when it has changed, or may have.
 */
export const onChangeOf = (idOf, action) =>
  onChange((change) => {
    const id = idOf();
    if (id !== null && (!change || change.id === id)) action();
  });

/** @param {{ is: string, change?: Change | null }} told */
function tell(told) {
  if (told.is === "live") isLive.value = true;
  if (told.is === "away") isLive.value = false;
  if (told.is === "change") listeners.forEach((action) => action(told.change ?? null));
}

/** @param {{ is: string, change?: Change | null }} told */
function tellAll(told) {
  channel.postMessage(told);
  tell(told);
}

channel.addEventListener("message", ({ data }) => tell(data));

/** Listen, now or when the tab that listens is closed. */
export function listen() {
  navigator.locks.request(NAME, lead);
  channel.postMessage({ is: "who" });
}

let wasOpen = false;

/** Listen for all tabs, as long as this one is open. */
async function lead() {
  for (;;) {
    await untilClosed(new EventSource(STREAM));
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

/**
 * A stream that breaks is opened again by the browser; one that is refused (no key, the service is
 * away) is closed.
 *
 * @param {EventSource} source
 */
function untilClosed(source) {
  const answerer = (/** @type {MessageEvent} */ { data }) => {
    if (data.is === "who" && source.readyState === EventSource.OPEN) channel.postMessage({ is: "live" });
  };
  channel.addEventListener("message", answerer);
  source.addEventListener("run", ({ data }) => tellAll({ is: "change", change: JSON.parse(data) }));
  source.addEventListener("open", () => {
    tellAll({ is: "live" });
    if (wasOpen || Date.now() - began > RECENT) tellAll({ is: "change", change: null });
    wasOpen = true;
  });
  return new Promise((resolve) => {
    source.addEventListener("error", () => {
      tellAll({ is: "away" });
      if (source.readyState !== EventSource.CLOSED) return;
      channel.removeEventListener("message", answerer);
      resolve(undefined);
    });
  });
}
