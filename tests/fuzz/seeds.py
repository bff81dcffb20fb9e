"""Writes the right inputs of which others are made: `PYTHONPATH=.:tests:tests/helpers python -m
fuzz.seeds`. They are small, so that most changes hit structure, and are kept in `corpus`.
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
KINDS = ("vit-gpt2", "blip", "git", "llava-llama", "blip2-opt")
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
    from helpers import huggingface_folders

    for kind in KINDS:
        made = folder / kind
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


def gates() -> Iterator[tuple[str, bytes]]:
    texts = (
        "cider_d >= baseline - 0.01",
        "bleu_4 > 0.3",
        "no_significant_drop(cider_d, bleu_4)",
        "perplexity <= (baseline * 1.02 + 2) / 3",
        "rouge_l => .5",
        "CIDEr-D >= 40",
        "0.3 <= meteor",
        "no_significant_drop(all)",
    )
    yield from ((str(number), text.encode()) for number, text in enumerate(texts))


def fields() -> Iterator[tuple[str, bytes]]:
    """The name of a reader's row, and the values of a field, one a line."""
    texts = (
        "Upload-Offset\n17",
        "Upload-Offset\n17;a=1\n18",
        "Upload-Complete\n?1",
        "Upload-Metadata\nkind ZGF0YXNldA==,name dGlueQ==",
        "Tus-Resumable\n1.0.0",
        "Prefer\nrespond-async, wait=10",
        'Idempotency-Key\n"a \\"key\\""',
        "Last-Event-ID\n12",
        'If-None-Match\nW/"3", "4"',
        "If-Match\n*",
        "Content-Type\napplication/json; charset=utf-8",
        "cursor\nabc",
    )
    yield from ((str(number), text.encode()) for number, text in enumerate(texts))


MADE = {
    "checkpoints": checkpoints,
    "columns": columns,
    "packages": packages,
    "datasets": datasets,
    "gates": gates,
    "fields": fields,
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
