"""The published table of probes (Caglayan, Madhyastha and Specia 2020) beside ours.

    PYTHONPATH=.:tests python tests/parity/probes.py      writes PROBES.md, beside this file

Tokens are Karpathy's and stay as they are (PTB off), unless another tokenizer is named.
"""

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from parity import systems
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.bench.probing import probes, scoring
from workers.bench.probing.health import derive_health
from workers.bench.probing.inputs import ProbeMaterial, prepare_material
from workers.bench.probing.scoring import ProbeTableRow
from workers.metrics.java.jvm import Jvm

FILE = Path(__file__).with_name("PROBES.md")
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


def coco(data: Path) -> ProbeMaterial:
    return ProbeMaterial("none", systems.references(data, "mscoco"))


def with_outputs(material: ProbeMaterial, captions: Sequence[str]) -> ProbeMaterial:
    """The same references, prepared once for all systems."""
    found = copy.copy(material)
    found.outputs = captions
    return found


def flickr30k(data: Path, tokenizer: str, jvm: Jvm) -> ProbeMaterial:
    """With its training captions; `karpathy` is a tokenizer here, for Karpathy's tokens."""
    files = [data / "flickr30k" / f"train.{index}.en.gz" for index in range(1, 6)]
    training = [caption for file in files for caption in systems.lines(file)]
    if tokenizer == "karpathy":
        return ProbeMaterial(
            "none", systems.references(data, "flickr30k"), None, karpathy(training)
        )
    people = list(systems.raw(data, "flickr30k"))
    return prepare_material(people, tokenizer, jvm, training=training)


def karpathy(texts: Iterable[str]) -> list[str]:
    return [" ".join(MODEL_TOKENIZERS["karpathy"](text)) for text in texts]


def german(data: Path, tokenizer: str, jvm: Jvm) -> ProbeMaterial:
    files = [data / "multilingual" / f"test_2016.{index}.de.gz" for index in range(1, 6)]
    people = [list(image) for image in zip(*map(systems.lines, files), strict=True)]
    return prepare_material(people, tokenizer, jvm)


def of_coco(
    material: ProbeMaterial, jvm: Jvm, metrics: Sequence[str] = METRICS
) -> dict[str, ProbeTableRow]:
    score = scoring.make_scorer(metrics, jvm)
    tables = (probes.run_probe(probe, material, score) for probe in ("frequent", "random", "swap"))
    rows = [row for table in tables for row in table]
    return {row.name: row for row in [*rows, *probes.run_probe("human", material, score)]}


def of_systems(data: Path, material: ProbeMaterial, jvm: Jvm) -> dict[str, ProbeTableRow]:
    """RvR, then SvR of each of the 12 systems."""
    score = scoring.make_scorer(METRICS, jvm)
    found: dict[str, ProbeTableRow] = {}
    for name in systems.NAMES:
        said = with_outputs(material, systems.system(data, "mscoco", name).captions)
        people, system = probes.run_probe("human", said, score)
        found |= {"RvR": people, name: system}
    return found


def of_flickr30k(material: ProbeMaterial, jvm: Jvm) -> list[ProbeTableRow]:
    score = scoring.make_scorer(OF_ONE_SENTENCE, jvm)
    tables = (probes.run_probe(probe, material, score) for probe in ("rare", "human", "single"))
    return [row for table in tables for row in table]


def of_german(data: Path, jvm: Jvm) -> dict[str, ProbeTableRow]:
    found = {}
    for tokenizer in ("regex", "character", "none"):
        material = german(data, tokenizer, jvm)
        (found[tokenizer],) = probes.run_probe("human", material, scoring.make_scorer(METRICS, jvm))
    return found


