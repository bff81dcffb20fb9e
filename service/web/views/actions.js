/** Actions on one evaluation: stop it, change its name, labels and note, delete it, copy its address. */

import { ask, Refused } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { computed, signal } from "../core/signals.js";
import { go, place } from "../core/urls.js";
import { copyButton } from "../parts/command.js";
import { namingLabel, nameOrId } from "../parts/names.js";
import { splitPlace } from "../parts/places.js";
import { refusal } from "../parts/states.js";
import { stopButton } from "./stop.js";

/** @typedef {{ dialog: HTMLDialogElement, title: string, text: string, act: (form: FormData) => Promise<unknown>, isReady?: () => boolean }} Action `text`: of the button. */

/** @param {() => Evaluation} run @param {() => void} refresh */
export function evaluationActions(run, refresh) {
  const isFinished = computed(() => run().finished_at !== null);
  const url = () => place("/v1/evaluations", run().id);
  const dialog = h("dialog", { "aria-labelledby": "act" });
  const open = (/** @type {HTMLElement} */ content) => {
    replace(dialog, content);
    dialog.showModal();
  };
  const edit = () =>
    open(editForm(run(), dialog, (json) => ask(url(), { method: "PATCH", json }).then(refresh)));
  const remove = () => open(deleteForm(run(), dialog, () => ask(url(), { method: "DELETE" })));
  return h(
    "div.bar",
    copyButton("Copy link", () => location.href),
    button("Edit", edit),
    () => (isFinished.value ? button("Delete…", remove) : stopButton("this evaluation", url, refresh)),
    dialog,
  );
}

/** @param {Child} text @param {() => void} press */
const button = (text, press) => h("button", { type: "button", onclick: press }, text);

/** A form in a dialog: it closes when the action has succeeded, and tells why it was refused. @param {Action} action @param {...Child} content */
function actionForm({ dialog, title, text, act, isReady = () => true }, ...content) {
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
    content,
    () => why.value && refusal(why.value),
    h(
      "div.bar",
      h("button.main", { disabled: () => isActing.value || !isReady() }, text),
      button("Keep it as it is", () => dialog.close()),
    ),
  );
}

/** @param {Evaluation} run @param {HTMLDialogElement} dialog @param {() => Promise<unknown>} remove */
function deleteForm({ dataset, labels, id }, dialog, remove) {
  const name = nameOrId(labels, id);
  const typed = signal("");
  return actionForm(
    {
      dialog,
      title: `Delete ${name}?`,
      text: "Delete it",
      act: () => remove().then(() => go(splitPlace(dataset.name, dataset.split))),
      isReady: () => typed.value.trim() === name,
    },
    h("p", "Its scores leave the leaderboard and its captions are deleted. That cannot be undone."),
    h(
      "p",
      h(
        "label",
        "Type its name to delete it: ",
        h("strong", name),
        " ",
        textField("typed", "", { oninput: (/** @type {any} */ { target }) => (typed.value = target.value) }),
      ),
    ),
  );
}

/** @param {Evaluation} run @param {HTMLDialogElement} dialog @param {(json: unknown) => Promise<unknown>} change */
function editForm(run, dialog, change) {
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
    { dialog, title: "Name, labels and note", text: "Save", act },
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
    textField("label", name, { "aria-label": "Label" }),
    textField("value", value, { "aria-label": `Value of ${name || "the label"}` }),
    h(
      "button",
      { type: "button", "aria-label": `Remove the label ${name}`, onclick: () => row.remove() },
      "×",
    ),
  );
  return row;
}

/** @param {string} name @param {string} value @param {import("../core/dom.js").Attributes} [more] */
const textField = (name, value, more) =>
  h("input", { name, value, autocomplete: "off", spellcheck: "false", ...more });
