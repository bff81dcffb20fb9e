/** Dialogs that ask before something is changed: a title, an explanation, fields, and two buttons. */

import { refusedBy } from "../core/api.js";
import { h } from "../core/dom.js";
import { effect, scope, signal } from "../core/signals.js";
import { path } from "../core/urls.js";
import { refusal } from "./states.js";

/** @typedef {import("../core/api.js").Refused} Refused */
/**
 * @typedef {{ title: string, about?: Child, content?: Child, text: string, act: (form: FormData) => Promise<unknown>, isDanger?: boolean, isReady?: () => boolean, isDraft?: boolean }} Form
 *   `text`: of the button that acts. `isDraft`: changes of fields are not discarded without a question.
 */

/** Opens a dialog, which is there until it is closed or the view is left. @param {() => HTMLDialogElement} make */
export function openDialog(make) {
  const from = path.peek();
  const [dialog, end] = scope(() => {
    const made = make();
    effect(() => {
      if (path.value !== from) made.close();
    });
    return made;
  });
  dialog.addEventListener("close", () => {
    end();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Opens a form, which closes when its action has succeeded, and tells why it was refused. @param {() => Form} make */
export const openForm = (make) => openDialog(() => formDialog(make()));

/** @param {Form} form */
function formDialog({ title, about, content, text, act, isDanger, isReady = () => true, isDraft }) {
  const why = signal(/** @type {Refused | null} */ (null));
  const isActing = signal(false);
  const isWarned = signal(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    isActing.value = true;
    try {
      await act(new FormData(form));
      dialog.close();
    } catch (error) {
      why.value = refusedBy(error);
    }
    isActing.value = false;
  };
  const leave = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isDraft || isWarned.peek() || valuesOf(form) === before) dialog.close();
    else isWarned.value = true;
  };
  const isSecondOfDouble = (/** @type {MouseEvent} */ { detail }) => detail > 1;
  const form = h(
    "form",
    { onsubmit: submit },
    h("h2", { id: "dialog-title" }, title),
    about && h("p.quiet", about),
    content,
    () => why.value && refusal(why.value),
    () => isWarned.value && h("p.notice", { role: "alert" }, "The changes are not saved."),
    h(
      "div.ends",
      h("button", { type: "button", onclick: leave }, () => (isWarned.value ? "Discard changes" : "Cancel")),
      h(
        "button",
        {
          class: isDanger ? "danger" : "main",
          disabled: () => isActing.value || !isReady(),
          onclick: (/** @type {MouseEvent} */ event) => isSecondOfDouble(event) && event.preventDefault(),
        },
        text,
      ),
    ),
  );
  const before = valuesOf(form);
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", oncancel: leave }, form);
  return dialog;
}

/** @param {HTMLFormElement} form */
const valuesOf = (form) => JSON.stringify([...new FormData(form)]);
