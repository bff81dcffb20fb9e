"""The best single sentence beside brute force: every sentence as pycocoevalcap's answer for every
image, of which a few are timed and multiplied.

Real captions where there are data (Flickr30k's), else made-up ones as many.
"""

from collections.abc import Sequence
from functools import partial

import captions  # beside this file
import numpy as np
from rows import Row, seconds  # beside this file

from oracles import coco_scorers
from parity import probes
from workers.bench.probing import constant_search
from workers.bench.probing.inputs import ProbeMaterial
from workers.metrics.java.jvm import Jvm

_TRIED = 4  # sentences of the baseline
_PARTS = (("bleu_4", 0.25), ("bleu_4", 0.5), ("bleu_4", 1.0), ("cider_d", 1.0), ("rouge_l", 1.0))


def measure() -> list[Row]:
    material, rows = _given(), []
    brute: dict[str, float] = {}
    for objective, share in _PARTS:
        sentences = material.training[: int(share * len(material.training))]
        found: list[constant_search.BestSentence] = []
        took = seconds(partial(_find, sentences, material, objective, found))
        if objective not in brute:
            tried = np.random.default_rng(0).choice(sentences, _TRIED).tolist()
            brute[objective] = seconds(partial(_brute, tried, material, objective)) / _TRIED
        what = f"best single sentence of {len(sentences):,}, {objective}"
        (best,) = found
        note = f"{best.score:.4f}; {best.scored} of {best.different} sentences scored one by one"
        baseline = "brute force by pycocoevalcap (a part, scaled)"
        rows.append(Row(what, took, baseline, brute[objective] * len(sentences), note))
    return rows


def _find(
    sentences: Sequence[str],
    material: ProbeMaterial,
    objective: str,
    found: list[constant_search.BestSentence],
) -> None:
    found.append(constant_search.find_best_sentence(sentences, material.complete, objective))


def _given() -> ProbeMaterial:
    if captions.DATA.is_dir():
        return probes.flickr30k(captions.DATA, "karpathy", Jvm())
    made_up = captions.made_up(30_000)
    flat = [caption for image in made_up.references for caption in image]
    return ProbeMaterial("none", made_up.references[:1000], None, flat[5000:])


def _brute(sentences: list[str], material: ProbeMaterial, objective: str) -> None:
    for sentence in sentences:
        constant = [sentence] * len(material.references)
        coco_scorers.scores(constant, material.references, [objective])
