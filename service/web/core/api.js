/** Questions to /v1. An answer is JSON; a refusal is a `Refused` with the service's own words. */

import { computed, effect, onEnd, signal } from "./signals.js";

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

/** Whether the last question was answered: false while the service is away. */
export const isReached = signal(true);
/** Whether a key is needed, and none is there that is valid. */
export const isKeyNeeded = signal(false);

const CALM = 200; // milliseconds between two questions after the same, when much changes
const SOON = 1_000;
const LATE = 15_000;

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
  try {
    answer = await fetch(url, { ...how, headers, body });
  } catch (error) {
    if (how.signal?.aborted) throw error;
    isReached.value = false;
    throw new Refused(0, "unreachable", "The service does not answer.");
  }
  isReached.value = true;
  if (answer.status === 204) return null;
  const isJson = /json/.test(answer.headers.get("Content-Type") ?? "");
  const found = isJson ? await answer.json() : await answer.text();
  if (answer.ok) return found;
  if (answer.status === 401) isKeyNeeded.value = true;
  const errors = found.errors ?? [];
  const fields =
    errors.length > 1 ? errors.map((/** @type {any} */ each) => `${each.pointer}: ${each.detail}`) : []; // one alone is the detail
  throw new Refused(
    answer.status,
    found.code ?? "",
    found.detail ?? found.title ?? answer.statusText,
    fields,
  );
}

/** @param {any} one @param {any} other Answers. */
const isSame = (one, other) =>
  one === other || (one !== null && other !== null && JSON.stringify(one) === JSON.stringify(other));

/**
 * What a place answers, asked for again when the place changes, when `refresh` is called, and
 * after a while if the service was away. While it is asked for again the last answer stays.
 *
 * @param {() => string | null} urlOf Null or empty: nothing is asked.
 */
export function resource(urlOf) {
  const answer = signal(/** @type {any} */ (null), isSame); // the same answer again draws nothing anew
  const refused = signal(/** @type {Refused | null} */ (null));
  const isAsking = signal(false);
  const again = signal(0);
  const url = computed(urlOf);
  let askedFor = /** @type {string | null} */ (null);
  let pause = SOON;
  effect(() => {
    again.value;
    const asked = url.value;
    if (!asked) return;
    const stop = new AbortController();
    let timer = 0;
    onEnd(() => {
      stop.abort();
      clearTimeout(timer);
    });
    isAsking.value = true;
    ask(asked, { signal: stop.signal }).then(
      (found) => {
        pause = SOON;
        askedFor = asked;
        refused.value = null;
        answer.value = found;
        isAsking.value = false;
      },
      (error) => {
        if (stop.signal.aborted) return;
        isAsking.value = false;
        refused.value = error instanceof Refused ? error : new Refused(0, "defect", String(error));
        if (askedFor !== asked && refused.peek()?.status) answer.value = null;
        const isPassing = !refused.peek()?.status || /** @type {Refused} */ (refused.peek()).status >= 500;
        if (isPassing) timer = setTimeout(refresh, pause);
        pause = Math.min(pause * 2, LATE);
      },
    );
  });
  let last = -CALM;
  let waiting = 0;
  onEnd(() => clearTimeout(waiting));
  const now = () => {
    waiting = 0;
    last = performance.now();
    again.value = again.peek() + 1;
  };
  const refresh = () => {
    const left = last + CALM - performance.now();
    if (left <= 0) now();
    else if (!waiting) waiting = setTimeout(now, left);
  };
  return { answer, refused, isAsking, refresh };
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
      const found = await ask(joined, { signal: asking.signal });
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
