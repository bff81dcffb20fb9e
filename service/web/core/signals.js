/**
 * Values that know who reads them. An effect runs again when a signal that it has read changes;
 * what it has made inside ends first. Nothing runs while a batch goes on, and nothing runs twice.
 */

/** @typedef {{ run: () => void, sources: Set<Set<Reader>>, ends: (() => void)[], isOver: boolean }} Reader */

/** @type {Reader | null} */
let reader = null;
/** @type {Reader | null} */
let owner = null;
let depth = 0;
/** @type {Set<Reader>} */
const waiting = new Set();

/**
 * @template T
 * @param {T} value
 * @param {(a: T, b: T) => boolean} [same]
 */
export function signal(value, same = Object.is) {
  /** @type {Set<Reader>} */
  const readers = new Set();
  return {
    get value() {
      if (reader) {
        readers.add(reader);
        reader.sources.add(readers);
      }
      return value;
    },
    set value(next) {
      if (same(value, next)) return;
      value = next;
      batch(() => {
        for (const each of readers) waiting.add(each);
      });
    },
    /** The value, which the reader does not depend on. */
    peek: () => value,
  };
}

/**
 * A value that follows from others. It is computed when they change, and told on if it is another.
 *
 * @template T
 * @param {() => T} compute
 */
export function computed(compute) {
  /** @type {ReturnType<typeof signal<T | undefined>>} */
  const found = signal(/** @type {T | undefined} */ (undefined));
  effect(() => {
    found.value = compute();
  });
  return {
    get value() {
      return /** @type {T} */ (found.value);
    },
    peek: () => /** @type {T} */ (found.peek()),
  };
}

/**
 * Run now, and again whenever what it has read changes. Returns what ends it; it ends with the
 * scope or effect in which it was made, too.
 *
 * @param {() => void} action
 */
export function effect(action) {
  const made = newReader(() => {
    if (made.isOver) return;
    clear(made);
    within(made, made, action);
  });
  made.run();
  return () => end(made);
}

/**
 * Run once; what is made inside ends when the returned function is called.
 *
 * @template T
 * @param {() => T} action
 * @returns {[T, () => void]}
 */
export function scope(action) {
  const made = newReader(() => {});
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

/** @param {() => void} run */
function newReader(run) {
  /** @type {Reader} */
  const made = { run, sources: new Set(), ends: [], isOver: false };
  owner?.ends.push(() => end(made));
  return made;
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
  }
}

/** @param {Reader} made */
function clear(made) {
  for (const readers of made.sources) readers.delete(made);
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
    waiting.delete(each);
    left -= 1;
    if (left < 0) {
      waiting.clear();
      errors.push(new Error("signals that change each other without end"));
      break;
    }
    try {
      each.run();
    } catch (error) {
      errors.push(error);
    }
  }
  depth -= 1;
  if (errors.length) throw errors[0];
}
