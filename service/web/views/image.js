/** One image: its picture, its captions by several evaluations, and its references as the model sees them. */

import { resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { computed } from "../core/signals.js";
import { place, query } from "../core/urls.js";
import { adder, filterChip } from "../parts/chips.js";
import { section, view } from "../parts/layout.js";
import { byUsualOrder, titleOf } from "../parts/metrics.js";
import { byName, distinctNames, evaluationCrumbs, nameOrId } from "../parts/names.js";
import { number } from "../parts/numbers.js";
import { captionsPlace, evaluationPlace, evaluationTabs, runPlace } from "../parts/places.js";
import { imageSentence } from "../parts/sentences.js";
import { answered } from "../parts/states.js";
import { bySteps } from "../parts/steps.js";
import { legend, saysAll, strip } from "../plots/strip.js";
import { neighbours } from "./neighbours.js";
import { picture, versioned } from "./pictures.js";
import { captionText, nearest, wordBadges } from "./wording.js";

/** @typedef {Schemas["References"]} References */

const MOST = 8; // evaluations beside each other
const USUAL = "cider_d"; // where scores are not shown, one is enough

/** @param {string} id @param {string} image */
export function imageView(id, image) {
  const run = resource(() => place("/v1/evaluations", id));
  const references = resource(
    () =>
      run.answer.value &&
      place("/v1/datasets", versioned(run.answer.value.dataset), "images", image, "references"),
  );
  const caption = resource(() => captionUrl(id, image));
  return view(
    {
      title: image,
      crumbs: () => [
        ...evaluationCrumbs(run.answer.value),
        ...(run.answer.value ? [["captions", captionsPlace(id)]] : []),
        [image],
      ],
      sentence: () => imageSentence({ caption: caption.answer.value?.items[0] ?? null }),
      tabs: evaluationTabs(id, captionsPlace(id)),
      needs: [run, references],
    },
    () => parts(id, image, run.answer.value, references.answer.value, caption),
  );
}

/** @param {string} id @param {string} image @param {Evaluation} run @param {References} references @param {Resource} caption */
const parts = (id, image, run, references, caption) => [
  neighbours(id, image, run, references),
  h(
    "div.beside",
    references.has_picture && picture(versioned(run.dataset), image),
    captionsOf(id, image, run, caption),
  ),
  section("References", run.checkpoint || run.columns ? strips(id, image, run) : referenceList(references)),
];

/** @param {string} id @param {string} image */
const captionUrl = (id, image) => place("/v1/evaluations", id, "captions", { image });

/** @param {References} of */
const referenceList = ({ references }) =>
  h(
    "ul",
    references.map((text) => h("li", h("bdi", text))),
  );

/** The captions of up to eight evaluations. @param {string} id @param {string} image @param {Evaluation} run @param {Resource} own */
function captionsOf(id, image, { dataset: { name, split } }, own) {
  const others = query("with");
  const under = query("under");
  const added = computed(() => others.value.split(",").filter(Boolean));
  const ids = computed(() => [...new Set([id, under.value, ...added.value].filter(Boolean))].slice(0, MOST));
  const latest = resource(() =>
    place("/v1/evaluations", { dataset: `${name}/${split}`, status: "succeeded", limit: 50, metrics: USUAL }),
  );
  const known = computed(() => /** @type {Evaluation[]} */ (latest.answer.value?.items ?? []));
  const names = computed(() => distinctNames(known.value));
  const shownNames = computed(() => distinctNames(known.value.filter((each) => ids.value.includes(each.id))));
  const choices = () =>
    [...names.value].filter(([each]) => !ids.value.includes(each)).sort(([, a], [, b]) => byName(a, b));
  const remove = (/** @type {string} */ other) => () =>
    (others.value = added.value.filter((each) => each !== other).join(","));
  const captionOf = (/** @type {string} */ each) =>
    h(
      "li",
      h(
        "div.row",
        evaluationName(each, () => shownNames.value.get(each)),
        added.value.includes(each) && filterChip("remove", remove(each)),
      ),
      answered(each === id ? own : resource(() => captionUrl(each, image)), ({ items: [item] }) =>
        item ? said(item) : h("p.quiet", "no caption"),
      ),
    );
  return section(
    "Captions",
    () => h("ul.said.panel", ids.value.map(captionOf)),
    () =>
      ids.value.length < MOST &&
      adder("+ evaluation", choices, (other) => (others.value = [...added.value, other].join(","))),
  );
}

/** @param {string} id @param {() => string | undefined} name Of those shown, if it is one of the latest. */
function evaluationName(id, name) {
  const run = resource(() => place("/v1/evaluations", id, { metrics: USUAL }));
  return () =>
    h("a.main", { href: evaluationPlace(id), title: id }, name() ?? nameOrId(run.answer.value?.labels, id));
}

/** @param {Caption} item */
const said = (item) => [
  h("p.say", captionText(item)),
  nearest(item),
  h("p", wordBadges(item)),
  h(
    "dl.scores",
    byUsualOrder(Object.keys(item.scores)).map((name) =>
      h("div", h("dt", { title: name }, titleOf(name)), h("dd", number(item.scores[name], name))),
    ),
  ),
];

/** The references as strips, under this checkpoint or another of its training. @param {string} id @param {string} image @param {Evaluation} run */
function strips(id, image, run) {
  const steps = training(run);
  const at = query("under", id); // the evaluation whose model is asked
  const found = resource(() => place("/v1/evaluations", at.value, "tokens", image));
  return [
    run.labels.run && h("div.scrubber", () => steps.value.length > 1 && scrubber(steps.value, at, run)),
    legend(),
    answered(found, ({ captions }) =>
      captions.map(
        (/** @type {Schemas["TokenizedCaption"]} */ { text, tokens }, /** @type {number} */ at) => [
          h("h3", { class: saysAll(tokens, text) ? "hidden" : "reference" }, h("bdi", text)),
          strip(tokens, `Reference ${at + 1}`),
        ],
      ),
    ),
  ];
}

/** The evaluations of the same training that have tokens, by their step. @param {Evaluation} run */
function training({ labels: { run }, dataset: { name, split } }) {
  const found = resource(() =>
    run
      ? place("/v1/evaluations", {
          dataset: `${name}/${split}`,
          "label.run": run,
          limit: 200,
          metrics: USUAL,
        })
      : null,
  );
  return computed(() => {
    const items = /** @type {Evaluation[]} */ (found.answer.value?.items ?? []);
    return bySteps(items.filter(({ checkpoint, columns }) => checkpoint || columns));
  });
}

/** @param {{ id: string, step: number }[]} steps @param {{ value: string }} at @param {Evaluation} run */
function scrubber(steps, at, { dataset, labels }) {
  const index = computed(() => steps.findIndex(({ id }) => id === at.value));
  return [
    h(
      "label",
      "Step ",
      h("input", {
        type: "range",
        min: 0,
        max: steps.length - 1,
        ".value": () => String(Math.max(0, index.value)),
        "aria-valuetext": () => `step ${steps[index.value]?.step ?? "not known"}`,
        oninput: (/** @type {any} */ { target }) => (at.value = steps[Number(target.value)].id),
      }),
      h(
        "span",
        h("output", () => `${steps[index.value]?.step ?? ""}`),
        " of ",
        h("a", { href: runPlace(dataset.name, dataset.split, labels.run) }, labels.run),
      ),
    ),
  ];
}
