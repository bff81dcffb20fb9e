"""36 published captioners on three test sets: what they said, people's captions, their scores."""

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.contract.formats.vocabularies import MODEL_TOKENIZERS

People = dict[str, tuple[str, ...]]

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


def raw(data: Path, dataset: str) -> list[Sequence[str]]:
    """As people wrote them."""
    if dataset == "flickr8k":
        _, of_image = flickr8k(data)
        names = (data / "systems" / "imgs_flickr8k.txt").read_text("utf-8").split()
        return [of_image[name] for name in names]
    people = flickr30k(data, "test_2016") if dataset == "flickr30k" else coco(data, "test")
    return list(people.values())


def flickr8k(data: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Texts by caption, and by image."""
    texts = dict(line.split("\t") for line in lines(data / "flickr8k" / "Flickr8k.token.txt.gz"))
    of_image: dict[str, list[str]] = {}
    for name, text in texts.items():
        of_image.setdefault(name.split("#")[0], []).append(text)
    return texts, of_image


def flickr30k(data: Path, split: str) -> People:
    folder = data / "flickr30k"
    names = (folder / f"{split}_images.txt").read_text("utf-8").split()
    files = [lines(folder / f"{split}.{index}.en.gz") for index in range(1, 6)]
    return dict(zip(names, zip(*files, strict=True), strict=True))


def coco(data: Path, split: str) -> People:
    items = map(json.loads, lines(data / "coco" / f"karpathy_{split}5k_refs.jsonl.gz"))
    return {item["file_name"]: tuple(item["captions"]) for item in items}


def system(data: Path, dataset: str, name: str) -> System:
    results = published(data, dataset, name)
    (whole,) = [row for row in whole_sets(data) if _is(row, "dataset", dataset, name)]
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
def whole_sets(data: Path) -> list[dict[str, str]]:
    """The rows of the pre-gen paper's table that are of all images."""
    rows = csv.DictReader(lines(data / "pregen" / "data.txt.gz"), delimiter="\t")
    return [row for row in rows if row["num_strata"] == "1"]


def _is(row: dict[str, str], column: str, dataset: str, name: str) -> bool:
    return row[column] == dataset and f"{row['architecture']}_{row['run']}" == name


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
