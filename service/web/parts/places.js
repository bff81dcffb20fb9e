/** Addresses of views, and the tabs of one split and of one evaluation. */

import { h } from "../core/dom.js";
import { place } from "../core/urls.js";
import { tabs } from "./layout.js";

/** @param {string} name @param {string} split @param {string} [part] */
export const splitPlace = (name, split, part) =>
  place("/ui/datasets", ...[name, split, part].filter((each) => each !== undefined));

/** @param {string} name @param {string} split */
export const splitTabs = (name, split) =>
  tabs(`Views of ${name}/${split}`, [
    ["Leaderboard", splitPlace(name, split)],
    ["Training runs", splitPlace(name, split, "runs")],
    ["Which metric to trust", splitPlace(name, split, "trust")],
    ["Pre-gen metrics", splitPlace(name, split, "pregen")],
    ["Dataset", splitPlace(name, split, "dataset")],
  ]);

/** @param {string} id @param {string} [within] The view of which a part is shown. */
export const evaluationTabs = (id, within) =>
  tabs(
    "Views of this evaluation",
    [
      ["Scores", evaluationPlace(id)],
      ["Captions", captionsPlace(id)],
      ["Compare with…", place("/ui/compare", { a: id })],
    ],
    within,
  );

/** @param {{ name: string, split: string }} dataset */
export const splitLink = ({ name, split }) => h("a", { href: splitPlace(name, split) }, `${name}/${split}`);

/** The way to a split, for the frame. @param {{ name: string, split: string }} dataset @returns {import("./frame.js").Crumb[]} */
export const splitCrumbs = ({ name, split }) => [[`${name}/${split}`, splitPlace(name, split)]];

/** @param {string} id */
export const evaluationPlace = (id) => place("/ui/evaluations", id);

/** @param {string} id @param {string} image @param {Record<string, string | null>} [query] */
export const imagePlace = (id, image, query = {}) =>
  `${evaluationPlace(id)}${place("/images", image, query)}`;

/** @param {string} id @param {Record<string, string | null>} [query] */
export const captionsPlace = (id, query = {}) => `${evaluationPlace(id)}${place("/captions", query)}`;

/** @param {string} name @param {string} split @param {string} run @param {Record<string, string | number | null | undefined>} [query] */
export const runPlace = (name, split, run, query = {}) =>
  splitPlace(name, split, "runs") + place("", run, query);

/** @param {string} a @param {string} b */
export const comparePlace = (a, b) => place("/ui/compare", { a, b });
