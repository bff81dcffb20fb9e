/** How many have which score; a span of scores can be chosen. */

import { s } from "../core/dom.js";
import { brush } from "./brush.js";
import { axes, linear, ticks } from "./scale.js";

const WIDTH = 640;
const HEIGHT = 170;
const BOX = { left: 56, right: WIDTH - 10, top: 8, bottom: HEIGHT - 42 };

/**
 * @param {{ edges: number[], counts: number[] }} bars One edge more than counts.
 * @param {{ name: string, chosen: [number, number] | null, choose: (chosen: [number, number] | null) => void }} how
 */
export function histogram({ edges, counts }, { name, chosen, choose }) {
  /** @type {[number, number]} */
  const range = [edges[0], edges[edges.length - 1]];
  const most = Math.max(1, ...counts);
  const x = linear(range, [BOX.left, BOX.right]);
  const y = linear([0, most], [BOX.bottom, BOX.top]);
  const plot = s(
    "svg",
    {
      class: "plot brushed",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `How many captions have which ${name}`,
    },
    axes({
      x,
      y,
      xTicks: ticks(range, 8),
      yTicks: ticks([0, most], 3),
      xName: name,
      yName: "captions",
      box: BOX,
    }),
    counts.map((count, at) => {
      const isChosen = !chosen || (edges[at + 1] > chosen[0] && edges[at] < chosen[1]);
      const side = { x: x(edges[at]) + 0.5, width: Math.max(1, x(edges[at + 1]) - x(edges[at]) - 1) };
      return s(
        "rect",
        { class: ["bar", !isChosen && "faint"], ...side, y: y(count), height: BOX.bottom - y(count) },
        s("title", `${count}`),
      );
    }),
  );
  const back = linear([BOX.left, BOX.right], range);
  const at = (/** @type {number} */ value) =>
    Math.max(
      0,
      Math.min(
        counts.length - 1,
        edges.findLastIndex((edge) => edge <= value),
      ),
    );
  brush(plot, BOX, true, (from, to) =>
    choose(from && to ? [edges[at(back(from[0]))], edges[at(back(to[0])) + 1]] : null),
  ); // whole bars
  return plot;
}
