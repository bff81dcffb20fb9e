/** Points by two numbers. More than a thousand are drawn on a canvas. */

import { h, s } from "../core/dom.js";
import { number } from "../parts/numbers.js";
import { brush } from "./brush.js";
import { chart } from "./chart.js";
import { extent, isOutside, linear, outside, padded, ticks, usualExtent } from "./scale.js";

const WIDTH = 460;
const HEIGHT = 400;
const MOST_MARKS = 1000;

/** @typedef {{ x: number, y: number, name?: string }} Point */
/** @typedef {[number, number, number, number]} Chosen From x to x, from y to y. */

/**
 * Both axes have one scale, and a line where both numbers are equal.
 *
 * @param {Point[]} points
 * @param {{ xName: string, yName: string, name: string, what: string, chosen?: Chosen | null, choose?: ((chosen: Chosen | null) => void) | null, open?: ((name: string) => void) | null }} how `what`: what the points are, in the plural. Without `choose` nothing can be chosen. `open`: what a click on a point does.
 */
export function scatter(points, { xName, yName, name, what, chosen = null, choose = null, open = null }) {
  const all = points.flatMap(({ x, y }) => [x, y]);
  const range = padded(usualExtent(all));
  const isAway = (/** @type {Point} */ point) => isOutside(range, point.x) || isOutside(range, point.y);
  const isMany = points.length > MOST_MARKS;
  const axis = { range, ticks: ticks(range) };
  const { plot, x, y, box } = chart(
    {
      width: WIDTH,
      height: HEIGHT,
      x: { name: xName, ...axis },
      y: { name: yName, ...axis },
      said: `${name}: ${points.length.toLocaleString("en")} ${what}`,
      kind: choose ? "brushed" : "",
    },
    ({ x, y }) => [
      s("line.zero", { x1: x(range[0]), y1: y(range[0]), x2: x(range[1]), y2: y(range[1]) }),
      !isMany &&
        points.map((point) =>
          s(
            "circle",
            {
              class: ["point", open && "link", isAway(point) && "away"],
              cx: x(point.x),
              cy: y(point.y),
              r: 3.5,
              onclick: () => open?.(point.name ?? ""),
            },
            s("title", `${point.name ?? ""} ${number(point.x)}, ${number(point.y)}`),
          ),
        ),
      chosen &&
        s("rect.brush", {
          x: x(chosen[0]),
          y: y(chosen[3]),
          width: Math.max(1, x(chosen[1]) - x(chosen[0])),
          height: Math.max(1, y(chosen[2]) - y(chosen[3])),
        }),
    ],
  );
  if (choose) {
    const whole = padded(extent(all)); // the edges of the plot stand for what lies outside, too
    const value = (/** @type {number} */ place, /** @type {number} */ low, /** @type {number} */ high) =>
      place === low ? whole[0] : place === high ? whole[1] : linear([low, high], range)(place);
    brush(plot, box, false, (from, to) => {
      if (!from || !to) return choose(null);
      const [x0, x1] = [from, to].map(([left]) => value(left, box.left, box.right));
      const [y0, y1] = [to, from].map(([, top]) => value(top, box.bottom, box.top));
      choose([x0, x1, y0, y1]);
    });
  }
  return h(
    "div.layers",
    isMany && cloud(points, x, y, isAway),
    plot,
    outside(points.filter(isAway).length, points.length),
    choose && h("p.quiet", toldOf(chosen, { xName, yName, what })),
  );
}

/** @param {Chosen | null} chosen @param {{ xName: string, yName: string, what: string }} names */
const toldOf = (chosen, { xName, yName, what }) =>
  chosen
    ? `${xName} ${number(chosen[0])} to ${number(chosen[1])}, ${yName} ${number(chosen[2])} to ${number(chosen[3])}`
    : `Draw a rectangle to list its ${what}.`;

/** @param {Point[]} points @param {(value: number) => number} x @param {(value: number) => number} y @param {(point: Point) => boolean} isAway */
function cloud(points, x, y, isAway) {
  const canvas = h("canvas", { width: 2 * WIDTH, height: 2 * HEIGHT, "aria-hidden": "true" });
  requestAnimationFrame(() => {
    const drawn = canvas.getContext("2d");
    if (!drawn) return;
    drawn.scale(2, 2);
    drawn.fillStyle = drawn.strokeStyle = getComputedStyle(canvas).color;
    drawn.globalAlpha = 0.35;
    for (const point of points) {
      drawn[isAway(point) ? "strokeRect" : "fillRect"](x(point.x) - 1.5, y(point.y) - 1.5, 3, 3);
    }
  });
  return canvas;
}
