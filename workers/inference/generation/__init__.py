"""Greedy and beam search as transformers' `generate` has it, on a captioner's own steps.

An image is done when no more can come of it, and leaves the batch then; so a caption does not
depend on what is decoded beside it, as it does not in the library.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from workers.inference.captioners import Captioner, Search
from workers.inference.decoding import Decoded
from workers.inference.features import Inputs
from workers.inference.generation.beams import Beams
from workers.inference.generation.greedy import Greedy
from workers.progress import Progress, silent

_ROWS = 256  # hypotheses at once, if images are not too large


def asked(own: Search, decoding: Mapping[str, Any]) -> Search:
    """A captioner's own search with what a request changes of it, by the names that requests have:
    `beam`, `min_words` and `max_words` (of pieces here), `length_power`.
    """
    changed: dict[str, Any] = {}
    if "beam" in decoding:
        changed["beams"] = decoding["beam"]
    if "length_power" in decoding:
        changed["length_penalty"] = decoding["length_power"]
    if "max_words" in decoding:
        changed["most"] = min(decoding["max_words"], own.longest)
        changed["least"] = min(own.least, changed["most"])
    if "min_words" in decoding:
        changed["least"] = min(decoding["min_words"] + 1, changed.get("most", own.most))
    return replace(own, **changed)


@torch.inference_mode()
def decode(
    model: Captioner, inputs: Inputs, search: Search, progress: Progress = silent
) -> list[Decoded]:
    """Decode a caption for each row of `inputs`."""
    model.check(inputs)
    captions: list[Decoded] = []
    size = min(model.together, max(1, _ROWS // search.beams))
    for start in range(0, len(inputs), size):
        block = torch.tensor(inputs[start : start + size], device=model.device)
        one = Greedy if search.beams == 1 else Beams
        captions += one(model, block, search).run()
        progress(len(captions), len(inputs))
    return captions
