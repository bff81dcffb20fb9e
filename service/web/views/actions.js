/** Actions on one evaluation: stop it, change its name, labels and note, delete it, copy its address. */

import { ask } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed, signal } from "../core/signals.js";
import { go, place } from "../core/urls.js";
import { copyButton } from "../parts/command.js";
import { openForm } from "../parts/dialogs.js";
import { announce } from "../parts/frame.js";
import { namingLabel, nameOrId } from "../parts/names.js";
import { splitPlace } from "../parts/places.js";
import { stopButton } from "./stop.js";
import { describeRun } from "./tasks.js";

/** @typedef {import("../parts/dialogs.js").Form} Form */

/** @param {() => Evaluation} run @param {() => void} refresh */
export function evaluationActions(run, refresh) {
  const isFinished = computed(() => run().finished_at !== null);
  const url = () => place("/v1/evaluations", run().id);
  const change = (/** @type {unknown} */ json) => ask(url(), { method: "PATCH", json }).then(refresh);
  return h(
    "div.bar",
    copyButton("Copy link", () => location.href),
    button("Edit", () => openForm(() => editForm(run(), change))),
    () =>
      isFinished.value
        ? button("Delete…", () => openForm(() => deleteForm(run())))
        : stopButton("this evaluation", url, refresh, () =>
            describeRun(nameOrId(run().labels, run().id), run()),
          ),
  );
}

/** @param {Child} text @param {() => void} press */
const button = (text, press) => h("button", { type: "button", onclick: press }, text);

/** @param {Evaluation} run @returns {Form} */
function deleteForm({ dataset, labels, note, id }) {
  const name = nameOrId(labels, id);
  const typed = signal("");
  const remove = async () => {
    await ask(place("/v1/evaluations", id), { method: "DELETE" });
    go(splitPlace(dataset.name, dataset.split));
    announce(`Deleted ${name}.`);
  };
  const type = (/** @type {any} */ { target }) => (typed.value = target.value);
  return {
    title: `Delete ${name}?`,
    about: "Its scores leave the leaderboard and its captions are deleted. That cannot be undone.",
    text: "Delete it",
    act: remove,
    isDanger: true,
    isReady: () => typed.value.trim() === name,
    content: [
      note && h("p.notice", h("strong", "Its note: "), note),
      field(["Type its name to delete it: ", h("strong", name)], textField("typed", "", { oninput: type })),
    ],
  };
}

/** A label above its field. @param {Child} label @param {HTMLElement} input @param {Child} [about] */
const field = (label, input, about) =>
  h("div.field", h("label", h("span", label), input), about && h("span.sub", about));

/** @param {Evaluation} run @param {(json: unknown) => Promise<unknown>} change @returns {Form} */
function editForm(run, change) {
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
  return {
    title: "Edit",
    about: "Name, labels and note can be changed at any time; scores stay as they are.",
    text: "Save",
    act,
    isDraft: true,
    content: [
      field("Name", textField("name", run.labels[naming] ?? ""), [
        "Stored as the label ",
        h("code", naming),
        ".",
      ]),
      h(
        "fieldset",
        h("legend", "Labels"),
        rows,
        button("Add a label", () => rows.append(labelRow(["", ""]))),
      ),
      field("Note", h("textarea", { name: "note", rows: 3, maxlength: 2000, ".value": run.note ?? "" })),
    ],
  };
}

/** @param {string[]} label */
function labelRow([name, value]) {
  const row = h(
    "div.naming",
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
