/** Points by two numbers; one scale for both axes, and a line where both numbers are equal. */

import { h, s } from "../core/dom.js";
import { count, number } from "../parts/numbers.js";
import { brush } from "./brush.js";
import { chart } from "./chart.js";
import { extent, isOutside, linear, outside, padded, ticks, usualExtent } from "./scale.js";

const WIDTH = 460;
const HEIGHT = 400;
const MANY = 200; // points, from which on they are drawn so that others are seen through them
const MOST_MARKS = 1000; // points that are elements; more are one path

/** @typedef {{ x: number, y: number, name?: string, ends?: [number, number] | null }} Point `ends`: of the interval of x. */
/** @typedef {[number, number, number, number]} Chosen From x to x, from y to y. */

/**
 * @param {Point[]} points
 * @param {{ xName: string, yName: string, name: string, what: string, chosen?: Chosen | null, choose?: ((chosen: Chosen | null) => void) | null, open?: ((name: string) => void) | null }} how `what`: what the points are, in the plural. Without `choose` nothing can be chosen. `open`: what a click on a point does.
 */
export function scatter(points, { xName, yName, name, what, chosen = null, choose = null, open = null }) {
  const all = points.flatMap(({ x, y, ends }) => [x, y, ...(ends ?? [])]);
  const inside = (/** @type {number} */ value) => Math.max(range[0], Math.min(range[1], value));
  const range = padded(usualExtent(all));
  const isAway = (/** @type {Point} */ point) => isOutside(range, point.x) || isOutside(range, point.y);
  const away = points.filter(isAway);
  const marked = points.length > MOST_MARKS ? away : points;
  const rest = points.length > MOST_MARKS ? points.filter((point) => !isAway(point)) : [];
  const axis = { range, ticks: ticks(range) };
  const { plot, box } = chart(
    {
      width: WIDTH,
      height: HEIGHT,
      x: { name: xName, ...axis },
      y: { name: yName, ...axis },
      said: `${name}: ${count(points.length)} ${what}`,
      kind: choose ? "brushed" : "",
    },
    ({ x, y }) => [
      s("line.zero", { x1: x(range[0]), y1: y(range[0]), x2: x(range[1]), y2: y(range[1]) }),
      s("path.cloud", { d: rest.map((point) => `M${x(point.x)} ${y(point.y)}h0`).join("") }),
      points.map(
        (point) =>
          point.ends &&
          s("line.ends", {
            x1: x(inside(point.ends[0])),
            x2: x(inside(point.ends[1])),
            y1: y(inside(point.y)),
            y2: y(inside(point.y)),
          }),
      ),
      marked.map((point) =>
        s(
          "circle",
          {
            class: ["point", open && "link", isAway(point) ? "away" : points.length > MANY && "many"],
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
    plot,
    outside(away.length, points.length),
    choose && h("p.quiet", toldOf(chosen, { xName, yName, what })),
  );
}

/** @param {Chosen | null} chosen @param {{ xName: string, yName: string, what: string }} names */
const toldOf = (chosen, { xName, yName, what }) =>
  chosen
    ? `${xName} ${number(chosen[0])} to ${number(chosen[1])}, ${yName} ${number(chosen[2])} to ${number(chosen[3])}`
    : [
        h("span.off-phone", `Draw a rectangle to list its ${what}.`),
        h("span.on-phone", "Tap a point to open it."),
      ];
