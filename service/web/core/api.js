/** Questions to /v1. An answer is JSON; a refusal is a `Refused` with the service's own words. */

import { batch, computed, effect, onEnd, signal } from "./signals.js";

/** @typedef {import("#schemas").components["schemas"]} Schemas What the interface says of its answers. */

export class Refused extends Error {
  /** @param {number} status 0: no answer came. @param {string} code @param {string} detail @param {string[]} [fields] */
  constructor(status, code, detail, fields = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** @param {unknown} error @returns {Refused} */
export const refusedBy = (error) =>
  error instanceof Refused
    ? error
    : new Refused(0, "defect", error instanceof Error ? error.message : String(error));

/** Whether the last question was answered: false while the service is away. */
export const isReached = signal(true);
/** Whether a key is needed, and none is there that is valid. */
export const isKeyNeeded = signal(false);

const CALM = 200; // milliseconds between two questions after the same, when much changes
const SOON = 1_000;
const LATE = 15_000;
const SLOW = 10_000; // milliseconds after which it is told that there is no answer yet
const LONGEST = 60_000; // milliseconds after which a question is given up, and asked again
const SHOWN = 120; // characters of an answer that is not JSON

/**
 * @param {string} url
 * @param {RequestInit & { json?: unknown }} [how]
 * @returns {Promise<any>}
 */
export async function ask(url, { json, ...how } = {}) {
  const headers = new Headers(how.headers);
  headers.set("Accept", "application/json");
  if (json !== undefined) headers.set("Content-Type", "application/json");
  const body = json === undefined ? how.body : JSON.stringify(json);
  let answer;
  let text;
  try {
    answer = await fetch(url, { ...how, headers, body });
    text = await answer.text();
  } catch {
    if (how.signal?.aborted) throw how.signal.reason;
    isReached.value = false;
    throw new Refused(0, "unreachable", "The service does not answer.");
  }
  isReached.value = true;
  if (answer.status === 401) isKeyNeeded.value = true;
  if (answer.status === 204) return null;
  if (answer.ok && answer.headers.get("Content-Type")?.startsWith("image/")) return url; // a picture, which is there
  const found = parsed(url, answer.status, text);
  if (answer.ok) return found;
  const { errors = [], title, code = "", detail = title } = found ?? {};
  const fields = errors.map((/** @type {any} */ each) => `${each.pointer}: ${each.detail}`);
  throw new Refused(
    answer.status,
    code,
    detail ?? `The service answered with the status ${answer.status}.`,
    fields.length > 1 ? fields : [], // one alone is the detail
  );
}

/** A proxy's page of errors, or half an answer, is told as what it is. @param {string} url @param {number} status @param {string} text */
function parsed(url, status, text) {
  try {
    return JSON.parse(text);
  } catch {
    const start = text.replace(/\s+/g, " ").trim().slice(0, SHOWN);
    throw new Refused(
      status,
      "not_json",
      `The answer of ${url.split("?")[0]} is not JSON: status ${status}, ${start ? `“${start}”` : "empty"}`,
    );
  }
}

/** An answer within a minute. @param {string} url @param {AbortController} stop @param {RequestInit} [how] */
function askSoon(url, stop, how) {
  const late = new Refused(0, "late", `The service has not answered for ${LONGEST / 1000} s.`);
  const timer = setTimeout(() => stop.abort(late), LONGEST);
  return ask(url, { ...how, signal: stop.signal }).finally(() => clearTimeout(timer));
}

/** Whether the same question may be answered another time. @param {Refused} refused */
const isPassing = ({ status, code }) => !status || status >= 500 || code === "not_json";

/** @param {any} one @param {any} other Answers. */
const isSame = (one, other) =>
  one === other || (one !== null && other !== null && JSON.stringify(one) === JSON.stringify(other));

/**
 * What a place answers, asked for again when the place changes, when `refresh` is called (after the
 * answer that is awaited), and after a while if the service was away. Until then the last answer stays.
 *
 * @param {() => string | null} urlOf Null or empty: nothing is asked.
 * @param {RequestInit} [how] Of a question that changes nothing.
 */
export function resource(urlOf, how) {
  const answer = signal(/** @type {any} */ (null), isSame); // the same answer again draws nothing anew
  const refused = signal(/** @type {Refused | null} */ (null));
  const isAsking = signal(false);
  const isSlow = signal(false);
  const again = signal(0);
  const url = computed(urlOf);
  let askedFor = /** @type {string | null} */ (null);
  let pause = SOON;
  let last = 0; // when it was asked
  let due = 0; // the timer of the next refresh
  let isDue = false; // the answer that is awaited may be older than the last refresh
  const refresh = () => {
    clearTimeout(due);
    const left = last + CALM - performance.now();
    if (isAsking.peek()) isDue = true;
    else if (left > 0) due = setTimeout(refresh, left);
    else again.value = again.peek() + 1;
  };
  effect(() => {
    again.value;
    const asked = url.value;
    isDue = isSlow.value = false;
    isAsking.value = Boolean(asked);
    if (!asked) return;
    last = performance.now();
    const stop = new AbortController();
    const slow = setTimeout(() => (isSlow.value = true), SLOW);
    let isOver = false;
    onEnd(() => {
      isOver = true;
      stop.abort();
      clearTimeout(slow);
      clearTimeout(due);
    });
    const settle = () => {
      clearTimeout(slow);
      isAsking.value = isSlow.value = false;
    };
    askSoon(asked, stop, how).then(
      (found) => {
        if (isOver) return;
        pause = SOON;
        askedFor = asked;
        batch(() => {
          settle();
          refused.value = null;
          answer.value = found;
        });
        if (isDue) refresh();
      },
      (error) => {
        if (isOver) return;
        const why = refusedBy(error);
        batch(() => {
          settle();
          refused.value = why;
          if (askedFor !== asked && why.status) answer.value = null;
        });
        if (isPassing(why)) due = setTimeout(refresh, pause);
        else if (isDue) refresh();
        pause = Math.min(pause * 2, LATE);
      },
    );
  });
  const retry = () => {
    isAsking.value = false; // what is in flight is given up
    refresh();
  };
  return { answer, refused, isAsking, isSlow, refresh, retry };
}

/**
 * The items of a list that has pages: the first page, and more when they are asked for.
 *
 * @param {() => string | null} urlOf Without a cursor.
 */
export function pages(urlOf) {
  const items = signal(/** @type {any[]} */ ([]));
  const next = signal(/** @type {string | null} */ (null));
  const first = resource(urlOf);
  const isMore = signal(false);
  let asking = /** @type {AbortController | null} */ (null);
  effect(() => {
    const found = first.answer.value;
    asking?.abort();
    items.value = found?.items ?? [];
    next.value = found?.next ?? null;
    isMore.value = false;
  });
  onEnd(() => asking?.abort());
  const more = async () => {
    const cursor = next.peek();
    const url = urlOf();
    if (!cursor || !url || isMore.peek()) return;
    asking = new AbortController();
    isMore.value = true;
    try {
      const joined = url + (url.includes("?") ? "&" : "?") + new URLSearchParams({ cursor });
      const found = await askSoon(joined, asking);
      items.value = [...items.peek(), ...found.items];
      next.value = found.next ?? null;
    } catch (error) {
      if (error instanceof Refused) first.refused.value = error;
    } finally {
      isMore.value = false;
    }
  };
  return { ...first, items, next, isMore, more };
}
