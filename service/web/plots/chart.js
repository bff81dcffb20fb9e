/** The frame of all plots: axes with names and round ticks, and in it what is drawn on its scales. */

import { s } from "../core/dom.js";
import { axes, clamped, ticks } from "./scale.js";

/** @typedef {import("./scale.js").Range} Range */
/** @typedef {{ name: string, range: Range, ticks?: number[] }} Axis */
/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */
/** @typedef {{ x: import("./scale.js").Scale, y: import("./scale.js").Scale, box: Box }} Scales Values outside the ranges are at the edge. */

/**
 * @param {{ width: number, height: number, x: Axis, y: Axis, said: string, kind?: string }} how `said`: for those who do not see it.
 * @param {(scales: Scales) => import("../core/dom.js").Child} draw
 */
export function chart({ width, height, x, y, said, kind }, draw) {
  const box = { left: 56, right: width - 12, top: 10, bottom: height - 40 };
  const scales = {
    x: clamped(x.range, [box.left, box.right]),
    y: clamped(y.range, [box.bottom, box.top]),
    box,
  };
  const plot = s(
    "svg",
    { class: ["plot", kind], viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    axes({
      ...scales,
      xTicks: x.ticks ?? ticks(x.range, 8),
      yTicks: y.ticks ?? ticks(y.range, 4),
      xName: x.name,
      yName: y.name,
    }),
    draw(scales),
  );
  return { plot, ...scales };
}
