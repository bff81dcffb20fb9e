/** A button that stops a run after a question, since others of the team may wait for it. */

import { ask } from "../core/api.js";
import { h } from "../core/dom.js";
import { openForm } from "../parts/dialogs.js";
import { announce } from "../parts/frame.js";

const MEANING = "Its unfinished tasks end. Results that other runs need are computed all the same.";

/** @param {string} name Of the run. @param {() => string} url @param {() => void} after @param {() => string} [described] The run with its state. */
export function stopButton(name, url, after, described = () => name) {
  const stop = async () => {
    await ask(`${url()}/cancel`, { method: "POST" });
    after();
    announce(`Stopped ${name}.`);
  };
  const open = () =>
    openForm(() => ({
      title: `Stop ${described()}?`,
      about: MEANING,
      text: "Stop it",
      act: stop,
      isDanger: true,
    }));
  return h("button", { type: "button", title: MEANING, "aria-label": `Stop ${name}`, onclick: open }, "Stop");
}
