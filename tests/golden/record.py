"""PYTHONPATH=tests python -m golden.record: writes the golden files by what this version answers.

README.md says what they are. Needs the two jars of SPICE in PRESCORE_ASSETS, or in
../shared/assets.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import encoders
from builders import model, tensors
from fleet import Fleet, bundle, bundle_of
from golden import home as golden
from golden import story, telling
from oracles import captioner as oracle
from workers import checkpoints

JARS = Path(__file__).resolve().parents[3] / "shared" / "assets"
WORDS, SIZE, FEATURE_SIZE = 16, 6, 5
AGREED_IMAGES = 3
LAYER = 1


def make_files(folder: Path) -> dict[str, bytes]:
    """What the story uploads."""
    rng = np.random.default_rng(0)
    rows = {
        count: rng.normal(size=(count, FEATURE_SIZE)).astype(np.float32)
        for count in (story.FEW_IMAGES, story.MANY_IMAGES)
    }
    sayings = bundle_of(story.PEOPLE, training=story.TRAINING)
    found = {
        "sayings.tar": sayings,
        "more-sayings.tar": bundle_of(story.MORE_PEOPLE, training=story.TRAINING),
        "pictures.tar": bundle(24, words=WORDS, feature_size=FEATURE_SIZE),
        "few.tar": bundle_of(story.FEW, rows[story.FEW_IMAGES]),
        "many.tar": bundle_of(story.MANY, rows[story.MANY_IMAGES]),
        "broken.tar": bundle_of(story.FEW).replace(b'"1.jpg"', b'"0.jpg"'),
        "nothing.model": b"this is no checkpoint",
    }
    kinds = [(name, *name.split("-")) for name in story.CHECKPOINTS]
    kinds.append(("last", "merge", "gru"))
    agreeing = story.CHECKPOINTS.index(story.AGREEING)
    found["agreed.tar"] = _agreed(*kinds[agreeing][1:], agreeing)
    for seed, (name, architecture, cell) in enumerate(kinds):
        found[f"{name}.model"] = _checkpoint(folder, architecture, cell, seed, FEATURE_SIZE)
    found["narrow.model"] = _checkpoint(folder, "merge", "gru", 0, FEATURE_SIZE - 1)
    return found


def _checkpoint(folder: Path, architecture: str, cell: str, seed: int, features: int) -> bytes:
    path = folder / "model.safetensors"
    arrays = _arrays(architecture, cell, seed, features)
    checkpoints.write(path, model(architecture, cell, arrays))
    return path.read_bytes()


def _arrays(architecture: str, cell: str, seed: int, features: int) -> dict[str, Any]:
    return tensors(architecture, cell, seed=seed, size=SIZE, features=features, words=WORDS)


def _agreed(architecture: str, cell: str, seed: int) -> bytes:
    """References that begin as this model's greedy captions do, some to the end."""
    rows = np.random.default_rng(1).normal(size=(AGREED_IMAGES, FEATURE_SIZE)).astype(np.float32)
    arrays = _arrays(architecture, cell, seed, FEATURE_SIZE)
    people = {}
    for image, row in enumerate(rows):
        said = [f"w{word}" for word in oracle.greedy(architecture, cell, arrays, row, max_words=6)]
        people[f"{image}.jpg"] = [" ".join(said), " ".join([*said[: image + 1], "w3", "w5"])]
    return bundle_of(people, rows)


def make_assets(home: Path) -> None:
    """Word vectors and a language model, registered by the command."""
    home.mkdir()
    encoders.SIZE, encoders.LAYERS = 8, 2
    encoder = encoders.make(home / "encoder")
    vectors = home / "vectors.txt"
    vectors.write_text("\n".join([*story.VECTORS, ""]), "utf-8")
    environment = {**os.environ, "PRESCORE_HOME": str(home)}
    for asked in (
        ["word-vectors", str(vectors)],
        ["encoder", str(encoder), "--layer", str(LAYER)],
    ):
        command = [sys.executable, "-m", "workers", "assets", "add", *asked]
        subprocess.run(command, check=True, env=environment)
    vectors.unlink()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = folder / "home"
        files = make_files(folder)
        make_assets(home)
        posts, answers = telling.tell(
            Fleet(home, PRESCORE_ASSETS=os.environ.get("PRESCORE_ASSETS", str(JARS))),
            Fleet(home, PRESCORE_ASSETS=""),
            files,
        )
        record = golden.rows_at(home)
        _check_ended(record["tables"])
        record["files"] = golden.files_of(home, ("assets", "encoder"))
        blobs = _blobs(home, record)
    posts = [{**post, **_content(post, files, blobs)} for post in posts]
    texts = golden.Pool()
    posts = texts.put(posts, ("body",))
    _write("posts", _object(posts=posts, texts=texts.packed))
    texts = golden.Pool()
    answers = texts.put(answers, ("body",))
    _write(
        "answers", _object(made_on=golden.kind_of_machine(), answers=answers, texts=texts.packed)
    )
    _write("keys", _object(**golden.keys_of(record)))
    texts = golden.Pool()
    tables = {
        name: _Raw(_object(columns=table["columns"], rows=texts.put(table["rows"])))
        for name, table in record.pop("tables").items()
    }
    _write("record", _object(**record, tables=_Raw(_object(**tables)), texts=texts.packed))
    _write("blobs", _object(**{digest: golden.pack(data) for digest, data in blobs.items()}))


def _check_ended(tables: dict[str, Any]) -> None:
    """What is under way would go on in a home that is restored."""
    columns, rows = tables["evaluations"].values()
    place = columns.index("finished_at")
    assert all(row[place] is not None for row in rows)
    assert not tables["outbox"]["rows"]


def _blobs(home: Path, record: dict[str, Any]) -> dict[str, bytes]:
    """Those that a row names."""
    named = set(re.findall(r"sha256:[0-9a-f]{64}", json.dumps(record["tables"])))
    found = {}
    for digest in sorted(named):
        path = home / "blobs" / "objects" / digest[7:9] / digest[9:]
        if path.is_file():
            found[digest] = path.read_bytes()
    return found


def _content(post: dict[str, Any], files: dict[str, bytes], blobs: dict[str, bytes]) -> dict:
    """What was uploaded; what was refused is no blob."""
    if "file" not in post:
        return {}
    data = files[post["file"]]
    digest = golden.digest_of(data)
    return {"digest": digest} if digest in blobs else {"content": golden.pack(data)}


# Each thing on a line of its own.


class _Raw(str):
    __slots__ = ()


def _object(**members: Any) -> str:
    inside = (f"{json.dumps(name)}: {_value(value)}" for name, value in members.items())
    return "{\n" + ",\n".join(inside) + "\n}"


def _value(value: Any) -> str:
    if isinstance(value, _Raw):
        return value
    return _lines(value) if isinstance(value, list) and value else _line(value)


def _lines(items: Iterable[Any]) -> str:
    return "[\n" + ",\n".join(map(_line, items)) + "\n]"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _write(name: str, text: str) -> None:
    (golden.FOLDER / f"{name}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
