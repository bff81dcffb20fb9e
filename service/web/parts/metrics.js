/** Metrics: their titles, and a popover on each name that tells its meaning, direction, signature and trust. */

import { ask } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { place } from "../core/urls.js";
import { explained } from "./layout.js";
import { number } from "./numbers.js";
import { splitPlace } from "./places.js";
import { trustOf } from "./sentences.js";

/** @typedef {{ signature?: string | null, higher?: boolean | null, dataset?: { name: string, split: string } | null, health?: Schemas["MetricHealth"] | null }} About */

const TITLES = /** @type {Record<string, string>} */ ({
  cider_d: "CIDEr-D",
  cider: "CIDEr",
  meteor: "METEOR",
  spice: "SPICE",
  rouge_l: "ROUGE-L",
  clip_score: "CLIPScore",
  ref_clip_score: "RefCLIPScore",
  bert_score: "BERTScore",
  wmd: "WMD",
  chrf: "chrF",
  bits_per_byte: "bits per byte",
  corpus_perplexity: "corpus perplexity",
});

/** @param {string} metric */
export const titleOf = (metric) => TITLES[metric] ?? metric.replace(/^bleu_(\d)$/, "BLEU-$1");

/** A message of the service with the names of metrics as the page writes them. @param {string} text */
export const withTitles = (text) => text.replace(/\b[a-z]+_[a-z0-9]+\b/g, titleOf);

const ORDER = "cider_d cider meteor rouge_l spice bleu_4 bleu_3 bleu_2 bleu_1".split(" ");

/** Metrics in one order everywhere, the chosen one first; others after them, as they are. @param {string[]} metrics @param {string} [chosen] */
export function byUsualOrder(metrics, chosen) {
  const usual = chosen ? [chosen, ...ORDER] : ORDER;
  const placeOf = (/** @type {string} */ metric) =>
    usual.includes(metric) ? usual.indexOf(metric) : usual.length;
  return [...metrics].sort((one, other) => placeOf(one) - placeOf(other));
}

const PREGEN = /^([a-z]+)_([a-z]+)_(prob|pplx|count|normcount)_(none|filter0|prefix0|miss0)$/;
const AMOUNTS = /** @type {Record<string, string>} */ ({
  prob: "probability of",
  pplx: "perplexity of",
  count: "number of",
  normcount: "share of",
});
const TOKENS = /** @type {Record<string, string>} */ ({
  none: "all tokens",
  filter0: "the model's first choices",
  prefix0: "the first choices before any other",
  miss0: "tokens that are not first choices",
});
const AVERAGES = /** @type {Record<string, string>} */ ({
  sum: "sum",
  mean: "mean",
  median: "median",
  geomean: "geometric mean",
  max: "highest",
  min: "lowest",
});

/** A pre-gen metric in words, from the parts of its name; another one's title. @param {string} metric */
export function wordsOf(metric) {
  const [, images, captions, amount, tokens] = PREGEN.exec(metric) ?? [];
  if (!images) return titleOf(metric);
  const over =
    captions === "join"
      ? `${AVERAGES[images]} over all captions`
      : `${AVERAGES[captions]} of an image's captions, ${AVERAGES[images]} over images`;
  return `${AMOUNTS[amount]} ${TOKENS[tokens]} (${over})`;
}

/** ↑ or ↓; empty where neither is better. @param {boolean | null | undefined} higher */
export const arrow = (higher) => (higher === true ? "↑" : higher === false ? "↓" : "");

const DIRECTIONS = { "↑": "Higher is better.", "↓": "Lower is better.", "": "Neither direction is better." };

/** The metric's title as a button that opens its popover. @param {string} metric @param {About} [about] */
export const metricName = (metric, about = {}) =>
  explained(titleOf(metric), metric, (popover) => fill(popover, metric, about));

/** @param {HTMLElement} popover @param {string} metric @param {About} about */
async function fill(popover, metric, { signature, higher, dataset, health }) {
  const [found, probes] = await Promise.all(
    [
      place("/v1/metrics", { names: metric }),
      dataset &&
        place("/v1/probes", { dataset: `${dataset.name}/${dataset.split}`, status: "succeeded", limit: 1 }),
    ].map((url) => (url ? ask(url).catch(() => null) : null)),
  );
  const known = /** @type {Schemas["Metric"] | undefined} */ (found?.items[0]);
  replace(
    popover,
    h("p", h("strong", titleOf(metric)), h("span.quiet", ` ${metric}`)),
    h("p", known?.definition ?? "The service has no definition of this metric."),
    h("p", DIRECTIONS[arrow(known?.higher_is_better ?? higher)]),
    health &&
      h(
        "p",
        `On this split people's captions have ${number(health.human, metric)}, one caption for all images ${number(health.constant, metric)}.`,
      ),
    probes && known?.family === "postgen" && h("p", trustOf(metric, probes.items[0]?.health)),
    signature && h("p.quiet", "Signature: ", h("code", signature)),
    dataset &&
      h(
        "a",
        { href: splitPlace(dataset.name, dataset.split, "trust") },
        "Which metric to trust on this split",
      ),
  );
}
