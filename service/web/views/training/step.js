/** What a step of a training changed: by how much, on which words and images, against other checkpoints. */

import { resource } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { computed, unread } from "../../core/signals.js";
import { change, place, query } from "../../core/urls.js";
import { chip } from "../../parts/chips.js";
import { section } from "../../parts/layout.js";
import { titleOf } from "../../parts/metrics.js";
import { probability, count, interval, signed } from "../../parts/numbers.js";
import { captionsPlace, comparePlace, evaluationPlace, imagePlace } from "../../parts/places.js";
import { plural, worstFalls } from "../../parts/sentences.js";
import { answered, badge, refusalOf, verdictBadge } from "../../parts/states.js";
import { differing } from "../../parts/words.js";
import { comparison } from "../compared/comparison.js";
import { hasPictures, thumbnail } from "../pictures.js";

/** @typedef {import("../../parts/steps.js").Step} Step */
/** @typedef {import("../training.js").Shown} Shown */
/** @typedef {Schemas["Moved"]} Moved */
/** @typedef {{ key: string, name: string, item: Step }} Rival Another checkpoint: of the step before, or of an overlay. */
/** @typedef {ReturnType<typeof comparison>} Found */

const BEFORE = "before";
const MOST_IMAGES = 6;
const MOST_WORDS = 6;

/** @param {Shown} of */
export function stepPanel(of) {
  const shown = computed(() => [of.open.value?.id, ...rivals(of).map(({ item }) => item.id)].join(" "));
  return () => {
    shown.value; // others are drawn when other checkpoints are compared, not whenever a score is told again
    return unread(
      () =>
        of.open.value &&
        h("aside.panel.card.step", { "aria-label": "Details of a step" }, details(of, of.open.value)),
    );
  };
}

/** @param {Shown} of @returns {Rival[]} */
function rivals({ steps, overlays, open }) {
  const item = open.value;
  if (!item || item.status !== "succeeded") return [];
  const done = steps.value.filter(({ status }) => status === "succeeded");
  const before = done[done.indexOf(item) - 1];
  const own = before ? [{ key: BEFORE, name: `step ${count(before.step)}`, item: before }] : [];
  const others = overlays.value.flatMap(({ run, steps }) => {
    const same = steps.find(({ step, status }) => step === item.step && status === "succeeded");
    return same ? [{ key: run, name: `${run}, step ${count(same.step)}`, item: same }] : [];
  });
  return [...own, ...others];
}

/** @param {Shown} of @param {Step} item */
function details(of, item) {
  const all = rivals(of).map((rival) => ({
    ...rival,
    found: comparison(
      () => item.id,
      () => rival.item.id,
    ),
  }));
  const metric = () => comparable(of.metrics.value, item);
  const against = query("against");
  const usual = usualRival(item, metric());
  const chosen = computed(() => all.find(({ key }) => key === (against.value || usual)) ?? all[0] ?? null);
  const close = () => change({ step: null, against: null });
  return [
    h(
      "div.row",
      h("h2", `Step ${count(item.step)} `, badge(item.status), " ", verdictBadge(item.verdict)),
      h("button", { type: "button", "aria-label": "Close the details", onclick: close }, "×"),
    ),
    h(
      "p",
      h("a", { href: evaluationPlace(item.id), title: item.id }, "scores"),
      " · ",
      h("a", { href: captionsPlace(item.id) }, "captions"),
      () =>
        chosen.value && [
          " · ",
          h("a", { href: comparePlace(item.id, chosen.value.item.id) }, "full comparison"),
        ],
    ),
    !all.length &&
      h("p.quiet", "There is no step before it to compare with. Overlay a run that has this step, too."),
    h(
      "div.rivals",
      { role: "group", "aria-label": "Compared with" },
      all.map((rival) => difference(rival, metric, chosen, () => change({ against: rival.key }))),
    ),
    () => chosen.value && evidence(item, chosen.value, metric()),
  ];
}

/** The first metric that captions are compared by. @param {string[]} metrics @param {Step} item */
const comparable = (metrics, item) =>
  metrics.find((metric) => item.scores[metric]?.family === "postgen") ?? "cider_d";

