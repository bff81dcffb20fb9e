/** How to begin with this very service, while nothing has been scored. */

import { h } from "../core/dom.js";
import { command } from "../parts/command.js";
import { section } from "../parts/layout.js";
import { dropZone } from "./submit.js";

const ON = "--dataset my-dataset/test --wait";

export function firstSteps() {
  const here = location.origin;
  return [
    section(
      "1. Add a dataset",
      h(
        "p",
        "A dataset is a folder with ",
        h("code", "captions.jsonl"),
        ": one image a line, with its split and its reference captions. ",
        h("code", "features.safetensors"),
        " and ",
        h("code", "images/"),
        " are optional. The last part of this command is the folder.",
      ),
      command(`prescore datasets add --url ${here} my-dataset my-dataset/`, "Add a dataset by a command"),
    ),
    section(
      "2. Score on it",
      h("p", "Captions of any system:"),
      command(`prescore submit captions.json --url ${here} ${ON}`, "Score captions by a command"),
      h("p", "A checkpoint: the service generates captions with it and scores them."),
      command(`prescore submit model.safetensors --url ${here} ${ON}`, "Score a checkpoint by a command"),
      h("p", "You can also choose a file here, or use the ", h("a", { href: "/docs" }, "API"), "."),
      dropZone(),
    ),
  ];
}
