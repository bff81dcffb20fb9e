/** One image: its references under the model, word by word, and what evaluations say of it. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onKey } from "../core/keyboard.js";
import { computed } from "../core/signals.js";
import { go, place, query } from "../core/urls.js";
import { evaluationLink, nameOrId } from "../parts/names.js";
import { number } from "../parts/numbers.js";
import { captionsPlace, evaluationPlace, imagePlace, runPlace } from "../parts/places.js";
import { answered, following } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { marked } from "../parts/words.js";
import { legend, strip } from "../plots/strip.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["TokenizedCaption"]} Reference */

const MOST = 8;

/** @param {string} id @param {string} image */
export function imageView(id, image) {
  const run = resource(() => place("/v1/evaluations", id));
  return {
    title: image,
    content: h(
      "div",
      h("h1", image),
      h(
        "p",
        "In ",
        h("a", { href: evaluationPlace(id) }, () => nameOrId(run.answer.value?.labels, id)),
        " · ",
        h("a", { href: captionsPlace(id) }, "all its captions"),
      ),
      following(run, () => parts(id, image, run.answer.value)),
    ),
  };
}

/** @param {string} id @param {string} image @param {Evaluation} run */
function parts(id, image, run) {
  const dataset = `${run.dataset.name}@${run.dataset.version}`;
  const found = resource(() => place("/v1/datasets", dataset, "images", image, "references"));
  return [
    neighbours(id, () => found.answer.value),
    h(
      "div",
      { class: "beside" },
      h("div", captionsOf(id, image, run)),
      () => found.answer.value?.has_picture && picture(dataset, image),
    ),
    run.checkpoint || run.columns
      ? words(id, image, run)
      : h(
          "section",
          { "aria-label": "References" },
          h("h2", "References"),
          answered(found, ({ references }) =>
            h(
              "ul",
              references.map((/** @type {string} */ text) => h("li", h("bdi", text))),
            ),
          ),
        ),
  ];
}

/**
 * Made the first time that somebody looks: until then it is asked for again, and its place is kept free.
 *
 * @param {string} dataset With its version, so that the browser keeps the answer. @param {string} image
 */
function picture(dataset, image) {
  const url = place("/v1/datasets", dataset, "images", image, { size: "320" });
  const found = resource(() => url);
  return h("div", { class: "picture" }, () =>
    found.answer.value === null
      ? h("p", { class: "quiet", role: "status" }, found.refused.value?.message ?? "Loading the picture…")
      : h("img", { src: url, alt: `The image ${image}` }),
  );
}

/** The images before and after it, in the order of the dataset. @param {string} id @param {() => any} told */
function neighbours(id, told) {
  const place = (/** @type {"before" | "after"} */ side) => {
    const name = told()?.[side];
    return typeof name === "string" ? imagePlace(id, name) + location.search : null;
  };
  const step = (/** @type {"before" | "after"} */ side) => () => {
    const to = place(side);
    if (to) go(to);
  };
  onKey("j", "the next image", step("after"));
  onKey("k", "the image before", step("before"));
  const link = (/** @type {"before" | "after"} */ side, /** @type {string} */ text) => () =>
    place(side) && h("a", { href: place(side) }, text);
  return h("p", link("before", "← the image before"), " ", link("after", "the next image →"));
}

/** The captions of up to eight evaluations. @param {string} id @param {string} image @param {Evaluation} run */
function captionsOf(id, image, run) {
  const others = query("with");
  const under = query("under");
  const added = computed(() => others.value.split(",").filter(Boolean));
  const ids = computed(() => [...new Set([id, under.value, ...added.value].filter(Boolean))].slice(0, MOST));
  const first = resource(() => place("/v1/evaluations", id, "captions", { image }));
  const latest = resource(() =>
    place("/v1/evaluations", {
      dataset: `${run.dataset.name}/${run.dataset.split}`,
      status: "succeeded",
      limit: 50,
    }),
  );
  const field = h("input", {
    placeholder: "ev_…",
    list: "evaluations",
    spellcheck: "false",
    "aria-label": "Another evaluation",
  });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    others.value = [...added.value, field.value.trim()].join(",");
    field.value = "";
  };
  return h(
    "section",
    { "aria-label": "Captions" },
    h("h2", "Captions"),
    () =>
      h(
        "ul",
        { class: "said" },
        ids.value.map((each) => h("li", said(each, image, each === id ? null : first))),
      ),
    () =>
      ids.value.length < MOST &&
      h(
        "form",
        { class: "asked", onsubmit: add },
        h("label", "Also show ", field),
        h("datalist", { id: "evaluations" }, () => offered(latest.answer.value?.items ?? [], ids.value)),
        h("button", "Add"),
      ),
  );
}

