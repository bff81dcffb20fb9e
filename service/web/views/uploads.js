/** Uploads of models in parts, which go on where a connection broke. */

import { ask, Refused } from "../core/api.js";

const PART = 8 << 20; // bytes
const TRIES = 4; // of a part
const PAUSE = 1_000; // milliseconds before the second try; then twice as long each time

/**
 * @param {File} file
 * @param {(bytes: number) => void} progress Bytes that are stored.
 * @param {AbortSignal} signal
 * @returns {Promise<any>} The checkpoint, as the service describes it.
 */
export async function uploadCheckpoint(file, progress, signal) {
  const metadata = `kind ${btoa("checkpoint")}`;
  const begun = await request(
    "/v1/uploads",
    "POST",
    { "Upload-Length": String(file.size), "Upload-Metadata": metadata },
    signal,
  );
  const url = String(begun.headers.get("Location"));
  let answer = begun;
  for (let offset = 0; offset < file.size;) {
    answer = await sendPart(url, file, offset, signal);
    offset = Number(answer.headers.get("Upload-Offset"));
    progress(offset);
  }
  return ask(String(answer.headers.get("Content-Location")), { signal });
}

/** @param {string} url @param {File} file @param {number} offset @param {AbortSignal} signal */
async function sendPart(url, file, offset, signal) {
  for (let attempt = 1; ; attempt += 1) {
    const headers = { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
    try {
      return await request(url, "PATCH", headers, signal, file.slice(offset, offset + PART));
    } catch (error) {
      const isPassing = error instanceof Refused && (error.status === 0 || error.status >= 500);
      if (!isPassing || attempt === TRIES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE * 2 ** (attempt - 1)));
    const state = await request(url, "HEAD", {}, signal);
    offset = Number(state.headers.get("Upload-Offset"));
    if (offset === file.size) return state;
  }
}

/** @param {string} url @param {string} method @param {Record<string, string>} headers @param {AbortSignal} signal @param {Blob} [body] */
async function request(url, method, headers, signal, body) {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, "Tus-Resumable": "1.0.0" },
    body,
    signal,
  }).catch((error) => {
    throw signal.aborted ? error : new Refused(0, "unreachable", "The service does not answer.");
  });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.code ?? "", problem.detail ?? answer.statusText);
}
