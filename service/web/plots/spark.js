/** A training's scores as a small curve without axes: its last point is marked, and the steps that fell. */

import { s } from "../core/dom.js";
import { extent, linear } from "./scale.js";

const WIDTH = 298;
const HEIGHT = 56;
const ROOM = 6; // pixels at each side

/** @param {{ step: number, value: number | null, is_fallen: boolean }[]} steps @param {string} said For those who do not see it. */
export function spark(steps, said) {
  const known = steps.filter(({ value }) => value !== null);
  const x = linear(extent(known.map(({ step }) => step)), [ROOM, WIDTH - ROOM]);
  const y = linear(extent(known.map(({ value }) => value)), [HEIGHT - ROOM, ROOM]);
  const places = known.map(({ step, value }) => [x(step), y(Number(value))]);
  return s(
    "svg",
    { class: "plot spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
    s("path", { class: "line", d: places.map((place, at) => `${at ? "L" : "M"}${place}`).join("") }),
    known.map(({ is_fallen }, at) => {
      if (!is_fallen && at < known.length - 1) return null;
      const [cx, cy] = places[at];
      return s("circle", { class: ["point", is_fallen && "fallen"], cx, cy, r: is_fallen ? 5 : 4 });
    }),
  );
}
