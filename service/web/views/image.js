/** One image: its picture, its captions by several evaluations, and its references as the model sees them. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed } from "../core/signals.js";
import { place, query } from "../core/urls.js";
import { adder, filterChip } from "../parts/chips.js";
import { section, viewHead } from "../parts/layout.js";
import { titleOf } from "../parts/metrics.js";
import { evaluationLink, nameOrId } from "../parts/names.js";
import { number } from "../parts/numbers.js";
import { captionsPlace, evaluationPlace, evaluationTabs, runPlace, splitCrumbs } from "../parts/places.js";
import { imageSentence } from "../parts/sentences.js";
import { answered, following } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { legend, strip } from "../plots/strip.js";
import { neighbours } from "./neighbours.js";
import { picture } from "./pictures.js";
import { captionText, nearest, wordBadges } from "./wording.js";

/** @typedef {import("../core/api.js").Schemas} Schemas */
/** @typedef {Schemas["Evaluation"]} Evaluation */
/** @typedef {Schemas["References"]} References */
/** @typedef {Schemas["Caption"]} Caption */
/** @typedef {import("../parts/states.js").Resource} Resource */
/** @typedef {Schemas["TokenizedCaption"]} TokenizedCaption */

const MOST = 8; // evaluations beside each other

/** @param {string} id @param {string} image */
export function imageView(id, image) {
  const run = resource(() => place("/v1/evaluations", id));
  const references = resource(() => {
    const found = /** @type {Evaluation | null} */ (run.answer.value)?.dataset;
    return found
      ? place("/v1/datasets", `${found.name}@${found.version}`, "images", image, "references")
      : null;
  });
  const caption = resource(() => captionUrl(id, image));
  return {
    title: image,
    crumbs: () => [...crumbsOf(run.answer.value), [image]],
    content: h(
      "div",
      viewHead({
        name: image,
        sentence: () => imageSentence({ caption: caption.answer.value?.items[0] ?? null }),
        tabs: evaluationTabs(id),
      }),
      following(run, () =>
        following(references, () => parts(id, image, run.answer.value, references.answer.value, caption)),
      ),
    ),
  };
}

/** @param {string} id @param {string} image @param {Evaluation} run @param {References} references @param {Resource} caption */
const parts = (id, image, run, references, caption) => [
  neighbours(id, image, run, references),
  h(
    "div",
    { class: "beside" },
    references.has_picture && picture(`${run.dataset.name}@${run.dataset.version}`, image),
    captionsOf(id, image, run, caption),
  ),
  section("References", run.checkpoint || run.columns ? strips(id, image, run) : referenceList(references)),
];

/** @param {Evaluation | null} run @returns {import("../parts/frame.js").Crumb[]} */
const crumbsOf = (run) =>
  run
    ? [
        ...splitCrumbs(run.dataset),
        [nameOrId(run.labels, run.id), evaluationPlace(run.id)],
        ["captions", captionsPlace(run.id)],
      ]
    : [];

/** @param {string} id @param {string} image */
const captionUrl = (id, image) => place("/v1/evaluations", id, "captions", { image });

/** @param {References} of */
const referenceList = ({ references }) =>
  h(
    "ul",
    references.map((text) => h("li", h("bdi", text))),
  );

/** The captions of up to eight evaluations. @param {string} id @param {string} image @param {Evaluation} run @param {Resource} own */
function captionsOf(id, image, run, own) {
  const others = query("with");
  const under = query("under");
  const added = computed(() => others.value.split(",").filter(Boolean));
  const ids = computed(() => [...new Set([id, under.value, ...added.value].filter(Boolean))].slice(0, MOST));
  const latest = resource(() =>
    place("/v1/evaluations", {
      dataset: `${run.dataset.name}/${run.dataset.split}`,
      status: "succeeded",
      limit: 50,
    }),
  );
  const choices = () =>
    /** @type {Evaluation[]} */ (latest.answer.value?.items ?? [])
      .filter((each) => !ids.value.includes(each.id))
      .map((each) => [each.id, nameOrId(each.labels, each.id)]);
  const remove = (/** @type {string} */ other) => () =>
    (others.value = added.value.filter((each) => each !== other).join(","));
  return section(
    "Captions",
    () =>
      h(
        "ul",
        { class: "said panel" },
        ids.value.map((each) =>
          h(
            "li",
            captionOf(each, image, each === id ? own : null, added.value.includes(each) && remove(each)),
          ),
        ),
      ),
    () =>
      ids.value.length < MOST &&
      adder("+ evaluation", choices, (other) => (others.value = [...added.value, other].join(","))),
  );
}

/** @param {string} id @param {string} image @param {Resource | null} known @param {(() => void) | false} remove */
function captionOf(id, image, known, remove) {
  const found = known ?? resource(() => captionUrl(id, image));
  const run = resource(() => place("/v1/evaluations", id));
  return [
    h(
      "div",
      { class: "row" },
      () => evaluationLink(id, run.answer.value?.labels),
      remove && filterChip("remove", remove),
    ),
    answered(found, ({ items: [item] }) =>
      item
        ? [h("p", { class: "say" }, captionText(item)), nearest(item), h("p", wordBadges(item)), scores(item)]
        : h("p", { class: "quiet" }, "no caption"),
    ),
  ];
}

/** @param {Caption} item */
const scores = (item) =>
  h(
    "dl",
    { class: "scores" },
    Object.entries(item.scores).map(([name, value]) =>
      h("div", h("dt", { title: name }, titleOf(name)), h("dd", number(value, name))),
    ),
  );

/** The references as strips, under this checkpoint or another of its training. @param {string} id @param {string} image @param {Evaluation} run */
function strips(id, image, run) {
  const steps = training(run);
  const at = query("under", id); // the evaluation whose model is asked
  const found = resource(() => place("/v1/evaluations", at.value, "tokens", image));
  return [
    run.labels.run &&
      h("div", { class: "scrubber" }, () => steps.value.length > 1 && scrubber(steps.value, at, run)),
    legend(),
    answered(found, ({ captions }) =>
      captions.map((/** @type {TokenizedCaption} */ each, /** @type {number} */ place) => [
        h("h3", { class: "reference" }, h("bdi", each.text)),
        strip(each.tokens, `Reference ${place + 1}`),
      ]),
    ),
  ];
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
  return [
    h(
      "label",
      "Step ",
      h("input", {
        type: "range",
        min: 0,
        max: steps.length - 1,
        ".value": () => String(Math.max(0, place.value)),
        "aria-valuetext": () => `step ${steps[place.value]?.step ?? "not known"}`,
        oninput: (/** @type {any} */ { target }) => (at.value = steps[Number(target.value)].id),
      }),
      h("output", () => `${steps[place.value]?.step ?? ""} of`),
    ),
    h("a", { href: runPlace(run.dataset.name, run.dataset.split, run.labels.run) }, run.labels.run),
  ];
}
