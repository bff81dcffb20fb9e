/** The comparison of two evaluations: begun once, however often one looks, and followed to its end. */

import { ask, Refused, resource } from "../../core/api.js";
import { onChangeOf } from "../../core/live.js";
import { computed, effect, onEnd, signal } from "../../core/signals.js";
import { place } from "../../core/urls.js";

/** @param {() => string | null} a @param {() => string | null} b Ids; without both, nothing is begun. */
export function comparison(a, b) {
  const id = signal(/** @type {string | null} */ (null));
  const refused = signal(/** @type {Refused | null} */ (null));
  effect(() => {
    const [first, second] = [a(), b()];
    id.value = null;
    refused.value = null;
    if (!first || !second) return;
    const stop = new AbortController();
    onEnd(() => stop.abort());
    const headers = { "Idempotency-Key": `"page ${first} ${second}"` };
    const json = { a: first, b: second };
    ask("/v1/comparisons", { method: "POST", json, headers, signal: stop.signal }).then(
      (made) => (id.value = made.id),
      (error) => {
        if (error instanceof Refused) refused.value = error;
      },
    );
  });
  const found = resource(() => id.value && place("/v1/comparisons", id.value));
  onChangeOf(() => id.peek(), found.refresh);
  const why = computed(() => refused.value ?? found.refused.value);
  return { ...found, id, refused: why };
}
