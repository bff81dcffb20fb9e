"""Writes the right files of which others are made: `PYTHONPATH=.:tests:tests/helpers python -m
fuzz.seeds`. They are small, so that most changes hit structure, and are kept in `corpus`. Gates and
fields are texts, which stand there alone: of a field its name, and then its values, one a line.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fuzz import edits
from helpers import (
    columns_files,
    contract_files,
    onnx_bundle_files,
    plugin_packages,
    torch_captioners,
)
from helpers.contract_files import line, pax_record, tar_block, tar_entry

CORPUS = Path(__file__).parent / "corpus"
KINDS = ("vit-gpt2", "blip", "git")
PROMPTED = ("qwen2_5_vl", "blip-2")
_SMALL = 120_000  # bytes of a seed


def checkpoints() -> Iterator[tuple[str, bytes]]:
    for architecture in ("init", "merge"):
        yield f"{architecture}", contract_files.checkpoint(architecture, "lstm")
    yield "plugin", plugin_packages.checkpoint(words=5, size=2)[0]
    yield "pieces", plugin_packages.of_pieces()
    yield (
        "notes.safetensors",
        contract_files.checkpoint(metadata={"team": "vision", "prescore_plugin": "x"}),
    )


def columns() -> Iterator[tuple[str, bytes]]:
    yield "plain", columns_files.columns()
    yield "words", columns_files.columns(base=columns_files.WITH_WORDS)
    yield "pieces", columns_files.columns(base=columns_files.WITH_PIECES)


def packages() -> Iterator[tuple[str, bytes]]:
    """Models of several files, as deflated zips: they are packed anew in all ways."""
    words = json.dumps(torch_captioners.WORDS).encode()
    given = torch_captioners.with_encoder(torch_captioners.map_of("init")).encode()
    weights = contract_files.checkpoint()
    whole = {"model.safetensors": weights, "map.toml": given, "vocabulary.json": words}
    yield "state-dict", edits.packed([*whole.items()], "deflated zip")
    with tempfile.TemporaryDirectory() as name:
        folder = onnx_bundle_files.write(Path(name) / "bundle")
        yield "onnx", _of_folder(folder)
        yield from _transformers(Path(name))


def _transformers(folder: Path) -> Iterator[tuple[str, bytes]]:
    from helpers import adapter_folders, huggingface_folders, vision_language_folders

    pairs = adapter_folders.make_pairs({"model.layers.0.q_proj": (3, 4), "lm_head": (5, 4)})
    patterns = {"alpha_pattern": {r".*q_proj": 2}, "rank_pattern": {"lm_head": 3}}
    yield "adapter", _of_folder(adapter_folders.write(folder / "adapter", pairs, **patterns))
    for kind in (*KINDS, *PROMPTED):
        made = folder / kind
        if kind in PROMPTED:
            vision_language_folders.save_model(made, kind)
        else:
            huggingface_folders.make(made, kind, trained=False)
        weights = made / "model.safetensors"
        weights.write_bytes(_of_zeros(weights.read_bytes()))
        yield f"{kind}", _of_folder(made)


def _of_zeros(data: bytes) -> bytes:
    """The same file with all values 0, which takes little room in a zip."""
    start = 8 + int.from_bytes(data[:8], "little")
    return data[:start] + bytes(len(data) - start)


def _of_folder(folder: Path) -> bytes:
    files = [(each.name, each.read_bytes()) for each in sorted(folder.iterdir())]
    return edits.packed(files, "deflated zip")


def datasets() -> Iterator[tuple[str, bytes]]:
    lines = line(id=7) + line(
        "b.jpg", ["two cats", "", "naïve 🐈"], split="train", more=[1.5, None]
    )
    alone = {"captions.jsonl": lines}
    yield "captions", edits.packed([*alone.items()], "tar")
    both = {**alone, "features.safetensors": contract_files.features()}
    yield "features", edits.packed([*both.items()], "pax tar")
    grid = contract_files.features(
        tensors={"features": ("F32", (2, 4, 3)), "counts": ("U16", (2,))}
    )
    pictures = {
        "images/a.jpg": b"\xff\xd8\xff\xe0" + bytes(20),
        "images/b.jpg": b"GIF89a" + bytes(9),
    }
    more = {**alone, "features.safetensors": grid, **pictures, "./notes.txt": b"x"}
    yield "regions", edits.packed([*more.items()], "tar")
    long = tar_entry(
        b"h", pax_record(b"path", b"captions.jsonl") + pax_record(b"mtime", b"1"), b"x"
    )
    yield (
        "extended.tar",
        contract_files.tar(tar_block(b"folder", 0, b"5"), long + tar_entry(b"captions", lines)),
    )
    yield "lines", lines


MADE = {
    "checkpoints": checkpoints,
    "columns": columns,
    "packages": packages,
    "datasets": datasets,
}


def main() -> None:
    for folder in sys.argv[1:] or MADE:
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        for name, data in MADE[folder]():
            if len(data) > _SMALL:
                print(f"{folder}/{name}: {len(data):,} bytes are too many for a seed")
                continue
            (CORPUS / folder / name).write_bytes(data)
            print(f"{folder}/{name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
