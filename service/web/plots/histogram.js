/** How many have which score; a span of scores can be chosen, of whole bars. */

import { s } from "../core/dom.js";
import { brush } from "./brush.js";
import { chart } from "./chart.js";
import { linear } from "./scale.js";

/**
 * @param {{ edges: number[], counts: number[] }} bars One edge more than counts.
 * @param {{ name: string, what: string, chosen: [number, number] | null, choose: (chosen: [number, number] | null) => void }} how `what`: what is counted.
 */
export function histogram({ edges, counts }, { name, what, chosen, choose }) {
  const range = /** @type {[number, number]} */ ([edges[0], edges[edges.length - 1]]);
  const { plot, box } = chart(
    {
      width: Math.max(300, Math.min(1200, innerWidth - 80)),
      height: 150,
      x: { name, range },
      y: { name: what, range: [0, Math.max(1, ...counts)] },
      said: `Number of ${what} by ${name}`,
      kind: "brushed",
    },
    ({ x, y, box }) =>
      counts.map((count, at) => {
        const isChosen = !chosen || (edges[at + 1] > chosen[0] && edges[at] < chosen[1]);
        return s(
          "rect",
          {
            class: ["bar", !isChosen && "faint"],
            x: x(edges[at]) + 0.5,
            width: Math.max(1, x(edges[at + 1]) - x(edges[at]) - 1),
            y: y(count),
            height: box.bottom - y(count),
          },
          s("title", String(count)),
        );
      }),
  );
  const valueAt = linear([box.left, box.right], range);
  const barAt = (/** @type {number} */ x) => {
    const at = edges.findLastIndex((edge) => edge <= valueAt(x));
    return Math.max(0, Math.min(counts.length - 1, at));
  };
  brush(plot, box, true, (from, to) =>
    choose(from && to ? [edges[barAt(from[0])], edges[barAt(to[0]) + 1]] : null),
  );
  return plot;
}
