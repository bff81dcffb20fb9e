"""What the learned metric is trained and tested on: published captioners on COCO and Flickr30k,
people's ratings of Flickr8k. Features are computed once for each set, and kept in a folder.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity.systems import NAMES, lines
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.bench.learned import training_sets
from workers.bench.learned.training_sets import CaptionerOutputs, NNEvalExamples, identify_photo
from workers.metrics import frequencies, references
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.learned import features
from workers.metrics.vectors import word_vectors
from workers.metrics.vectors.word_vectors import WordVectors

People = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Judged:
    """Captions that people rated; `ratings[i]` has one number or several."""

    images: Sequence[str]
    captions: Sequence[str]
    reference_sets: Sequence[tuple[str, ...]]
    ratings: np.ndarray


def coco(data: Path, split: str) -> People:
    with gzip.open(data / "coco" / f"karpathy_{split}5k_refs.jsonl.gz", "rt", "utf-8") as stream:
        items = map(json.loads, stream)
        return {item["file_name"]: tuple(item["captions"]) for item in items}


def flickr30k(data: Path, split: str) -> People:
    folder = data / "flickr30k"
    names = (folder / f"{split}_images.txt").read_text("utf-8").split()
    files = [lines(folder / f"{split}.{index}.en.gz") for index in range(1, 6)]
    return dict(zip(names, zip(*files, strict=True), strict=True))


def captioners(data: Path, dataset: str) -> list[CaptionerOutputs]:
    folder = data / "systems"
    images = (folder / f"imgs_{dataset}.txt").read_text("utf-8").split()
    found = []
    for name in NAMES:
        said = lines(folder / f"{dataset}_{name}" / "generated_captions.txt.gz")
        found.append(CaptionerOutputs(f"{dataset}/{name}", dict(zip(images, said, strict=True))))
    return found


def write_training(data: Path, folder: Path) -> list[str]:
    """Flickr30k's test images as a bundle, what 12 captioners said of them, COCO's images (their
    references count in document frequencies), people's ratings; and the arguments of the command
    that trains the shipped model on them.
    """
    said = flickr30k(data, "test_2016").items()
    bundles.write_bundle_folder(
        folder / "flickr30k", [BundleItem(image, "test", each) for image, each in said]
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
    for captioner in captioners(data, "flickr30k"):
        path = folder / f"{captioner.name.split('/')[1]}.json"
        said = captioner.captions.items()
        path.write_text(json.dumps([{"image": image, "caption": text} for image, text in said]))
        arguments += ["--outputs", f"{path.stem}={path.name}"]
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


def expert(data: Path) -> Judged:
    """Three ratings a caption, from 1 to 4; captions of the image itself left out: 5,664."""
    text = (data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8")
    return _judged(data, text.splitlines(), lambda fields: list(map(float, fields)))


def crowd(data: Path) -> Judged:
    """The share of people who said that the caption describes the image."""
    rated = lines(data / "flickr8k" / "CrowdFlowerAnnotations.txt.gz")
    return _judged(data, rated, lambda fields: [float(fields[0])])


def flickr8k(data: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Texts by caption, and by image."""
    texts = dict(line.split("\t") for line in lines(data / "flickr8k" / "Flickr8k.token.txt.gz"))
    of_image: dict[str, list[str]] = {}
    for name, text in texts.items():
        of_image.setdefault(name.split("#")[0], []).append(text)
    return texts, of_image


def _judged(data, rated, ratings_of) -> Judged:
    texts, of_image = flickr8k(data)
    rows = [line.split("\t") for line in rated]
    rows = [row for row in rows if row[1].split("#")[0] != row[0]]
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


def training(data: Path, judged: frozenset[str], seed: int) -> NNEvalExamples:
    """COCO and Flickr30k test images with 12 captioners each, without the judged photos."""
    parts = [
        training_sets.build_examples(without(people, judged), captioners(data, dataset), seed)
        for dataset, people in (
            ("mscoco", coco(data, "test")),
            ("flickr30k", flickr30k(data, "test_2016")),
        )
    ]
    return NNEvalExamples(
        [image for part in parts for image in part.images],
        [caption for part in parts for caption in part.captions],
        [each for part in parts for each in part.reference_sets],
        np.concatenate([part.human for part in parts]),
    )


def corpus(data: Path, judged: frozenset[str], jvm) -> DocumentFrequencies:
    """Of the training images and Flickr30k's training split, without the judged photos."""
    people = [coco(data, "test"), flickr30k(data, "test_2016"), flickr30k(data, "train")]
    sets = [said for part in people for said in without(part, judged).values()]
    return frequencies.collect_frequencies(references.prepare_references(sets, "ptb", jvm))


def measured(names, captions, reference_sets, tools, keep: Path, label: str) -> np.ndarray:
    """(captions, features), from the folder where they are there already."""
    what = json.dumps([names, list(captions), list(reference_sets), tools.frequencies.digest])
    path = keep / f"{label}-{hashlib.sha256(what.encode()).hexdigest()[:12]}.npy"
    if not path.is_file():
        found = features.measure_texts(names, captions, reference_sets, "ptb", tools)
        keep.mkdir(parents=True, exist_ok=True)
        np.save(path, found.values)
    return np.load(path)
