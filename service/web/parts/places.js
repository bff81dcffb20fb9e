/** The way between the views of one split of a dataset. */

import { h } from "../core/dom.js";
import { path, place } from "../core/urls.js";

/** @param {string} name @param {string} split @param {string} [part] */
export const splitPlace = (name, split, part) =>
  place("/ui/datasets", ...[name, split, part].filter((each) => each !== undefined));

/** @param {string} name @param {string} split */
export function splitPlaces(name, split) {
  const places = [
    ["Leaderboard", splitPlace(name, split)],
    ["Trust", splitPlace(name, split, "trust")],
    ["Pre-gen scores", splitPlace(name, split, "pregen")],
  ];
  return h(
    "nav",
    { class: "places", "aria-label": `Views of ${name}/${split}` },
    places.map(([text, url]) =>
      h("a", { href: url, "aria-current": () => (path.value === url ? "page" : null) }, text),
    ),
  );
}

/** @param {{ name: string, split: string }} dataset */
export const splitLink = ({ name, split }) => h("a", { href: splitPlace(name, split) }, `${name}/${split}`);

/** Where one evaluation is shown. @param {string} id */
export const evaluationPlace = (id) => place("/ui/evaluations", id);

/** @param {string} id @param {string} image @param {Record<string, string | null>} [query] */
export const imagePlace = (id, image, query = {}) =>
  `${evaluationPlace(id)}${place("/images", image, query)}`;

/** @param {string} id @param {Record<string, string | null>} [query] */
export const captionsPlace = (id, query = {}) => `${evaluationPlace(id)}${place("/captions", query)}`;

/** @param {string} name @param {string} split @param {string} run */
export const runPlace = (name, split, run) => splitPlace(name, split, "runs") + place("", run);
