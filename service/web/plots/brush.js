/** Choosing a part of a plot with the pointer: a span, or a rectangle. */

import { s } from "../core/dom.js";

/**
 * @param {SVGSVGElement} plot In the units of its viewBox.
 * @param {{ left: number, right: number, top: number, bottom: number }} box Where one can choose.
 * @param {boolean} isSpan Whether the whole height is chosen.
 * @param {(from: [number, number] | null, to?: [number, number]) => void} choose The two corners when the pointer is let go; null: nothing.
 */
export function brush(plot, box, isSpan, choose) {
  const shade = s("rect", { class: "brush", "aria-hidden": "true" });
  let began = /** @type {[number, number] | null} */ (null);
  const place = (/** @type {PointerEvent} */ event) =>
    /** @type {[number, number]} */ (within(plot, box, event));
  plot.addEventListener("pointerdown", (event) => {
    if (event.button === 0) began = place(event);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!began) return;
    const now = place(event);
    if (!shade.isConnected && isNear(began, now)) return;
    plot.setPointerCapture(event.pointerId); // not before: a click is for what is drawn here
    plot.append(shade);
    draw(began, now);
  });
  plot.addEventListener("pointerup", (event) => {
    if (!began) return;
    const [from, to] = [began, place(event)];
    began = null;
    shade.remove();
    const isClick = Math.abs(from[0] - to[0]) < 3 && Math.abs(from[1] - to[1]) < 3;
    if (isClick) choose(null);
    else
      choose(
        [Math.min(from[0], to[0]), Math.min(from[1], to[1])],
        [Math.max(from[0], to[0]), Math.max(from[1], to[1])],
      );
  });
  plot.addEventListener("pointercancel", () => {
    began = null;
    shade.remove();
  });

  /** @param {[number, number]} from @param {[number, number]} to */
  function draw(from, to) {
    const top = isSpan ? box.top : Math.min(from[1], to[1]);
    const height = isSpan ? box.bottom - box.top : Math.abs(from[1] - to[1]);
    const sides = { x: Math.min(from[0], to[0]), y: top, width: Math.abs(from[0] - to[0]), height };
    for (const [name, value] of Object.entries(sides)) shade.setAttribute(name, String(value));
  }
}

/** Whether it is a click. @param {[number, number]} from @param {[number, number]} to */
const isNear = (from, to) => Math.abs(from[0] - to[0]) < 6 && Math.abs(from[1] - to[1]) < 6;

/** @param {SVGSVGElement} plot @param {{ left: number, right: number, top: number, bottom: number }} box @param {PointerEvent} event */
function within(plot, box, event) {
  const matrix = plot.getScreenCTM();
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix?.inverse());
  return [Math.max(box.left, Math.min(box.right, point.x)), Math.max(box.top, Math.min(box.bottom, point.y))];
}
