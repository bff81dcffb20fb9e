/** A button that stops a run: it asks once more, since others of the team may wait for it. */

import { ask, refusedBy } from "../core/api.js";
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";

/** @param {string} name Of the run. @param {() => string} url @param {() => void} after */
export function stopButton(name, url, after) {
  const isSure = signal(false);
  const refused = signal("");
  const press = async () => {
    if (!isSure.value) return (isSure.value = true);
    await ask(`${url()}/cancel`, { method: "POST" }).then(after, (error) => {
      refused.value = refusedBy(error).message;
    });
    isSure.value = false;
  };
  const text = () => (isSure.value ? "Really stop?" : "Stop");
  return [
    h(
      "button",
      {
        type: "button",
        class: () => isSure.value && "bad",
        title: "Its unfinished tasks end. Results that other runs need are computed all the same.",
        "aria-label": () => `${text()} ${name}`,
        onclick: press,
        onblur: () => (isSure.value = false),
      },
      text,
    ),
    () => refused.value && h("span.bad", { role: "alert" }, ` ${refused.value}`),
  ];
}