def _coco_table(rows: Mapping[str, ProbeTableRow]) -> Iterator[str]:
    yield from _head(["row", "share of tokens, %", *(_TITLES[name] for name in METRICS)])
    for name, row in rows.items():
        share = "" if row.share is None else f"{100 * row.share:.2f}"
        if name in SHARES:
            share += f" ({SHARES[name]:.2f})"
        cells = [_beside(metric, row, PUBLISHED.get(name, {})) for metric in METRICS]
        yield _line([name, share, *cells])


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


def _plain_table(
    rows: Mapping[str, ProbeTableRow],
    first: str,
    metrics: Sequence[str],
    published: Mapping[str, Mapping[str, float]] = {},
) -> Iterator[str]:
    yield from _head([first, *(_TITLES[name] for name in metrics)])
    for name, row in rows.items():
        share = f" ({100 * row.share:.2f} % of tokens)" if row.share else ""
        beside = published.get(name, {})
        yield _line([name + share, *(_beside(metric, row, beside) for metric in metrics)])


def _health_table(rows: Iterable[ProbeTableRow]) -> Iterator[str]:
    columns = {
        "people": "human",
        "people, of the range": "human_of_range",
        "one sentence": "constant",
        "one sentence, of the range": "constant_of_range",
        "one sentence, of people's": "constant_of_human",
        "lost with rare words, of people's": "rare_of_human",
    }
    yield from _head(["", *columns])
    for metric, found in derive_health(rows).items():
        yield _line(
            [_TITLES[metric], *(f"{getattr(found, name):.3f}" for name in columns.values())]
        )


def _head(cells: Sequence[str]) -> list[str]:
    return [_line(cells), "|---" * len(cells) + "|"]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def text(
    coco_rows: Mapping[str, ProbeTableRow],
    system_rows: Mapping[str, ProbeTableRow],
    flickr: Mapping[str, list[ProbeTableRow]],
    german_rows: Mapping[str, ProbeTableRow],
) -> str:
    """PROBES.md."""
    parts = [_TOP, *_coco_table(coco_rows), _SYSTEMS]
    parts += _plain_table(system_rows, "system", METRICS)
    for tokenizer, rows in flickr.items():
        parts.append(_FLICKR30K.format(tokenizer=tokenizer))
        named = {f"{row.name}: {row.text}" if row.text else row.name: row for row in rows}
        parts += _plain_table(named, "row", OF_ONE_SENTENCE, {f"single sentence: {WINNER}": SINGLE})
        parts += ["", *_health_table(rows)]
    parts += [_GERMAN, *_plain_table(german_rows, "tokenizer", METRICS)]
    return "\n".join(parts) + "\n"


_TOP = """# Probes: ours beside the published table

Written by `tests/parity/probes.py`, checked by the slow tests. In brackets what Caglayan,
Madhyastha and Specia (2020) publish; BLEU, METEOR and ROUGE-L in points. ± is the population
standard deviation over reference columns or seeds.

## COCO test, 5,000 images; Karpathy's tokens

Their draw for `random` is not described: what must hold is BLEU and ROUGE-L above the row of `a`,
METEOR below it.
"""
_SYSTEMS = """
## COCO test: people (RvR) and 12 captioners (SvR) against the same reference sets
"""
_FLICKR30K = """
## Flickr30k test, 1,000 images, 145,000 training captions; tokens: {tokenizer}
"""
_GERMAN = """
## German: five independent references of Flickr30k test, RvR

METEOR is the English one, whatever the language.
"""


def main() -> None:
    data = Path(
        os.environ.get("PRESCORE_DATA", Path(__file__).resolve().parents[3] / "shared/data")
    )
    with Jvm() as jvm:
        flickr = {
            tokenizer: of_flickr30k(flickr30k(data, tokenizer, jvm), jvm)
            for tokenizer in ("karpathy", "regex")
        }
        material = coco(data)
        tables = (of_coco(material, jvm), of_systems(data, material, jvm))
        FILE.write_text(text(*tables, flickr, of_german(data, jvm)), "utf-8")


if __name__ == "__main__":
    main()
