"""`prescore judge` of many rated lines, five references each, beside pycocoevalcap's scores of a
tenth of them. It judges nothing.

    PYTHONPATH=. python tests/benchmarks/judging.py            50,000 lines
    PYTHONPATH=. python tests/benchmarks/judging.py --lines 5000

The command runs as a user starts it: Java cold, the table of METEOR unread. Real captions where
there are data, nearly every line with references of its own; else made-up ones.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import captions  # beside this file
from rows import seconds  # beside this file

from parity import systems

METRICS = "bleu,rouge_l,cider_d,meteor"
SHARE = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=50_000)
    many = parser.parse_args().lines
    images = list(_images(many))
    rng = np.random.default_rng(0)
    said = [images[at][rng.integers(5)] for at in _answers(len(images), many, rng)]
    people = [images[at % len(images)] for at in range(many)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rated.jsonl"
        _write(file, said, people, rng)
        wall, cpu = _judged(file)
    tenth = slice(0, many // SHARE)
    theirs, _ = captions.package(captions.Captions("", said[tenth], people[tenth]))
    load = os.getloadavg()[0]
    print(
        f"{many:,} lines, {len(images):,} images: {wall:.0f} s, {cpu:.0f} s of CPU; pycocoevalcap, "
        f"scores alone: {SHARE * sum(theirs.values()):.0f} s (a tenth, x {SHARE}); "
        f"{os.cpu_count()} cores, load {load:.1f}"
    )


def _images(many: int) -> Iterator[list[str]]:
    if not captions.DATA.is_dir():
        yield from captions.made_up(many).references
        return
    files = [captions.DATA / "flickr30k" / f"train.{index}.en.gz" for index in range(1, 6)]
    yield from (list(image) for image in zip(*map(systems.lines, files), strict=True))
    for split in ("test5k", "val5k"):
        for line in systems.lines(captions.DATA / "coco" / f"karpathy_{split}_refs.jsonl.gz"):
            yield json.loads(line)["captions"][:5]
    names = systems.lines(captions.DATA / "flickr8k" / "Flickr8k.token.txt.gz")
    texts = [line.split("\t")[1] for line in names]
    yield from (texts[at : at + 5] for at in range(0, len(texts), 5))


def _answers(images: int, many: int, rng: np.random.Generator) -> Iterator[int]:
    """Half the candidates are the image's own."""
    for at in range(many):
        yield at % images if rng.random() < 0.5 else int(rng.integers(images))


def _write(path: Path, said: list[str], people: list[list[str]], rng: np.random.Generator) -> None:
    ratings = rng.integers(1, 5, (len(said), 3)).tolist()
    lines = (
        json.dumps({"candidate": text, "references": references, "ratings": rated})
        for text, references, rated in zip(said, people, ratings, strict=True)
    )
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _judged(file: Path) -> tuple[float, float]:
    """Seconds of wall and of CPU."""
    command = [sys.executable, "-m", "workers", "judge", str(file), "--metrics", METRICS]
    took = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
