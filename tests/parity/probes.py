"""The published table of probes (Caglayan, Madhyastha and Specia 2020) beside ours: PROBES.md.

Tokens are Karpathy's and stay as they are (PTB off), unless another tokenizer is named.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from parity import systems
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.bench.probing import probes, scoring
from workers.bench.probing.health import derive_health
from workers.bench.probing.inputs import ProbeMaterial, prepare_material
from workers.bench.probing.scoring import ProbeTableRow
from workers.metrics.java.jvm import Jvm

METRICS = ("bleu_4", "meteor", "rouge_l", "cider_d")
OF_ONE_SENTENCE = ("bleu_1", *METRICS)
_HUNDRED = ("bleu_1", "bleu_4", "meteor", "rouge_l")  # in points
_TITLES = {
    "bleu_1": "BLEU-1",
    "bleu_4": "BLEU-4",
    "meteor": "METEOR",
    "rouge_l": "ROUGE-L",
    "cider_d": "CIDEr-D",
}

# As Caglayan, Madhyastha and Specia (2020) publish them: BLEU, METEOR and ROUGE-L in points.
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "R1 unchanged": {"bleu_4": 19.96, "meteor": 24.41, "rouge_l": 47.4, "cider_d": 0.896},
    "people": {"bleu_4": 19.53, "meteor": 24.24},
    "standing": {"bleu_4": 19.45},
    "sitting": {"bleu_4": 19.11},
    "man": {"bleu_4": 19.11},
    "a": {"bleu_4": 9.20, "meteor": 20.03, "rouge_l": 34.8, "cider_d": 0.490},
    "random": {"bleu_4": 13.63, "meteor": 19.58, "rouge_l": 41.7, "cider_d": 0.500},
    "woman -> man": {"bleu_4": 19.63, "meteor": 24.15, "rouge_l": 47.0, "cider_d": 0.889},
    "RvR": {"bleu_4": 19.5, "meteor": 24.2, "rouge_l": 46.7, "cider_d": 0.88},
}
SHARES = {"people": 0.61, "standing": 0.88, "sitting": 1.06, "man": 1.21, "a": 16.69}
DEVIATIONS = {"bleu_4": 0.3, "meteor": 0.1, "rouge_l": 0.3, "cider_d": 0.01}  # of RvR
WINNER = "a man in a blue shirt standing in front of a building"
SINGLE = {"bleu_1": 46.2, "bleu_4": 12.2, "meteor": 11.6, "rouge_l": 32.7, "cider_d": 0.07}


def points(metric: str, value: float) -> float:
    return 100 * value if metric in _HUNDRED else value


def flickr30k(data: Path, tokenizer: str, jvm: Jvm) -> ProbeMaterial:
    """With its training captions; `karpathy` is a tokenizer here, for Karpathy's tokens."""
    files = [data / "flickr30k" / f"train.{index}.en.gz" for index in range(1, 6)]
    training = [caption for file in files for caption in systems.lines(file)]
    if tokenizer == "karpathy":
        people = systems.references(data, "flickr30k")
        tokens = MODEL_TOKENIZERS["karpathy"]
        return ProbeMaterial("none", people, None, [" ".join(tokens(text)) for text in training])
    people = systems.raw(data, "flickr30k")
    return prepare_material(people, tokenizer, jvm, training=training)


def of_coco(material: ProbeMaterial, jvm: Jvm) -> dict[str, ProbeTableRow]:
    score = scoring.make_scorer(METRICS, jvm)
    tables = (probes.run_probe(probe, material, score) for probe in ("frequent", "random", "swap"))
    rows = [row for table in tables for row in table]
    return {row.name: row for row in [*rows, *probes.run_probe("human", material, score)]}


def of_systems(data: Path, material: ProbeMaterial, jvm: Jvm) -> dict[str, ProbeTableRow]:
    """RvR, then SvR of each of the 12 systems."""
    score = scoring.make_scorer(METRICS, jvm)
    found: dict[str, ProbeTableRow] = {}
    for name in systems.NAMES:
        said = copy.copy(material)  # its references are prepared once for all
        said.outputs = systems.system(data, "mscoco", name).captions
        people, system = probes.run_probe("human", said, score)
        found |= {"RvR": people, name: system}
    return found


def of_flickr30k(material: ProbeMaterial, jvm: Jvm) -> list[ProbeTableRow]:
    score = scoring.make_scorer(OF_ONE_SENTENCE, jvm)
    tables = (probes.run_probe(probe, material, score) for probe in ("rare", "human", "single"))
    return [row for table in tables for row in table]


def of_german(data: Path, jvm: Jvm) -> dict[str, ProbeTableRow]:
    files = [data / "multilingual" / f"test_2016.{index}.de.gz" for index in range(1, 6)]
    people = [list(image) for image in zip(*map(systems.lines, files), strict=True)]
    score = scoring.make_scorer(METRICS, jvm)
    found = {}
    for tokenizer in ("regex", "character", "none"):
        (found[tokenizer],) = probes.run_probe(
            "human", prepare_material(people, tokenizer, jvm), score
        )
    return found


def cells_of_coco(rows: Mapping[str, ProbeTableRow]) -> list[list[str]]:
    """Beside their share of tokens, in brackets as published."""
    found = []
    for name, row in rows.items():
        share = "" if row.share is None else f"{100 * row.share:.2f}"
        if name in SHARES:
            share += f" ({SHARES[name]:.2f})"
        found.append([name, share, *_cells(row, METRICS, PUBLISHED.get(name, {}))])
    return found


def cells_of_names(rows: Mapping[str, ProbeTableRow]) -> list[list[str]]:
    return [[name, *_cells(row, METRICS)] for name, row in rows.items()]


def cells_of_flickr30k(rows: Sequence[ProbeTableRow]) -> list[list[str]]:
    found = []
    for row in rows:
        name = f"{row.name}: {row.text}" if row.text else row.name
        share = f" ({100 * row.share:.2f} % of tokens)" if row.share else ""
        published = SINGLE if name == f"single sentence: {WINNER}" else {}
        found.append([name + share, *_cells(row, OF_ONE_SENTENCE, published)])
    for metric, health in derive_health(rows).items():
        found.append([_TITLES[metric], *(f"{share:.3f}" for share in astuple(health))])
    return found


def _cells(
    row: ProbeTableRow, metrics: Sequence[str], published: Mapping[str, float] = {}
) -> list[str]:
    return [_beside(metric, row, published) for metric in metrics]


def _beside(metric: str, row: ProbeTableRow, published: Mapping[str, float]) -> str:
    text = _number(metric, row.scores[metric])
    if metric in row.sd:
        text += f" ± {_number(metric, row.sd[metric])}"
    if metric not in published:
        return text
    spread = f" ± {DEVIATIONS[metric]}" if row.name == "RvR" else ""
    return f"{text} ({published[metric]}{spread})"


def _number(metric: str, value: float) -> str:
    return f"{points(metric, value):.{2 if metric in _HUNDRED else 3}f}"
