"""Attacks on the workers' time and memory by a team with a key: what it sends, again and again."""

import itertools
import json
import random
import threading
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np
import torch

from helpers import onnx_bundle_files, synthetic_pictures, tokenizer_files, torch_captioners
from helpers.fleet import bundle_of, digest
from helpers.tars import packed_folder

PICTURES = 8
_PREPROCESSING = {"size": {"height": 5, "width": 6}, "resample": 3}
_LONG = "q" * 1_000_000


class Attack:
    """`prepare` sends what is needed once; `send` sends one more, which nobody has sent before."""

    def __init__(self, client: httpx.Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self._numbers = itertools.count()

    def prepare(self) -> None:
        pass

    def send(self, number: int) -> httpx.Response:
        raise NotImplementedError

    def go_on(self, over: threading.Event, pause: float) -> list[int]:
        """Send until it is over; returns the statuses of the answers."""
        found = []
        while not over.is_set():
            found.append(self.send(next(self._numbers)).status_code)
            over.wait(pause)
        return found

    def put_checkpoint(self, folder: Path) -> httpx.Response:
        content = packed_folder(folder)
        return self.client.put(f"/v1/checkpoints/{digest(content)}", content=content)


class LoopingGraphs(Attack):
    """Bundles of 30 kB whose graph never ends."""

    def send(self, number: int) -> httpx.Response:
        weights = onnx_bundle_files.arrays(number)
        usual = [onnx_bundle_files.node(*each) for each in onnx_bundle_files.STEP[:-1]]
        last = [
            onnx_bundle_files.node("MatMul", "h1 O", "plain"),
            onnx_bundle_files.make_loop(),
            onnx_bundle_files.node("Add", "plain bomb", "scores"),
        ]
        more = [
            onnx_bundle_files.tensor("yes", np.bool_(True)),
            onnx_bundle_files.tensor("zero", np.float32(0)),
        ]
        step = onnx_bundle_files.step(weights, [*usual, *last], more)
        return self.put_checkpoint(
            onnx_bundle_files.write(self.folder / f"loop {number}", step=step)
        )


class _Pieces(Attack):
    """Bundles with a tokenizer of pieces, evaluated on pictures."""

    part: str
    value: ClassVar[dict[str, Any]]
    texts: tuple[str, ...] = ("a red circle",)

    def prepare(self) -> None:
        data = self.folder / "pictures"
        data.mkdir()
        synthetic_pictures.write_dataset(data, PICTURES)
        lines = [json.loads(each) for each in (data / "captions.jsonl").read_text().splitlines()]
        text = "".join(json.dumps({**one, "references": [*self.texts]}) + "\n" for one in lines)
        (data / "captions.jsonl").write_text(text)
        answer = self.client.put("/v1/datasets/pictured", content=packed_folder(data))
        assert answer.status_code in (200, 201), answer.text

    def send(self, number: int) -> httpx.Response:
        folder = self.folder / f"pieces {number}"
        onnx_bundle_files.of_pixels(
            folder, tokenizer_files.byte_pieces(), _PREPROCESSING, (3, 5, 6), seed=number
        )
        found = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps({**found, self.part: self.value}))
        answer = self.put_checkpoint(folder)
        if answer.is_success:
            asked = {"checkpoint": answer.json()["digest"], "dataset": "pictured/test"}
            return self.client.post("/v1/evaluations", json={**asked, "postgen": ["meteor"]})
        return answer


class ExpandingDecoders(_Pieces):
    """Each piece of a caption becomes a million letters."""

    part = "decoder"
    value: ClassVar = {"type": "Replace", "pattern": {"Regex": "."}, "content": _LONG}


class DoublingNormalizers(_Pieces):
    """A letter that no sample has becomes 2^31 letters."""

    part = "normalizer"
    texts = ("a \u00fe",)
    value: ClassVar = {
        "type": "Sequence",
        "normalizers": [
            {"type": "Replace", "pattern": {"String": "\u00fe"}, "content": "\u00fe\u00fe"}
            for _ in range(31)
        ],
    }


class RepeatingTensors(Attack):
    """State dicts of 20 kB, whose tensors repeat one number 600 million times."""

    def send(self, number: int) -> httpx.Response:
        folder = self.folder / f"repeating {number}"
        folder.mkdir()
        one = torch.full((1,), float(number))
        state = {f"layer.{at}": one.as_strided((150_000_000,), (0,)) for at in range(4)}
        torch.save({**state, "plain": torch.zeros(5000)}, folder / "model.pt")
        told = torch_captioners.with_encoder(torch_captioners.map_of("init"))
        (folder / "map.toml").write_text(told)
        (folder / "vocabulary.json").write_text(json.dumps(torch_captioners.WORDS))
        return self.put_checkpoint(folder)


class LongCaptions(Attack):
    """METEOR of 300 captions of 500 words, whose references have as many."""

    def prepare(self) -> None:
        draw = random.Random(0)
        self._words = ["".join(draw.choices("abcdefghij", k=3)) for _ in range(2000)]
        people = {f"{at}.jpg": [self._caption(draw) for _ in range(5)] for at in range(300)}
        answer = self.client.put("/v1/datasets/long", content=bundle_of(people))
        assert answer.status_code in (200, 201), answer.text

    def _caption(self, draw: random.Random) -> str:
        return " ".join(draw.choices(self._words, k=500))

    def send(self, number: int) -> httpx.Response:
        draw = random.Random(number + 1)
        captions = [{"image": f"{at}.jpg", "caption": self._caption(draw)} for at in range(300)]
        asked = {"dataset": "long/test", "captions": captions, "postgen": ["meteor"]}
        return self.client.post("/v1/evaluations", json={**asked, "tokenizer": "none"})
