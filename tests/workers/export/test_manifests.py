"""The manifest that `prescore export` writes of a captioner, and refuses to write."""

import pytest
import torch
from torch import nn

from helpers import onnx_bundle_files, tokenizer_files
from service.contract.errors import RequestRefused
from service.contract.formats import onnx_bundles
from service.contract.formats.huggingface import image_processors
from workers.export import bundle_writer, manifests
from workers.export.captioner import ExportedCaptioner


class _Constant(nn.Module):
    """Logits that depend on nothing."""

    def __init__(self, words):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(1, words))

    def forward(self, words, seen, state):  # noqa: ARG002  what `step` is given
        return self.logits.expand(len(words), -1), state


class _Flat(nn.Module):
    def forward(self, pixels):
        flat = pixels.flatten(1)
        return flat, flat


def _small(**more):
    given = {
        "look": _Flat().eval(),
        "step": _Constant(300).eval(),
        "preprocessing": {"size": {"height": 4, "width": 5}, "resample": 2, "channels": "bgr"},
        "tokenizer": tokenizer_files.word_pieces(),
        "start": "[CLS]",
        "end": "[SEP]",
    }
    return ExportedCaptioner(**{**given, **more})


def test_the_manifest_says_what_becomes_of_pictures_and_which_pieces_there_are():
    tokens = manifests.describe_tokens(_small(longest=9), 300)
    said = manifests.build_manifest(_small(longest=9), 1, 1, tokens, None)
    manifest = onnx_bundles.OnnxManifest.model_validate(said)
    assert (manifest.inputs, manifest.units, manifest.seen) == ("pixels", "pieces", "pixels")
    assert manifest.preprocessing.channels == "bgr"
    assert manifest.preprocessing.shape == (4, 5)
    assert manifest.pieces.model_dump() == {
        "file": "tokenizer.json", "size": 300, "start": 1, "end": 2, "longest": 9,
    }  # fmt: skip
    assert tokens.content == tokenizer_files.word_pieces().to_str()


def test_a_processor_of_transformers_is_said_in_full():
    """Its defaults are the library's for this kind."""
    processor = {
        "image_processor_type": "CLIPImageProcessorFast",
        "size": {"shortest_edge": 36},
        "crop_size": 32,
        "do_convert_rgb": True,
    }
    found = manifests.read_preprocessing(_small(preprocessing=processor))
    own = image_processors.parse_image_processor(processor, "preprocessing")
    assert found.model_dump().items() >= own.model_dump(include={*type(found).model_fields}).items()
    assert found.size.shortest_edge == 36
    assert (found.shape, found.resample, found.channels) == ((32, 32), 3, "rgb")
    assert found.image_mean == [0.48145466, 0.4578275, 0.40821073]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"feature_size": 5}, "either feature_size, .* or preprocessing, .* found both"),
        ({"preprocessing": None}, "either feature_size, .* found none"),
        ({"preprocessing": {"size": {"height": 4, "width": 5}}}, "preprocessing/resample: exp"),
        ({"words": ["a"]}, "words and unknown: expected none beside a tokenizer of pieces"),
        ({"tokenizer": object()}, "tokenizer: expected a name, .* found object"),
        ({"start": "<s>"}, "start: the tokenizer has no '<s>'"),
        ({"tokenizer": "karpathy"}, "expected words and unknown, or a tokenizer of pieces"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, said, tmp_path):
    with pytest.raises(RequestRefused, match=said):
        bundle_writer.write_bundle(tmp_path / "bundle", _small(**change))
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_with_more_pieces_than_its_graphs_know_is_refused(tmp_path):
    folder, tokenizer = tmp_path / "bundle", tokenizer_files.word_pieces()
    preprocessing = {"size": {"height": 4, "width": 5}, "resample": 2}
    onnx_bundle_files.of_pixels(folder, tokenizer, preprocessing, (3, 4, 5))
    tokenizer.add_tokens(["zebra"])
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    with pytest.raises(RequestRefused, match=r"has a piece [0-9]+, the model knows"):
        bundle_writer._judged(folder)
