/**
 * Elements, made by function calls. Text is always text: nothing here reads markup, so whatever a
 * caption, a name or a label holds is shown and never becomes part of the page.
 *
 * An attribute or child that is a function is read again when what it reads changes.
 */

import { scope, effect, onEnd, signal, unread } from "./signals.js";

/** @typedef {Node | string | number | null | undefined | boolean | (() => any) | any[]} Child A function returns a child. */
/** @typedef {Record<string, unknown>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag | `${Tag}.${string}`} tag With its classes: `h("p.quiet", text)`.
 * @param {...(Attributes | Child)} content Attributes first, if there are any: `on…` are listeners, `class` (in the
 *   place of the tag's) may be a list, `style` an object of custom properties and styles, `.name` a property. Then children.
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(/** @type {Tag} */ (name));
  return filled(made, classes, content);
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag | `${Tag}.${string}`} tag
 * @param {...(Attributes | Child)} content As of `h`.
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function s(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElementNS(SVG, /** @type {Tag} */ (name));
  return filled(made, classes, content);
}

/**
 * @template {Element} Made
 * @param {Made} made @param {string[]} classes @param {(Attributes | Child)[]} content
 */
function filled(made, classes, [first, ...rest]) {
  if (classes.length) made.setAttribute("class", classes.join(" "));
  const isAttributes = first && Object.getPrototypeOf(first) === Object.prototype;
  if (isAttributes) for (const [name, value] of Object.entries(first)) setLive(made, name, value);
  append(made, /** @type {Child[]} */ (isAttributes ? rest : [first, ...rest]));
  return made;
}

/**
 * @param {Node} parent
 * @param {Child[]} children
 */
export function append(parent, children) {
  for (const child of children) {
    if (typeof child === "function") parent.appendChild(live(child));
    else if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else if (child || child === 0) parent.appendChild(document.createTextNode(String(child)));
  }
}

/** @param {Element} parent @param {...Child} children */
export function replace(parent, ...children) {
  parent.textContent = "";
  append(parent, children);
}

/**
 * Rows that keep their elements while their keys stay: what has the focus keeps it.
 *
 * @template T
 * @param {() => readonly T[]} items
 * @param {(item: T) => string | number} keyOf Another for each item.
 * @param {(item: () => T) => Node} render
 */
export function each(items, keyOf, render) {
  /** @type {Map<string | number, { node: Node, item: { value: T }, end: () => void }>} */
  let known = new Map();
  const last = document.createComment("");
  const made = document.createDocumentFragment();
  made.append(last);
  onEnd(() => known.forEach((row) => row.end()));
  effect(() => {
    const list = items();
    unread(() => {
      const next = new Map();
      for (const item of list) {
        const key = keyOf(item);
        const row = known.get(key);
        if (row) row.item.value = item;
        next.set(key, row ?? newRow(item, render));
      }
      for (const [key, row] of known) {
        if (next.get(key) === row) continue;
        row.end();
        row.node.parentNode?.removeChild(row.node);
      }
      known = next;
      let at = /** @type {Node} */ (last);
      for (const row of [...next.values()].reverse()) {
        if (row.node.nextSibling !== at) at.parentNode?.insertBefore(row.node, at);
        at = row.node;
      }
    });
  });
  return made;
}

/**
 * @template T
 * @param {T} value
 * @param {(item: () => T) => Node} render
 */
function newRow(value, render) {
  const item = signal(value);
  const [node, end] = scope(() => attempt(() => render(() => item.value)), { isKept: true });
  return { node, item, end };
}

/** @param {() => Child} child */
function live(child) {
  const made = document.createDocumentFragment();
  const first = document.createComment("");
  const last = document.createComment("");
  made.append(first, last);
  effect(() => {
    const next = attempt(() => {
      const made = document.createDocumentFragment();
      append(made, [child()]);
      return made;
    });
    while (first.nextSibling && first.nextSibling !== last)
      /** @type {ChildNode} */ (first.nextSibling).remove();
    last.parentNode?.insertBefore(next, last);
  });
  return made;
}

/** @template {Node} Made @param {() => Made} make */
function attempt(make) {
  try {
    return make();
  } catch (error) {
    return notDrawn(error);
  }
}

/** What stands in the place of what throws while it is drawn: the page around it stays. @param {unknown} error */
export function notDrawn(error) {
  reportError(error);
  return h(
    "div.notice.bad",
    { role: "alert" },
    h("p", `This view could not be drawn: ${error instanceof Error ? error.message : error}`),
    h("button", { type: "button", onclick: () => location.reload() }, "Load the page anew"),
    " ",
    h("a", { href: "/" }, "Home"),
  );
}

/** @param {Element} element @param {string} name @param {unknown} value */
function setLive(element, name, value) {
  if (name.startsWith("on")) {
    element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
  } else if (typeof value === "function") {
    effect(() => set(element, name, value()));
  } else {
    set(element, name, value);
  }
}

/** @param {Element} element @param {string} name @param {unknown} value */
function set(element, name, value) {
  if (name.startsWith(".")) {
    Object.assign(element, { [name.slice(1)]: value });
  } else if (name === "style") {
    const style = /** @type {HTMLElement} */ (element).style;
    for (const [key, text] of Object.entries(value ?? {})) style.setProperty(key, String(text));
  } else if (value === false || value === null || value === undefined) {
    element.removeAttribute(name);
  } else {
    const text = Array.isArray(value) ? value.filter(Boolean).join(" ") : value;
    element.setAttribute(name, text === true ? "" : String(text));
  }
}
