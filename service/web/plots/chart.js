/** The frame of all plots: axes with names and round ticks, and in it what is drawn on its scales. */

import { s } from "../core/dom.js";
import { clamped, ticks } from "./scale.js";

/** @typedef {import("./scale.js").Range} Range */
/** @typedef {{ name: string, range: Range, ticks?: number[] }} Axis */
/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */
/** @typedef {{ x: import("./scale.js").Scale, y: import("./scale.js").Scale, box: Box }} Scales Values outside the ranges are at the edge. */

/**
 * @param {{ width: number, height: number, x: Axis, y: Axis, said: string, kind?: string }} how `said`: for those who do not see it.
 * @param {(scales: Scales) => Child} draw
 */
export function chart({ width, height, x, y, said, kind }, draw) {
  const box = { left: y.name ? 56 : 44, right: width - 12, top: 10, bottom: height - 40 };
  const scales = {
    x: clamped(x.range, [box.left, box.right]),
    y: clamped(y.range, [box.bottom, box.top]),
    box,
  };
  const plot = s(
    "svg",
    { class: ["plot", kind], viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    axes(x, y, scales),
    draw(scales),
  );
  return { plot, ...scales };
}

/** Lines and numbers at two sides. @param {Axis} across @param {Axis} up @param {Scales} scales */
function axes(across, up, { x, y, box: { left, right, top, bottom } }) {
  const [centre, middle] = [(left + right) / 2, (top + bottom) / 2];
  return s(
    "g.axes",
    { "aria-hidden": "true" },
    (across.ticks ?? ticks(across.range, 8)).map((at) => [
      s("line", { x1: x(at), x2: x(at), y1: top, y2: bottom }),
      text(x(at), bottom + 14, "middle", tick(at)),
    ]),
    (up.ticks ?? ticks(up.range, 4)).map((at) => [
      s("line", { x1: left, x2: right, y1: y(at), y2: y(at) }),
      text(left - 5, y(at) + 4, "end", tick(at)),
    ]),
    text(centre, bottom + 30, "middle", across.name),
    s("g", { transform: `rotate(-90 12 ${middle})` }, text(12, middle, "middle", up.name)),
  );
}

/** @param {number} x @param {number} y @param {string} anchor @param {string} content */
const text = (x, y, anchor, content) => s("text", { x, y, "text-anchor": anchor }, content);

/** A round number in as few digits as it has. @param {number} value */
function tick(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 0.0001 || size >= 1e6)
    ? value.toExponential()
    : value.toLocaleString("en", { maximumFractionDigits: 6 });
}
