/**
 * Values that know who reads them. An effect runs again when a signal that it has read changes;
 * what it has made inside ends first. A change marks what follows from it, and effects run when all is
 * marked: so none sees a value that is older than another. Nothing runs while a batch goes on.
 */

/** @typedef {{ readers: Set<Reader>, refresh: () => void }} Source What a reader depends on. */
/** @typedef {Source & { state: number, isLazy: boolean, sources: Set<Source>, ends: (() => void)[], parent: Reader | null, isOver: boolean, isRunning: boolean }} Reader An effect, a scope, or a computed value, which is a source too. */

const FRESH = 0;
const UNSURE = 1; // a computed value that it has read may change
const STALE = 2;

/** @type {Reader | null} */
let reader = null;
/** @type {Reader | null} */
let owner = null;
let depth = 0;
/** Effects that are not fresh. @type {Set<Reader>} */
const waiting = new Set();

/**
 * @template T
 * @param {T} value
 * @param {(a: T, b: T) => boolean} [same]
 */
export function signal(value, same = Object.is) {
  /** @type {Source} */
  const made = { readers: new Set(), refresh: () => {} };
  return {
    get value() {
      track(made);
      return value;
    },
    set value(next) {
      if (same(value, next)) return;
      value = next;
      batch(() => mark(made.readers, STALE));
    },
    /** The value, which the reader does not depend on. */
    peek: () => value,
  };
}

/**
 * A value that follows from others. It is computed when it is read and they have changed, and told on if
 * it is another. An error is thrown to each who reads it. After the scope around has ended it keeps its
 * last value.
 *
 * @template T
 * @param {() => T} compute
 */
export function computed(compute) {
  let value = /** @type {T | undefined} */ (undefined);
  let failed = /** @type {{ error: unknown } | null} */ (null);
  let isMade = false;
  const update = () => {
    const [before, hadFailed] = [value, failed !== null];
    try {
      value = compute();
      failed = null;
      if (made.state !== FRESH) throw new Error("a computed value that changes what it reads");
    } catch (error) {
      failed = { error };
      made.state = FRESH;
    }
    if (isMade && !failed && !hadFailed && Object.is(before, value)) return;
    isMade = true;
    mark(made.readers, STALE);
  };
  const made = newReader(update, true);
  /** @param {boolean} isTracked @returns {T} */
  const read = (isTracked) => {
    if (made.isRunning) throw new Error("a computed value that depends on itself");
    if (made.isOver && !isMade) {
      made.state = FRESH;
      within(null, null, update);
    }
    made.refresh();
    if (isTracked) track(made);
    if (failed) throw failed.error;
    return /** @type {T} */ (value);
  };
  return {
    get value() {
      return read(true);
    },
    peek: () => read(false),
  };
}

/**
 * Run now, and again whenever what it has read changes. Returns what ends it; it ends with the
 * scope or effect in which it was made, too.
 *
 * @param {() => void} action
 */
export function effect(action) {
  const made = newReader(action);
  batch(made.refresh);
  return () => end(made);
}

/**
 * Run once; what is made inside ends when the returned function is called, and with what is around it.
 *
 * @template T
 * @param {() => T} action
 * @param {{ isKept?: boolean }} [how] `isKept`: what is around it may run again without ending it.
 * @returns {[T, () => void]}
 */
export function scope(action, { isKept = false } = {}) {
  const made = newReader(() => {}, false, isKept);
  made.state = FRESH;
  return [within(made, null, action), () => end(made)];
}

/** @param {() => void} action What to do when the effect or scope around ends or runs again. */
export function onEnd(action) {
  owner?.ends.push(action);
}

/**
 * Changes of several signals that are told as one.
 *
 * @param {() => void} action
 */
export function batch(action) {
  depth += 1;
  try {
    action();
  } finally {
    depth -= 1;
    if (depth === 0) flush();
  }
}

/**
 * @template T
 * @param {() => T} action What reads without depending on what it reads.
 */
export function unread(action) {
  return within(owner, null, action);
}

/** @param {() => void} action @param {boolean} [isLazy] Whether it runs when it is read, not when it is stale. @param {boolean} [isKept] Whether its owner does not end it. */
function newReader(action, isLazy = false, isKept = false) {
  /** @type {Reader} */
  const made = {
    readers: new Set(),
    refresh: () => refresh(made, action),
    state: STALE,
    isLazy,
    sources: new Set(),
    ends: [],
    parent: owner,
    isOver: false,
    isRunning: false,
  };
  if (!isKept) owner?.ends.push(() => end(made));
  return made;
}

/** Run it, if something that it has read is another now. @param {Reader} made @param {() => void} action */
function refresh(made, action) {
  if (made.isOver || made.isRunning || made.state === FRESH) return;
  made.isRunning = true;
  try {
    const isToRun = made.state === STALE || isStale(made);
    made.state = FRESH;
    if (!isToRun) return;
    clear(made);
    within(made, made, action);
  } finally {
    made.isRunning = false;
  }
}

/** Whether one of its sources, brought up to date, is another. @param {Reader} made */
function isStale(made) {
  for (const source of made.sources) {
    source.refresh();
    if (made.state === STALE) return true;
  }
  return false;
}

/** @param {Set<Reader>} readers @param {number} state */
function mark(readers, state) {
  for (const each of readers) {
    if (each.state >= state) continue;
    const wasFresh = each.state === FRESH;
    each.state = state;
    if (!wasFresh) continue;
    if (each.isLazy) mark(each.readers, UNSURE);
    else waiting.add(each);
  }
}

/** Let who reads now depend on it. @param {Source} source */
function track(source) {
  if (!reader || reader.isOver) return;
  source.readers.add(reader);
  reader.sources.add(source);
}

/**
 * @template T
 * @param {Reader | null} nextOwner
 * @param {Reader | null} nextReader
 * @param {() => T} action
 */
function within(nextOwner, nextReader, action) {
  const before = [owner, reader];
  [owner, reader] = [nextOwner, nextReader];
  try {
    return action();
  } finally {
    [owner, reader] = before;
    if (nextOwner?.isOver) clear(nextOwner); // it was ended while it ran
  }
}

/** @param {Reader} made */
function clear(made) {
  for (const { readers } of made.sources) readers.delete(made);
  made.sources.clear();
  for (const action of made.ends.splice(0).reverse()) action();
}

/** @param {Reader} made */
function end(made) {
  made.isOver = true;
  waiting.delete(made);
  clear(made);
}

/**
 * Run what waits, until nothing does. One that fails leaves the others alone, and its error is thrown
 * at the end. What never comes to rest is a defect, and is told.
 */
function flush() {
  let left = 10_000;
  /** @type {unknown[]} */
  const errors = [];
  depth += 1;
  for (const each of waiting) {
    left -= 1;
    if (left < 0) {
      errors.push(new Error("signals that change each other without end"));
      break;
    }
    waiting.delete(each);
    try {
      settle(each);
    } catch (error) {
      errors.push(error);
    }
  }
  depth -= 1;
  if (errors.length) throw errors[0];
}

/** What is around it first: that may end it. @param {Reader} made */
function settle(made) {
  if (made.parent) settle(made.parent);
  made.refresh();
}
