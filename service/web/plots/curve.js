/** A score over the steps of a training, with intervals and forecasts. */

import { h, s } from "../core/dom.js";
import { interval, number } from "../parts/numbers.js";
import {
  axes,
  clamped,
  extent,
  isOutside,
  linear,
  outside,
  padded,
  ticks,
  usualExtent,
  widened,
} from "./scale.js";
import { span } from "./whisker.js";

const WIDTH = 560;
const HEIGHT = 240;
const BOX = { left: 56, right: WIDTH - 14, top: 12, bottom: HEIGHT - 42 };

/** @typedef {import("./whisker.js").Score & { step: number, isWorse?: boolean, forecast?: import("./whisker.js").Score | null }} Point */

/**
 * @param {Point[]} points By step.
 * @param {{ name: string, best: number | null, said: string }} how `best`: the step that is marked. `said`: what those hear who do not see it.
 */
export function curve(points, { name, best, said }) {
  const steps = extent(points.map(({ step }) => step));
  const measured = usualExtent(points.flatMap((point) => [point.value, ...(point.interval ?? [])]));
  const range = padded(
    widened(
      measured,
      points.flatMap((point) => point.forecast?.interval ?? []),
    ),
    0.08,
  );
  const x = linear(padded(steps, 0.04), [BOX.left, BOX.right]);
  const y = clamped(range, [BOX.bottom, BOX.top]);
  const known = points.filter(({ value }) => value !== null);
  const line = known.map(({ step, value }, at) => `${at ? "L" : "M"}${x(step)} ${y(Number(value))}`).join("");
  const plot = s(
    "svg",
    { class: "plot curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
    axes({
      x,
      y,
      xTicks: ticks(steps, 8).filter(
        (at) => Number.isInteger(at) || !points.every(({ step }) => Number.isInteger(step)),
      ),
      yTicks: ticks(range, 4),
      xName: "step",
      yName: name,
      box: BOX,
    }),
    points.map(({ step, forecast }) => forecast && band(x(step), forecast, y)),
    s("path", { class: "line", d: line }),
    known.map((point) => [
      s(
        "g",
        { transform: `rotate(90 ${x(point.step)} 0)` },
        span(point, (value) => x(point.step) + y(value), 0),
      ),
      s(
        "circle",
        {
          class: [
            "point",
            point.step === best && "best",
            point.isWorse && "worse",
            isOutside(range, Number(point.value)) && "away",
          ],
          cx: x(point.step),
          cy: y(Number(point.value)),
          r: point.step === best ? 6 : 4,
        },
        s("title", `step ${point.step}: ${number(point.value, name)} ${interval(point.interval, name)}`),
      ),
    ]),
  );
  return h(
    "div",
    plot,
    outside(known.filter(({ value }) => isOutside(range, Number(value))).length, known.length),
  );
}

/** @param {number} at @param {import("./whisker.js").Score} forecast @param {(value: number) => number} y */
function band(at, { interval: ends }, y) {
  if (!ends || ends[0] === null || ends[1] === null) return null;
  return s("rect", {
    class: "forecast",
    x: at - 7,
    width: 14,
    y: y(ends[1]),
    height: Math.max(1, y(ends[0]) - y(ends[1])),
  });
}
