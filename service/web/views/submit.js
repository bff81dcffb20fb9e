/**
 * A place where captions or a model are dropped: it tells what would be scored before anything is scored, sends
 * it with its progress, and goes to the evaluation.
 */

import { ask, Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { go, place } from "../core/urls.js";
import { fact, select } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { count, duration } from "../parts/numbers.js";
import { evaluationPlace } from "../parts/places.js";
import { plural } from "../parts/sentences.js";
import { answered, refusal } from "../parts/states.js";
import { uploadCheckpoint } from "./uploads.js";

/** @typedef {{ value: string }} Chosen */

const CAPTIONS = /\.(json|jsonl|ndjson|csv|tsv|txt)$/i; // all other files are models

/** @param {{ dataset?: string }} [of] `dataset`: name/split, if that is settled. */
export function dropZone({ dataset } = {}) {
  const file = signal(/** @type {File | null} */ (null));
  const isOver = signal(false);
  const chosen = signal(dataset ?? "");
  const field = h("input.hidden", {
    type: "file",
    "aria-label": "Captions or a model",
    onchange: () => take(field.files),
  });
  const take = (/** @type {FileList | null | undefined} */ files) => {
    if (files?.length) file.value = files[0];
    field.value = "";
  };
  const zone = h(
    "div",
    {
      class: () => ["drop", isOver.value && "over"],
      ondragover: (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        isOver.value = true;
      },
      ondragleave: () => (isOver.value = false),
      ondrop: (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        isOver.value = false;
        take(event.dataTransfer?.files);
      },
    },
    h("strong", "Drop captions or a model here to score them"),
    h("p.quiet", "COCO results JSON, JSONL, CSV · safetensors, a transformers folder as tar, an ONNX bundle"),
    h("button", { type: "button", onclick: () => field.click() }, "Choose a file"),
    field,
  );
  const cancel = () => (file.value = null);
  return h("section", { "aria-label": "Score a file" }, () =>
    file.value ? preview(file.value, chosen, !dataset, cancel) : zone,
  );
}

/** @param {File} file @param {Chosen} chosen @param {boolean} isOpen Whether the dataset is chosen here. @param {() => void} cancel */
function preview(file, chosen, isOpen, cancel) {
  const reveal = () => shown.scrollIntoView({ block: "nearest" });
  const shown = h(
    "div.card",
    { role: "group", "aria-label": `Score ${file.name}`, tabindex: "-1" },
    h("div.row", h("h3", file.name), h("button", { type: "button", onclick: cancel }, "Cancel")),
    isOpen && datasetField(chosen),
    CAPTIONS.test(file.name) ? captionsPreview(file, chosen, reveal) : modelPreview(file, chosen),
  );
  queueMicrotask(() => shown.focus()); // once it stands in the place of what had the focus
  return shown;
}

/** @param {Chosen} chosen */
function datasetField(chosen) {
  const known = resource(() => place("/v1/datasets", { limit: 100 }));
  const options = computed(() =>
    (known.answer.value?.items ?? []).flatMap((/** @type {Dataset} */ { name, splits }) =>
      Object.keys(splits).map((split) => [`${name}/${split}`, `${name}/${split}`]),
    ),
  );
  effect(() => {
    if (!chosen.value && options.value.length) chosen.value = options.value[0][0];
  });
  return h(
    "p",
    h(
      "label",
      "On ",
      select(() => options.value, chosen),
    ),
  );
}

/** @param {File} file @param {Chosen} chosen @param {() => void} reveal */
function captionsPreview(file, chosen, reveal) {
  const headers = { "Content-Type": "application/octet-stream" };
  const found = resource(
    () => chosen.value && place("/v1/inspections", { dataset: chosen.value, file: file.name }),
    { method: "POST", body: file, headers },
  );
  effect(() => {
    if (found.answer.value) requestAnimationFrame(reveal);
  });
  return answered(found, (/** @type {Schemas["CaptionInspection"]} */ told) => [
    h(
      "dl.facts",
      fact("Format", told.format),
      fact("Captions", count(told.captions.length)),
      fact("Images", `${count(told.images)} of ${count(told.of)} of ${chosen.value}`),
      fact("Metrics", told.metrics.map(titleOf).join(", ")),
    ),
    told.unknown_count > 0 &&
      h(
        "p.notice.bad",
        `${plural(told.unknown_count, "image")} ${told.unknown_count === 1 ? "is" : "are"} not in this split: ${told.unknown.join(", ")}. Choose another split, or mend the file.`,
      ),
    told.missing.length > 0 &&
      h(
        "p.quiet",
        `Without a caption: ${told.missing.join(", ")}${told.of - told.images > told.missing.length ? ", …" : ""}. Only images with a caption are scored.`,
      ),
    told.warnings.map(({ detail }) => h("p.quiet", detail)),
    sending(
      `Score ${plural(told.captions.length, "caption")}`,
      {
        dataset: chosen.value,
        captions: told.captions,
        subset: told.images < told.of,
        labels: { file: file.name },
      },
      told.unknown_count > 0 || told.images === 0,
    ),
  ]);
}

/** @param {File} file @param {Chosen} chosen */
function modelPreview(file, chosen) {
  const sent = signal({ done: 0, began: 0 });
  const stop = signal(/** @type {AbortController | null} */ (null));
  const checkpoint = signal(/** @type {any} */ (null));
  onEnd(() => stop.peek()?.abort());
  const upload = async () => {
    const controller = (stop.value = new AbortController());
    sent.value = { done: 0, began: performance.now() };
    const progress = (/** @type {number} */ done) => (sent.value = { ...sent.peek(), done });
    try {
      checkpoint.value = await uploadCheckpoint(file, progress, controller.signal);
    } finally {
      stop.value = null;
    }
  };
  return [
    h(
      "p",
      `A model of ${megabytes(file.size)}. The service checks it once it is there; nothing in it is executed.`,
    ),
    () => !checkpoint.value && acting("Upload it", upload),
    () => stop.value && uploading(file, sent, stop.value),
    () => checkpoint.value && described(checkpoint.value, file, chosen),
  ];
}

/** @param {File} file @param {{ value: { done: number, began: number } }} sent @param {AbortController} stop */
const uploading = (file, sent, stop) =>
  h(
    "p.bar",
    h("progress", { max: file.size, ".value": () => sent.value.done, "aria-label": "Uploaded" }),
    h("span", () => {
      const { done, began } = sent.value;
      const left = done > 0 ? ((performance.now() - began) / 1000 / done) * (file.size - done) : null;
      return `${megabytes(done)} of ${megabytes(file.size)}${left === null ? "" : `, ${duration(left)} left`}`;
    }),
    h("button", { type: "button", onclick: () => stop.abort() }, "Stop"),
  );

/** @param {any} checkpoint As the service describes it. @param {File} file @param {Chosen} chosen */
const described = (checkpoint, file, chosen) => [
  h(
    "dl.facts",
    fact("Format", checkpoint.format),
    fact("Architecture", checkpoint.architecture),
    fact("Parameters", count(checkpoint.parameters)),
    fact("State", checkpoint.state),
  ),
  checkpoint.problem && h("p.notice.bad", checkpoint.problem.detail),
  sending(
    `Score it on ${chosen.value}`,
    { dataset: chosen.value, checkpoint: checkpoint.digest, labels: { file: file.name } },
    checkpoint.state === "invalid",
  ),
];

/** @param {string} text @param {unknown} request Of an evaluation. @param {boolean} isRefused */
const sending = (text, request, isRefused) =>
  acting(
    text,
    async () => {
      const { id } = await ask("/v1/evaluations", { method: "POST", json: request });
      go(evaluationPlace(id));
    },
    isRefused,
  );

/** A button, and why what it does was refused. @param {string} text @param {() => Promise<void>} act @param {boolean} [isRefused] Whether it cannot be pressed. */
function acting(text, act, isRefused = false) {
  const why = signal(/** @type {Refused | null} */ (null));
  const isActing = signal(false);
  const press = async () => {
    isActing.value = true;
    why.value = null;
    try {
      await act();
    } catch (error) {
      if (error instanceof Refused) why.value = error;
    }
    isActing.value = false;
  };
  return [
    () => why.value && refusal(why.value),
    h("button.main", { type: "button", disabled: () => isRefused || isActing.value, onclick: press }, () =>
      isActing.value ? "Sending…" : text,
    ),
  ];
}

/** @param {number} bytes */
const megabytes = (bytes) =>
  `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: bytes < 1e7 ? 1 : 0 })} MB`;
