"""36 published captioners on three test sets: what they said, people's captions, their scores."""

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.contract.words import TOKENIZERS

NAMES = tuple(
    f"{architecture}_{run}" for architecture in ("init", "pre", "par", "merge") for run in (1, 2, 3)
)


@dataclass(frozen=True)
class System:
    captions: list[str]
    bleu: tuple[float, ...]
    rouge_l: float
    cider_d: float
    meteor: str  # as published, all its digits
    spice: str


def references(data: Path, dataset: str) -> list[list[str]]:
    """Image by image, in the systems' order, as Karpathy's tokens."""
    tokens = TOKENIZERS["karpathy"]
    return [[" ".join(tokens(caption)) for caption in image] for image in _raw(data, dataset)]


def _raw(data: Path, dataset: str) -> Iterator[list[str]]:
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
    folder = data / "systems"
    row = published(data, dataset, name)
    strata = csv.DictReader(lines(data / "pregen" / "data.txt.gz"), delimiter="\t")
    (exact,) = [
        row for row in strata if row["num_strata"] == "1" and _is(row, "dataset", dataset, name)
    ]
    return System(
        captions=lines(folder / f"{dataset}_{name}" / "generated_captions.txt.gz"),
        bleu=tuple(float(row[f"Bleu_{n}"]) for n in (1, 2, 3, 4)),
        rouge_l=float(row["ROUGE_L"]),
        cider_d=float(row["CIDEr"]),
        meteor=exact["METEOR"],
        spice=exact["SPICE"],
    )


def published(data: Path, dataset: str, name: str) -> dict[str, str]:
    """A system's line of the table of results."""
    results = (data / "systems" / "results.txt").read_text("utf-8").split("\n")
    rows = csv.DictReader(results, delimiter="\t")
    (row,) = [row for row in rows if _is(row, "dataset_name", dataset, name)]
    return row


def _is(row: dict[str, str], column: str, dataset: str, name: str) -> bool:
    return row[column] == dataset and f"{row['architecture']}_{row['run']}" == name


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
