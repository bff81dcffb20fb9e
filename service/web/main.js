/** The page: a frame that stays, and in it the view of the place where one is. */

import { h, replace } from "./core/dom.js";
import { heedKeys } from "./core/keyboard.js";
import { listen } from "./core/live.js";
import { effect, scope, unread } from "./core/signals.js";
import { followLinks, path } from "./core/urls.js";
import { frame } from "./parts/frame.js";
import { evaluation } from "./views/evaluation.js";
import { home } from "./views/home.js";
import { leaderboard } from "./views/leaderboard.js";
import { missing } from "./views/missing.js";

/** @typedef {{ title: string, content: Node }} View */

/** What stands at which place. Parts in braces are given to the view.
 * @type {[string, (...names: string[]) => View][]} */
const VIEWS = [
  ["/", home],
  ["/ui/evaluations/{id}", evaluation],
  ["/ui/datasets/{name}/{split}", leaderboard],
];

/** @param {string} pathname */
function found(pathname) {
  const parts = pathname.split("/").map(decoded);
  for (const [pattern, view] of VIEWS) {
    const wanted = pattern.split("/");
    const names = wanted.flatMap((part, at) => (part.startsWith("{") ? [parts[at]] : []));
    const fits = wanted.every((part, at) => (part.startsWith("{") ? parts[at] : part === parts[at]));
    if (fits && wanted.length === parts.length) return view(...names);
  }
  return missing(pathname);
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let end = () => {};
const main = h("main", { id: "content", tabindex: "-1" });
document.body.append(...frame(main));
effect(() => {
  const pathname = path.value;
  unread(() => {
    end();
    const [view, over] = scope(() => found(pathname));
    end = over;
    document.title = `${view.title} · Prescore`;
    replace(main, view.content);
    if (document.activeElement !== document.body) main.focus({ preventScroll: true });
  });
});
followLinks();
heedKeys();
listen();
