"""36 published captioners on three test sets: what they said, people's captions, their scores."""

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.contract.formats.vocabularies import MODEL_TOKENIZERS

DATASETS = ("flickr8k", "flickr30k", "mscoco")
NAMES = tuple(
    f"{architecture}_{run}" for architecture in ("init", "pre", "par", "merge") for run in (1, 2, 3)
)

# Our names, and theirs in the table of results (twelve digits) and in that of the pre-gen paper
# (all digits; the rows of one stratum, which is the whole set).
_RESULTS = {f"bleu_{n}": f"Bleu_{n}" for n in (1, 2, 3, 4)} | {
    "rouge_l": "ROUGE_L",
    "meteor": "METEOR",
    "cider_d": "CIDEr",
}
_PREGEN = {"meteor": "METEOR", "cider_d": "CIDEr", "spice": "SPICE"}


@dataclass(frozen=True)
class System:
    """What it said, and its scores as the two tables have them, digit by digit."""

    captions: list[str]
    results: dict[str, str]
    pregen: dict[str, str]


def references(data: Path, dataset: str) -> list[list[str]]:
    """Image by image, in the systems' order, as Karpathy's tokens."""
    tokens = MODEL_TOKENIZERS["karpathy"]
    return [[" ".join(tokens(caption)) for caption in image] for image in raw(data, dataset)]


def raw(data: Path, dataset: str) -> Iterator[list[str]]:
    """As people wrote them."""
    if dataset == "flickr8k":
        by_image: dict[str, list[str]] = {}
        for line in lines(data / "flickr8k" / "Flickr8k.token.txt.gz"):
            name, caption = line.split("\t")
            by_image.setdefault(name.split("#")[0], []).append(caption)
        names = (data / "systems" / "imgs_flickr8k.txt").read_text("utf-8").split()
        yield from (by_image[name] for name in names)
    elif dataset == "flickr30k":
        files = [data / "flickr30k" / f"test_2016.{index}.en.gz" for index in range(1, 6)]
        yield from (list(image) for image in zip(*map(lines, files), strict=True))
    else:
        for line in lines(data / "coco" / "karpathy_test5k_refs.jsonl.gz"):
            yield json.loads(line)["captions"]


def system(data: Path, dataset: str, name: str) -> System:
    results = published(data, dataset, name)
    (whole,) = [row for row in _whole_sets(data) if _is(row, "dataset", dataset, name)]
    return System(
        captions=lines(data / "systems" / f"{dataset}_{name}" / "generated_captions.txt.gz"),
        results={ours: results[theirs] for ours, theirs in _RESULTS.items()},
        pregen={ours: whole[theirs] for ours, theirs in _PREGEN.items()},
    )


def published(data: Path, dataset: str, name: str) -> dict[str, str]:
    """A system's line of the table of results."""
    results = (data / "systems" / "results.txt").read_text("utf-8").split("\n")
    rows = csv.DictReader(results, delimiter="\t")
    (row,) = [row for row in rows if _is(row, "dataset_name", dataset, name)]
    return row


@cache
def _whole_sets(data: Path) -> list[dict[str, str]]:
    rows = csv.DictReader(lines(data / "pregen" / "data.txt.gz"), delimiter="\t")
    return [row for row in rows if row["num_strata"] == "1"]


def _is(row: dict[str, str], column: str, dataset: str, name: str) -> bool:
    return row[column] == dataset and f"{row['architecture']}_{row['run']}" == name


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