/** The checkpoint that it is behind most clearly. @param {Step} item @param {string} metric */
function usualRival({ falls }, metric) {
  const [worst] = worstFalls(falls, metric);
  return worst?.beside?.labels.run ?? BEFORE;
}

/** @param {Rival & { found: Found }} rival @param {() => string} metric @param {{ value: Rival | null }} chosen @param {() => void} press */
const difference = ({ key, name, found }, metric, chosen, press) =>
  h(
    "div.row",
    chip(["against ", name], () => chosen.value?.key === key, press),
    h("span.number", () => {
      const score = found.answer.value?.scores[metric()];
      if (found.refused.value) return h("span.quiet", "not compared");
      if (!score)
        return h("span.quiet", { "aria-busy": !found.answer.value?.finished_at && "true" }, "comparing…");
      return [
        h("strong", signed(score.difference, metric())),
        ` ${interval(score.interval, metric())} `,
        h("span.quiet", probability(score.p)),
      ];
    }),
  );

/** Words and images of a comparison that has ended. @param {Step} item @param {Rival & { found: Found }} rival @param {string} metric */
function evidence(item, { found, item: other, name }, metric) {
  const isDone = computed(() => found.answer.value?.status === "succeeded");
  const sort = item.scores[metric]?.higher_is_better === false ? "-difference" : "difference";
  const part = (/** @type {string} */ name, /** @type {Record<string, string | number>} */ asked) =>
    resource(() =>
      isDone.value ? place("/v1/comparisons", String(found.id.value), name, { metric, ...asked }) : null,
    );
  const words = part("words", { limit: MOST_WORDS });
  const images = part("images", { limit: MOST_IMAGES, sort });
  const split = item.dataset.split;
  const dataset = `${item.dataset.name}@${item.dataset.version}`;
  const list = () => ({ with: other.id, list: "comparison", comparison: found.id.value, metric, sort });
  const kept = resource(() => place("/v1/datasets", dataset));
  return [
    () => refusalOf(found),
    section(
      "Words exchanged",
      h(
        "div.words",
        answered(words, ({ items }) => wordList(items, name)),
      ),
    ),
    section(
      `Images that fell most in ${titleOf(metric)}`,
      h("ol.fallen", { "aria-busy": () => (!images.answer.value || !kept.answer.value) && "true" }, () => [
        refusalOf(images),
        kept.answer.value &&
          images.answer.value?.items.map((/** @type {Moved} */ moved, /** @type {number} */ at) =>
            fallenImage(
              moved,
              [`step ${count(item.step)}`, name],
              imagePlace(item.id, moved.image, { ...list(), at: String(at + 1) }),
              metric,
              hasPictures(kept.answer.value, split) ? dataset : null,
            ),
          ),
      ]),
    ),
  ];
}

/** @param {Schemas["WordExchange"][]} items @param {string} name */
const wordList = (items, name) =>
  items.length
    ? h(
        "ul",
        items.map(({ a, b, images, reverse }) =>
          h(
            "li",
            h("strong", h("bdi", a)),
            " for ",
            h("strong", h("bdi", b)),
            h("span.quiet", ` ${plural(images, "image")}, reverse ${count(reverse)}`),
          ),
        ),
      )
    : h("p.quiet", `No word stands in the place of a word of ${name} more often than the reverse.`);

/** @param {Moved} moved @param {[string, string]} names Of the two checkpoints. @param {string} url @param {string} metric @param {string | null} dataset Of which pictures are shown. */
const fallenImage = ({ image, a, b, scores }, names, url, metric, dataset) =>
  h(
    "li",
    { class: ["caption", !dataset && "wordy"] },
    dataset && thumbnail(dataset, image),
    h(
      "div",
      h("a", { href: url }, image),
      h("span.sub", h("bdi", names[0])),
      h("div.say", h("bdi", differing(a, b))),
      h("span.sub", h("bdi", names[1])),
      h("div.say.quiet", h("bdi", differing(b, a))),
    ),
    h("span.number", signed(scores[metric]?.difference, metric)),
  );
