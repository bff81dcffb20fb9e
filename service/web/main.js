/** The page: a frame that stays, and in it the view of the place where one is. */

import { h, notDrawn, replace } from "./core/dom.js";
import { heedKeys } from "./core/keyboard.js";
import { listen } from "./core/live.js";
import { effect, scope } from "./core/signals.js";
import { followLinks, path } from "./core/urls.js";
import { crumbs, frame } from "./parts/frame.js";

/** @typedef {{ title: string, content: Node, crumbs?: () => import("./parts/frame.js").Crumb[] }} View `crumbs`: the way to it. */

/** @typedef {(...names: string[]) => View} Make */

/** What stands at which place, loaded when one goes there. Parts in braces are given to the view.
 * @type {[string, () => Promise<Make>][]} */
const VIEWS = [
  ["/", async () => (await import("./views/home.js")).home],
  ["/ui", async () => (await import("./views/home.js")).home],
  ["/ui/", async () => (await import("./views/home.js")).home],
  ["/ui/evaluations/{id}", async () => (await import("./views/evaluation.js")).evaluation],
  ["/ui/evaluations/{id}/captions", async () => (await import("./views/captions.js")).captions],
  ["/ui/evaluations/{id}/images/{image}", async () => (await import("./views/image.js")).imageView],
  ["/ui/datasets/{name}/{split}", async () => (await import("./views/leaderboard.js")).leaderboard],
  ["/ui/datasets/{name}/{split}/runs", async () => (await import("./views/trainings.js")).trainings],
  ["/ui/datasets/{name}/{split}/runs/{run}", async () => (await import("./views/training.js")).training],
  ["/ui/datasets/{name}/{split}/trust", async () => (await import("./views/trust.js")).trust],
  ["/ui/datasets/{name}/{split}/pregen", async () => (await import("./views/pregen.js")).pregen],
  ["/ui/datasets/{name}/{split}/dataset", async () => (await import("./views/dataset.js")).dataset],
  ["/ui/compare", async () => (await import("./views/compare.js")).compare],
  ["/ui/now", async () => (await import("./views/jobs.js")).jobs],
];

/** The scripts of each of these views: sent for at once, none waits for another. @type {Record<string, string[]>} */
const NEEDED = JSON.parse(document.getElementById("needed")?.textContent ?? "{}");

/** @param {string} pathname @returns {Promise<() => View>} */
async function found(pathname) {
  for (const [pattern, load] of VIEWS) {
    const names = pathname.match(`^${pattern.replace(/\{\w+\}/g, "([^/]+)")}$`);
    if (!names) continue;
    for (const name of NEEDED[pattern] ?? [])
      document.head.append(h("link", { rel: "modulepreload", href: new URL(name, import.meta.url) }));
    const make = await load();
    return () => make(...names.slice(1).map(decoded));
  }
  const { missing } = await import("./views/missing.js");
  return () => missing(pathname);
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

listen();
let end = () => {};
const main = h("main", { id: "content", tabindex: "-1" });
document.body.append(...frame(main));
document.getElementById("unloaded")?.remove();
effect(() => {
  const pathname = path.value;
  end(); // the view that is left heeds the new address no more
  found(pathname).then(
    (make) => path.peek() === pathname && show(make),
    () => path.peek() === pathname && show(notLoaded),
  );
});
followLinks();
heedKeys();

/** @returns {View} */
function notLoaded() {
  const again = h("button", { type: "button", onclick: () => location.reload() }, "Load the page anew");
  return {
    title: "Not loaded",
    content: h(
      "div",
      h("h1", "This view could not be loaded"),
      h("p", "The service does not answer, or has a newer version of this page. ", again),
    ),
  };
}

/** @param {() => View} make */
function show(make) {
  end();
  const [view, over] = scope(() => {
    try {
      const made = make();
      effect(() => {
        crumbs.value = made.crumbs?.() ?? [];
      });
      return made;
    } catch (error) {
      return { title: "Not drawn", content: h("div", h("h1", "Not drawn"), notDrawn(error)) };
    }
  });
  end = over;
  document.title = `${view.title} · Prescore`;
  replace(main, view.content);
  if (document.activeElement !== document.body) main.focus({ preventScroll: true });
}
