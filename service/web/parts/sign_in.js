/** Asking for a key, which the service keeps in a cookie that no script can read. */

import { ask, refusedBy } from "../core/api.js";
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";

export function signIn() {
  const said = signal("");
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const key = String(new FormData(form).get("key") ?? "").trim();
    try {
      await ask("/ui/session", { method: "POST", json: { key } });
      location.reload();
    } catch (error) {
      said.value = refusedBy(error).message;
    }
  };
  return h(
    "form.notice.sign-in",
    { onsubmit: submit },
    h(
      "label",
      "This service needs a key: ",
      h("input", {
        name: "key",
        type: "password",
        required: true,
        autocomplete: "current-password",
        spellcheck: "false",
      }),
    ),
    h("button", "Sign in"),
    h("span", { role: "alert" }, () => said.value),
  );
}

/** @returns {Promise<void>} */
export async function signOut() {
  await ask("/ui/session", { method: "DELETE" });
  location.reload();
}
