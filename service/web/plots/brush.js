/** Choosing a part of a plot with the pointer: a span, or a rectangle. */

import { s } from "../core/dom.js";

/** @typedef {[number, number]} Point */

const CLICK = 6; // units of the plot within which the pointer has not moved

/**
 * @param {SVGSVGElement} plot In the units of its viewBox.
 * @param {import("./chart.js").Box} box Where one can choose.
 * @param {boolean} isSpan Whether the whole height is chosen.
 * @param {(from: Point | null, to?: Point) => void} choose The two corners when the pointer is let go; null after a click.
 */
export function brush(plot, box, isSpan, choose) {
  const shade = s("rect.brush", { "aria-hidden": "true" });
  let began = /** @type {Point | null} */ (null);
  const end = () => {
    began = null;
    shade.remove();
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.button === 0) began = pointOf(plot, box, event);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!began) return;
    const [low, high] = corners(began, pointOf(plot, box, event));
    if (!shade.isConnected && isClick(low, high)) return;
    plot.setPointerCapture(event.pointerId); // not before: a click is for what is drawn here
    plot.append(shade);
    const [top, bottom] = isSpan ? [box.top, box.bottom] : [low[1], high[1]];
    const sides = { x: low[0], y: top, width: high[0] - low[0], height: bottom - top };
    for (const [name, value] of Object.entries(sides)) shade.setAttribute(name, String(value));
  });
  plot.addEventListener("pointerup", (event) => {
    if (!began) return;
    const [low, high] = corners(began, pointOf(plot, box, event));
    end();
    if (isClick(low, high)) choose(null);
    else choose(low, high);
  });
  plot.addEventListener("pointercancel", end);
}

/** The lower and the upper corner. @param {Point} one @param {Point} other @returns {[Point, Point]} */
const corners = (one, other) => [
  [Math.min(one[0], other[0]), Math.min(one[1], other[1])],
  [Math.max(one[0], other[0]), Math.max(one[1], other[1])],
];

/** @param {Point} low @param {Point} high */
const isClick = (low, high) => high[0] - low[0] < CLICK && high[1] - low[1] < CLICK;

/** @param {SVGSVGElement} plot @param {import("./chart.js").Box} box @param {PointerEvent} event @returns {Point} */
function pointOf(plot, box, event) {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM()?.inverse());
  return [Math.max(box.left, Math.min(box.right, x)), Math.max(box.top, Math.min(box.bottom, y))];
}