/** Those of the same split that are not shown. @param {Evaluation[]} latest @param {string[]} shown */
const offered = (latest, shown) =>
  latest
    .filter(({ id }) => !shown.includes(id))
    .map(({ id, labels }) => h("option", { value: id }, nameOrId(labels, id)));

/** Words are marked that the first one does not have. @param {string} id @param {string} image @param {import("../parts/states.js").Resource | null} first */
function said(id, image, first) {
  const found = resource(() => place("/v1/evaluations", id, "captions", { image }));
  const run = resource(() => place("/v1/evaluations", id));
  const caption = (/** @type {string} */ text) => {
    const other = first?.answer.value?.items[0]?.caption;
    return other === undefined ? text : marked(text, other);
  };
  return [
    () => evaluationLink(id, run.answer.value?.labels),
    answered(found, ({ items: [item] }) =>
      item
        ? [
            h(
              "p",
              { class: "caption" },
              h("bdi", () => caption(item.caption)),
            ),
            h(
              "p",
              { class: "quiet" },
              Object.entries(item.scores)
                .map(([name, value]) => `${name} ${number(value, name)}`)
                .join(" · "),
            ),
          ]
        : h("p", { class: "quiet" }, "no caption"),
    ),
  ];
}

/** The references as strips, under this checkpoint or another of its training. @param {string} id @param {string} image @param {Evaluation} run */
function words(id, image, run) {
  const steps = training(run);
  const at = query("under", id); // the evaluation whose model is asked
  const found = resource(() => place("/v1/evaluations", at.value, "tokens", image));
  return h(
    "section",
    { "aria-label": "References" },
    h("h2", "References, as the model sees them"),
    () => steps.value.length > 1 && scrubber(steps.value, at, run),
    legend(),
    answered(found, ({ captions }) =>
      captions.map((/** @type {Reference} */ each, /** @type {number} */ place) => [
        h("h3", { class: "reference" }, h("bdi", each.text)),
        strip(each.tokens, `Reference ${place + 1}`),
      ]),
    ),
  );
}

/** The evaluations of the same training that have tokens, by their step. @param {Evaluation} run */
function training(run) {
  const { run: name } = run.labels;
  const { name: dataset, split } = run.dataset;
  const found = resource(() =>
    name ? place("/v1/evaluations", { dataset: `${dataset}/${split}`, "label.run": name, limit: 200 }) : null,
  );
  return computed(() =>
    bySteps(
      (found.answer.value?.items ?? []).filter(
        (/** @type {Evaluation} */ each) => each.checkpoint || each.columns,
      ),
    ),
  );
}

/** @param {{ id: string, step: number }[]} steps @param {{ value: string }} at @param {Evaluation} run */
function scrubber(steps, at, run) {
  const place = computed(() => steps.findIndex(({ id }) => id === at.value));
  return h(
    "p",
    { class: "scrubber" },
    h(
      "label",
      "Step ",
      h("input", {
        type: "range",
        min: 0,
        max: steps.length - 1,
        ".value": () => String(Math.max(0, place.value)),
        "aria-valuetext": () => `step ${steps[place.value]?.step ?? "not known"}`,
        oninput: (/** @type {any} */ { target }) => {
          at.value = steps[Number(target.value)].id;
        },
      }),
      h("output", () => ` ${steps[place.value]?.step ?? ""} of `),
    ),
    h(
      "a",
      { href: runPlace(run.dataset.name, run.dataset.split, run.labels.run) },
      `the training ${run.labels.run}`,
    ),
  );
}
