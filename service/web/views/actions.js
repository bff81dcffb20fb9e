/** Actions on one evaluation: stop it, change its name, labels and note, delete it, copy its address. */

import { ask, Refused } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { go, place } from "../core/urls.js";
import { namingLabel, nameOrId } from "../parts/names.js";
import { splitPlace } from "../parts/places.js";
import { refusal } from "../parts/states.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */

/** @param {() => Evaluation} run @param {() => void} refresh */
export function evaluationActions(run, refresh) {
  const isCopied = signal(false);
  const url = () => place("/v1/evaluations", run().id);
  const change = (/** @type {unknown} */ json) => ask(url(), { method: "PATCH", json }).then(refresh);
  const stop = () => ask(`${url()}/cancel`, { method: "POST" }).then(refresh);
  const remove = () =>
    ask(url(), { method: "DELETE" }).then(() => go(splitPlace(run().dataset.name, run().dataset.split)));
  const copy = async () => {
    await navigator.clipboard?.writeText(location.href);
    isCopied.value = true;
  };
  const dialog = h("dialog", { "aria-labelledby": "act" });
  const open = (/** @type {HTMLElement} */ content) => {
    replace(dialog, content);
    dialog.showModal();
  };
  return h(
    "div.bar",
    button("Copy link", copy, () => (isCopied.value ? "Copied" : "Copy link")),
    button("Edit", () => open(editForm(run(), change, dialog))),
    () =>
      run().finished_at
        ? button("Delete…", () => open(deleteForm(run(), remove, dialog)))
        : button("Stop…", () => open(stopForm(run(), stop, dialog))),
    dialog,
  );
}

/** @param {string} text @param {() => void} press @param {() => string} [shown] */
const button = (text, press, shown) => h("button", { type: "button", onclick: press }, shown ?? text);

/**
 * A form in a dialog: it closes when the action has succeeded, and tells why it was refused.
 *
 * @param {HTMLDialogElement} dialog
 * @param {string} title
 * @param {{ text: string, act: (form: FormData) => Promise<unknown>, isReady?: () => boolean }} action
 * @param {...import("../core/dom.js").Child} content
 */
function actionForm(dialog, title, { text, act, isReady = () => true }, ...content) {
  const why = signal(/** @type {Refused | null} */ (null));
  const isActing = signal(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    isActing.value = true;
    try {
      await act(new FormData(/** @type {HTMLFormElement} */ (event.target)));
      dialog.close();
    } catch (error) {
      why.value = error instanceof Refused ? error : new Refused(0, "defect", String(error));
    }
    isActing.value = false;
  };
  return h(
    "form",
    { onsubmit: submit },
    h("h2", { id: "act" }, title),
    ...content,
    () => why.value && refusal(why.value),
    h(
      "div.bar",
      h("button.main", { disabled: () => isActing.value || !isReady() }, text),
      h("button", { type: "button", onclick: () => dialog.close() }, "Keep it as it is"),
    ),
  );
}

/** @param {Evaluation} run @param {() => Promise<unknown>} stop @param {HTMLDialogElement} dialog */
const stopForm = (run, stop, dialog) =>
  actionForm(
    dialog,
    `Stop ${nameOrId(run.labels, run.id)}?`,
    { text: "Stop it", act: stop },
    h("p", "Its unfinished tasks end. Results that other runs need too are computed all the same."),
  );

/** @param {Evaluation} run @param {() => Promise<unknown>} remove @param {HTMLDialogElement} dialog */
function deleteForm(run, remove, dialog) {
  const name = nameOrId(run.labels, run.id);
  const typed = signal("");
  return actionForm(
    dialog,
    `Delete ${name}?`,
    { text: "Delete it", act: remove, isReady: () => typed.value.trim() === name },
    h("p", "Its scores leave the leaderboard and its captions are deleted. That cannot be undone."),
    h(
      "p",
      h(
        "label",
        "Type its name to delete it: ",
        h("strong", name),
        " ",
        textField("typed", "", (text) => (typed.value = text)),
      ),
    ),
  );
}

/** @param {Evaluation} run @param {(json: unknown) => Promise<unknown>} change @param {HTMLDialogElement} dialog */
function editForm(run, change, dialog) {
  const naming = namingLabel(run.labels);
  const others = Object.entries(run.labels).filter(([label]) => label !== naming);
  const rows = h("div", others.map(labelRow));
  const act = (/** @type {FormData} */ form) => {
    const [names, values] = ["label", "value"].map((field) =>
      form.getAll(field).map((each) => String(each).trim()),
    );
    /** @type {Record<string, string | null>} */
    const labels = Object.fromEntries(others.map(([label]) => [label, null]));
    names.forEach((label, at) => {
      if (label) labels[label] = values[at] || null;
    });
    labels[naming] = String(form.get("name")).trim() || null;
    return change({ labels, note: String(form.get("note")).trim() || null });
  };
  return actionForm(
    dialog,
    "Name, labels and note",
    { text: "Save", act },
    h(
      "p",
      h("label", "Name ", textField("name", run.labels[naming] ?? "")),
      h("span.sub", `The label ${naming}.`),
    ),
    h(
      "fieldset",
      h("legend", "Labels"),
      rows,
      button("Add a label", () => rows.append(labelRow(["", ""]))),
    ),
    h(
      "p",
      h("label", "Note", h("textarea", { name: "note", rows: 3, maxlength: 2000, ".value": run.note ?? "" })),
    ),
  );
}

/** @param {string[]} label */
function labelRow([name, value]) {
  const row = h(
    "div.bar",
    textField("label", name, undefined, "Label"),
    textField("value", value, undefined, `Value of ${name || "the label"}`),
    h(
      "button",
      { type: "button", "aria-label": `Remove the label ${name}`, onclick: () => row.remove() },
      "×",
    ),
  );
  return row;
}

/** @param {string} name @param {string} value @param {(text: string) => void} [changed] @param {string} [told] */
const textField = (name, value, changed, told) =>
  h("input", {
    name,
    value,
    "aria-label": told,
    autocomplete: "off",
    spellcheck: "false",
    oninput: (/** @type {any} */ { target }) => changed?.(target.value),
  });
