/** How to begin with this very service, while nothing has been scored. */

import { h } from "../core/dom.js";
import { command } from "../parts/command.js";
import { section } from "../parts/layout.js";
import { dropZone } from "./submit.js";

export function firstSteps() {
  const here = location.origin;
  return section(
    "Begin",
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
    h("p", "Or a file, here. ", h("a", { href: "/docs" }, "The whole API"), " takes captions too."),
    dropZone(),
  );
}
