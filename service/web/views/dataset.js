/** One split of a dataset: its content, some of its images, and the ways to score on it. */

import { Refused, resource } from "../core/api.js";
import { h } from "../core/dom.js";
import { onEnd, signal } from "../core/signals.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { ago } from "../parts/dates.js";
import { fact, section, view } from "../parts/layout.js";
import { count, short } from "../parts/numbers.js";
import { splitCrumbs, splitTabs } from "../parts/places.js";
import { datasetSentence, plural } from "../parts/sentences.js";
import { loading, refusal } from "../parts/states.js";
import { hasPictures, thumbnail, versioned } from "./pictures.js";
import { dropZone } from "./submit.js";

/** @typedef {{ image: string, split: string, references: string[] }} Line */

const SHOWN = 12; // images
const MOST_CHARACTERS = 2_000_000; // of captions.jsonl, within which they are looked for

/** @param {string} name @param {string} split */
export function dataset(name, split) {
  const found = resource(() => place("/v1/datasets", name));
  const of = () => /** @type {Dataset} */ (found.answer.value);
  const title = `${name}/${split}`;
  return view(
    {
      title,
      crumbs: () => [...splitCrumbs({ name, split }), ["dataset"]],
      sentence: () => found.answer.value && datasetSentence({ dataset: of(), split }),
      tabs: splitTabs(name, split),
      needs: [found],
    },
    () => {
      const known = Object.keys(of().splits);
      return known.includes(split)
        ? [facts(of(), split), ways(title), section("Images", images(of(), split))]
        : refusal(new Refused(404, "", `${name} has no split ${split}; it has: ${known.join(", ")}`));
    },
  );
}

/** @param {Dataset} dataset @param {string} split */
function facts({ version, content, created_at, splits, features }, split) {
  const { references } = splits[split];
  return h(
    "dl.facts.card",
    fact("References", count(references)),
    fact("Version", version, " ", h("code", { title: content }, short(content)), ", ", ago(created_at)),
    fact(
      "Features",
      features ? described(features) : "none: the service scores captions, but no checkpoints",
    ),
  );
}

/** @param {NonNullable<Dataset["features"]>} features */
function described({ encoder, size, inputs, places }) {
  const vectors = {
    features: "one vector",
    grid: `a grid of ${places} vectors`,
    regions: `up to ${places} regions`,
  };
  return `${encoder.name}: ${vectors[inputs] ?? inputs} of ${count(size)} numbers for each image`;
}

const WAYS = [
  ["Captions of any system:", "captions.json", "Score captions by a command"],
  [
    "A checkpoint: the service generates captions with it and scores them.",
    "model.safetensors",
    "Score a checkpoint by a command",
  ],
];

/** @param {string} dataset */
const ways = (dataset) =>
  section(
    "Score on this split",
    dropZone({ dataset }),
    WAYS.map(([text, file, what]) => [
      h("p", text),
      command(`prescore submit ${file} --url ${location.origin} --dataset ${dataset} --wait`, what),
    ]),
  );

/** The first images and their references. @param {Dataset} dataset @param {string} split */
function images(dataset, split) {
  const lines = signal(/** @type {Line[] | null} */ (null));
  const why = signal("No image of this split is in the first 2 MB of captions.jsonl, which this view reads.");
  const stop = new AbortController();
  onEnd(() => stop.abort());
  readLines(versioned(dataset), split, stop).then(
    (read) => (lines.value = read),
    () => {
      why.value = "The images could not be read.";
      lines.value = [];
    },
  );
  const pictures = hasPictures(dataset, split) && versioned(dataset);
  return () => {
    if (!lines.value) return loading();
    if (!lines.value.length) return h("p.quiet", why.value);
    const [shown, all] = [lines.value.length, dataset.splits[split].images];
    return [
      shown < all && h("p.quiet", `The first ${count(shown)} of ${plural(all, "image")}.`),
      h(
        "ul.cards",
        lines.value.map((line) => lineCard(line, pictures)),
      ),
    ];
  };
}

/** @param {Line} line @param {string | false} pictures The dataset whose pictures are shown. */
function lineCard({ image, references }, pictures) {
  if (!references.length) return h("li", h("h3", image), h("p.quiet", "no reference"));
  const list = h(
    "ul.texts",
    references.map((text) => h("li", h("bdi", text.replace(/ ([.,;:!?])(?=\s|$)/g, "$1")))),
  );
  return h(
    "li",
    { class: ["captioned", pictures && "pictured"] },
    pictures && thumbnail(pictures, image),
    h("div", h("h3", image), list),
  );
}

/** The first lines of a split, of the beginning of captions.jsonl alone. @param {string} reference @param {string} split @param {AbortController} stop */
async function readLines(reference, split, { signal }) {
  const headers = { Accept: "application/x-ndjson" };
  const answer = await fetch(place("/v1/datasets", reference), { headers, signal });
  const reader = answer.ok && answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return [];
  /** @type {Line[]} */
  const found = [];
  let rest = "";
  for (let read = 0; read < MOST_CHARACTERS && found.length < SHOWN;) {
    const { value, done } = await reader.read();
    if (done) break;
    read += value.length;
    const pieces = (rest + value).split("\n");
    rest = pieces.pop() ?? "";
    const lines = pieces.filter(Boolean).map((piece) => JSON.parse(piece));
    found.push(...lines.filter((line) => line.split === split));
  }
  reader.cancel();
  return found.slice(0, SHOWN);
}
