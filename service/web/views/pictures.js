/** Pictures of a dataset. The place of each is kept free while it is made, and says why it stays empty. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { place } from "../core/urls.js";

/** A dataset with its version, whose answers the browser keeps. @param {{ name: string, version: string }} dataset */
export const versioned = ({ name, version }) => `${name}@${version}`;

/** Whether pictures of a split can be seen. @param {Dataset} dataset @param {string} split */
export const hasPictures = ({ pictures_shown, splits }, split) =>
  pictures_shown && (splits[split]?.pictures ?? 0) > 0;

/** Null where they can. @param {Dataset} dataset @param {string} split */
export const whyWithoutPictures = (dataset, split) =>
  hasPictures(dataset, split) ? null : dataset.splits[split]?.pictures ? "pictures not shown" : "no pictures";

/** The picture, or the reason why it is not there. @param {string} dataset As of `versioned`. @param {string} image */
export const picture = (dataset, image) =>
  h(
    "div.picture",
    shown(dataset, image, `The image ${image}`, (reason) => h("p.quiet", { role: "status" }, reason)),
  );

/** A small picture in a list. @param {string} dataset As of `versioned`. @param {string} image */
export const thumbnail = (dataset, image) =>
  h(
    "div.photo",
    shown(dataset, image, "", (reason) => h("span", { title: reason }, shortened(reason))),
  );

/**
 * It is made when somebody looks for the first time, and asked for again until it is there.
 *
 * @param {string} dataset @param {string} image @param {string} alt @param {(reason: string) => Node} explain
 */
function shown(dataset, image, alt, explain) {
  const src = place("/v1/datasets", dataset, "images", image, { size: "320" });
  const found = resource(() => src);
  const isBroken = signal(false);
  const onerror = () => (isBroken.value = true);
  return () => {
    if (isBroken.value) return explain("The picture cannot be shown");
    if (found.answer.value === null) return explain(found.refused.value?.message ?? "Loading the picture…");
    return h("img", { src, alt, loading: "lazy", onerror });
  };
}

const SHORT = /** @type {[RegExp, string][]} */ ([
  [/made small just now/, "being made"],
  [/cannot be decoded/, "cannot be decoded"],
  [/no picture/, "no picture"],
  [/^Loading/, "…"],
]);

/** @param {string} reason */
const shortened = (reason) => SHORT.find(([pattern]) => pattern.test(reason))?.[1] ?? "not shown";
