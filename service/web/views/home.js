/** The first view: what this is, how to begin with this very service, and what was evaluated last. */

import { pages, resource } from "../core/api.js";
import { each, h } from "../core/dom.js";
import { onRows } from "../core/keyboard.js";
import { onChange } from "../core/live.js";
import { place } from "../core/urls.js";
import { command } from "../parts/command.js";
import { head, scrolled } from "../parts/layout.js";
import { evaluationLink } from "../parts/names.js";
import { time } from "../parts/dates.js";
import { number } from "../parts/numbers.js";
import { runPlace, splitLink, splitPlace } from "../parts/places.js";
import { answered, badge, following, labels } from "../parts/states.js";

/** @typedef {import("../core/api.js").Schemas["Evaluation"]} Evaluation */
/** @typedef {import("../core/api.js").Schemas["Dataset"]} Dataset */

export function home() {
  const latest = pages(() => place("/v1/evaluations", { limit: 20 }));
  const datasets = resource(() => place("/v1/datasets", { limit: 100 }));
  onChange((change) => {
    if (!change || change.kind === "evaluation") latest.refresh();
  });
  const rows = h(
    "tbody",
    each(
      () => latest.items.value,
      (run) => run.id,
      row,
    ),
  );
  onRows(() => [.../** @type {NodeListOf<HTMLElement>} */ (rows.querySelectorAll("a.main"))], "evaluations");
  return {
    title: "Home",
    content: h(
      "div",
      h("h1", "Prescore"),
      h(
        "p",
        { class: "lead" },
        "How good are an image captioner's captions? Scores before anything is generated, within seconds; then the usual ones, each with its interval.",
      ),
      h(
        "section",
        { "aria-labelledby": "datasets" },
        h("h2", { id: "datasets" }, "Datasets"),
        answered(datasets, shown),
      ),
      h(
        "section",
        { "aria-labelledby": "latest" },
        h("h2", { id: "latest" }, "Latest evaluations"),
        following(latest, () => [
          () =>
            latest.items.value.length
              ? table(rows)
              : h("p", { class: "quiet" }, "None yet. The commands below make the first."),
          () =>
            latest.next.value &&
            h(
              "button",
              { type: "button", onclick: latest.more, disabled: () => latest.isMore.value },
              "More",
            ),
        ]),
      ),
      h("section", { "aria-labelledby": "begin" }, h("h2", { id: "begin" }, "Begin"), firstSteps()),
    ),
  };
}

/** @param {{ items: Dataset[] }} found */
function shown({ items }) {
  if (!items.length) return h("p", { class: "quiet" }, "None yet.");
  return h(
    "ul",
    { class: "cards" },
    items.map((dataset) =>
      h(
        "li",
        h("strong", dataset.name),
        h("span", { class: "quiet" }, ` ${dataset.version}`),
        h(
          "ul",
          Object.entries(dataset.splits).map(([split, { images }]) =>
            h(
              "li",
              h("a", { href: splitPlace(dataset.name, split) }, split),
              ` ${images.toLocaleString("en")} images`,
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {Node} rows */
function table(rows) {
  return scrolled(
    "Table of the latest evaluations",
    h("table", head(["Evaluation", "Dataset", "State", "Score", "Labels", "Submitted"]), rows),
  );
}

/** @param {() => Evaluation} run */
function row(run) {
  const { id, dataset, created_at } = run();
  return h(
    "tr",
    h("th", { scope: "row" }, () => evaluationLink(id, run().labels)),
    h("td", splitLink(dataset), ` ${dataset.version}`),
    h("td", () => [badge(run().status), run().verdict && badge(run().verdict)]),
    h("td", { class: "number" }, () => score(run())),
    h("td", () => [
      labels(run().labels),
      run().labels.run &&
        h("a", { href: runPlace(dataset.name, dataset.split, run().labels.run) }, "training"),
    ]),
    h("td", time(created_at)),
  );
}

/** CIDEr-D, or else the first score of its captions that there is. @param {Evaluation} run */
function score({ scores }) {
  const name = scores.cider_d
    ? "cider_d"
    : Object.keys(scores).find((each) => scores[each].family === "postgen");
  return name && `${name} ${number(scores[name].value, name)}`;
}

function firstSteps() {
  const here = location.origin;
  return [
    h("p", "Captions of any system, without a checkpoint:"),
    command(
      `export PRESCORE_URL=${here}\nprescore score captions.json --dataset NAME/SPLIT`,
      "Score captions by a command",
    ),
    h("p", "A checkpoint, which the service decodes and scores:"),
    command(
      `prescore submit model.safetensors --url ${here} --dataset NAME/SPLIT --wait`,
      "Submit a checkpoint by a command",
    ),
    h("p", "By curl alone:"),
    command(
      `curl ${here}/v1/evaluations -H 'Content-Type: application/json' \\\n  -d '{"dataset": "NAME/SPLIT", "captions": [{"image": "1.jpg", "caption": "a dog runs"}], "postgen": ["cider_d"]}'`,
      "Submit captions by curl",
    ),
    h("p", h("a", { href: "/docs" }, "The whole API")),
  ];
}
