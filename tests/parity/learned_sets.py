"""What the learned metrics are trained and tested on: published captioners on Flickr30k, captions
of COCO, people's ratings of Flickr8k.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity.systems import NAMES, People, coco, flickr8k, flickr30k, lines, system
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.bench.learned.training_sets import identify_photo
from workers.metrics.vectors import word_vectors
from workers.metrics.vectors.word_vectors import WordVectors


@dataclass(frozen=True)
class Judged:
    """Captions that people rated; `ratings[i]` has one number or several."""

    images: Sequence[str]
    captions: Sequence[str]
    reference_sets: Sequence[tuple[str, ...]]
    ratings: np.ndarray


def write_training(data: Path, folder: Path) -> list[str]:
    """Flickr30k's test images as a bundle, what 12 captioners said of them, COCO's images (their
    references count in document frequencies), people's ratings; and the arguments of the command
    that trains the shipped model on them.
    """
    people = flickr30k(data, "test_2016")
    bundles.write_bundle_folder(
        folder / "flickr30k", [BundleItem(image, "test", each) for image, each in people.items()]
    )
    items = [
        BundleItem(image, split, each)
        for split in ("test", "val")
        for image, each in coco(data, split).items()
    ]
    bundles.write_bundle_folder(folder / "coco", items)
    _write_ratings(expert(data), folder / "expert.jsonl")
    arguments = ["flickr30k/test", "--leave-out-rated", "--ratings", "expert.jsonl"]
    arguments += ["--further", "coco/test", "--further", "coco/val"]
    for name in NAMES:
        captions = system(data, "flickr30k", name).captions
        said = dict(zip(people, captions, strict=True)).items()
        written = json.dumps([{"image": image, "caption": text} for image, text in said])
        (folder / f"{name}.json").write_text(written)
        arguments += ["--outputs", f"{name}={name}.json"]
    return arguments


def _write_ratings(judged: Judged, path: Path) -> None:
    rows = zip(judged.images, judged.captions, judged.reference_sets, judged.ratings, strict=True)
    names = ("image", "candidate", "references", "ratings")
    lines_ = (
        json.dumps(dict(zip(names, (*row[:3], row[3].tolist()), strict=True))) for row in rows
    )
    path.write_text("\n".join(lines_) + "\n")


def without(people: Mapping[str, tuple[str, ...]], photos: frozenset[str]) -> People:
    return {image: said for image, said in people.items() if identify_photo(image) not in photos}


def unseen(data: Path) -> dict[str, list[tuple[str, ...]]]:
    """Captions of images that `accord` was not learned from, without Flickr8k's photos."""
    judged = frozenset(map(identify_photo, expert(data).images))
    sets = {"COCO": coco(data, "test"), "Flickr30k": flickr30k(data, "test_2016")}
    return {name: list(without(people, judged).values()) for name, people in sets.items()}


def expert(data: Path, *, own: bool = False) -> Judged:
    """Three ratings a caption, from 1 to 4: 5,664, or 5,822 with captions of the image itself."""
    text = (data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8")
    return _judged(data, text.splitlines(), lambda fields: list(map(float, fields)), own=own)


def crowd(data: Path) -> Judged:
    """The share of people who said that the caption describes the image."""
    rated = lines(data / "flickr8k" / "CrowdFlowerAnnotations.txt.gz")
    return _judged(data, rated, lambda fields: [float(fields[0])])


def _judged(data, rated, ratings_of, *, own=False) -> Judged:
    texts, of_image = flickr8k(data)
    rows = [line.split("\t") for line in rated]
    rows = [row for row in rows if own or row[1].split("#")[0] != row[0]]
    return Judged(
        images=[row[0] for row in rows],
        captions=[texts[row[1]] for row in rows],
        reference_sets=[tuple(of_image[row[0]]) for row in rows],
        ratings=np.array([ratings_of(row[2:]) for row in rows]),
    )


def vectors(data: Path) -> WordVectors:
    path = data / "wordvec" / "captions_w2v100_f16.npz"
    stored = np.load(path)
    keys = b"".join(word_vectors.hash_word(str(word).encode()) for word in stored["words"])
    source = hashlib.sha256(path.read_bytes()).hexdigest()
    return word_vectors.collect_vectors(source, stored["vectors"].astype(np.float32), keys)
