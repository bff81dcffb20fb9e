"""Faults that the first opening of an ONNX bundle finds: a tokenizer that is none or
another network's, graphs that give no numbers, or other shapes from call to call.
"""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

from helpers import onnx_bundle_files as files
from helpers import tokenizer_files
from helpers.onnx_bundle_files import STATE, model, node, tensor, values
from service.contract.errors import InvalidPackage, UnusableCheckpoint

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_sandbox")]

HEIGHT, WIDTH = 5, 6
PREPROCESSING = {"size": {"height": HEIGHT, "width": WIDTH}, "resample": 3}


def _of_pictures(folder, **preprocessing):
    tokenizer, given = tokenizer_files.byte_pieces(), {**PREPROCESSING, **preprocessing}
    files.of_pixels(folder, tokenizer, given, (3, HEIGHT, WIDTH))
    return folder


TOKENIZERS = {
    "nothing": ("", "tokenizer.json describes no tokenizer"),
    "a file's name for words": (
        '{"model": {"type": "WordLevel", "vocab": "/etc/passwd", "unk_token": "x"}}',
        "tokenizer.json describes no tokenizer",
    ),
    "a piece that the network does not know": (
        '{"model": {"type": "WordLevel", "vocab": {"a": 9999}, "unk_token": "a"}}',
        "has a piece 9999, the model knows",
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_that_does_not_fit_is_refused(name, tmp_path, opened):
    folder, (content, said) = _of_pictures(tmp_path / "mine"), TOKENIZERS[name]
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(InvalidPackage, match=said) as told:
        opened(folder)
    assert told.value.pointer == "/tokenizer.json"
    assert "root:" not in told.value.detail


def _step(*nodes, more=()):
    """A step of the small network whose last nodes are these."""
    usual = [node(*each) for each in files.STEP[:-1]]
    return files.step(files.arrays(), [*usual, *nodes], more)


def _logits(value):
    return _step(
        node("MatMul", "h1 O", "plain"),
        node("Add", "plain odd", "scores"),
        more=[tensor("odd", np.float32(value))],
    )


DOUBLE = _step(node("MatMul", "h1 O", "scores"), node("Cast", "h1", "h2", to=TensorProto.DOUBLE))
DOUBLE.graph.output[1].CopyFrom(
    helper.make_tensor_value_info("h2", TensorProto.DOUBLE, ("n", STATE))
)
LOST = files.step(
    files.arrays(),
    [
        node("Gather", "E ids", "word"),
        node("Add", "word picture", "h1"),
        node("MatMul", "h1 O", "scores"),
        node("Mul", "h nothing", "h2"),
    ],
    [tensor("nothing", np.float32(np.nan))],
)
LOST.graph.output[1].name = "h2"
FIRST_RUN = {
    "logits that are no numbers": (
        {"step": _logits(np.nan)},
        {},
        "step: expected numbers as logits after an image of zeros and START, found",
    ),
    "logits that are infinite": ({"step": _logits(np.inf)}, {}, "step: expected numbers as logits"),
    "all words impossible": ({"step": _logits(-np.inf)}, {}, "step: expected numbers as logits"),
    "images that are no numbers": (
        {"look": files.look({**files.arrays(), "look": np.full((7, 5), np.nan, np.float32)})},
        {},
        "expected numbers in all images and states, found NaN",
    ),
    "a state that is no number, of which nothing depends": (
        {"step": LOST},
        {"state": [{"first": "h0", "before": "h", "after": "h2"}]},
        "expected numbers in all images and states, found NaN",
    ),
    "a state of another type than the next step reads": (
        {"step": DOUBLE},
        {"state": [{"first": "h0", "before": "h", "after": "h2"}]},
        "step: .*(Unexpected input data type|Expected)",
    ),
}


@pytest.mark.parametrize("name", FIRST_RUN)
def test_what_only_running_shows_is_found_when_a_bundle_is_opened(name, tmp_path, opened):
    graphs, changes, said = FIRST_RUN[name]
    folder = files.write(tmp_path / "mine", manifest={**files.MANIFEST, **changes}, **graphs)
    with pytest.raises(UnusableCheckpoint, match=said):
        opened(folder)


def test_a_word_that_is_never_said_is_no_fault(tmp_path, opened):
    never = np.zeros(len(files.WORDS), np.float32)
    never[0] = -np.inf
    opened(files.write(tmp_path / "mine", step=_logits(never)))


def test_a_score_that_gives_no_numbers_is_found_too(tmp_path, opened):
    score = model(
        [node("Gather", "E ids", "scores")],
        values(ids=["n", "l"]),
        values(scores=("n", "l", len(files.WORDS))),
        [tensor("E", np.full((9, 9), np.nan, np.float32))],
    )
    manifest = {
        **files.MANIFEST,
        "score": {"file": "score.onnx", "words": "ids", "logits": "scores"},
    }
    folder = files.write(tmp_path / "mine", manifest=manifest, score=score)
    with pytest.raises(UnusableCheckpoint, match="score: expected numbers as logits"):
        opened(folder)


def test_pictures_that_become_different_shapes_are_refused(tmp_path, opened):
    """Rows that `look` gives have one shape, also where it is asked for several times."""
    folder = _of_pictures(tmp_path / "mine", image_mean=[0.0] * 3, image_std=[0.001] * 3)
    look = model(
        [
            node("Flatten", "pixels", "flat"),
            node("MatMul", "flat F", "h0"),
            node("ReduceMax", "pixels", "most", keepdims=0),
            node("Cast", "most", "many", to=TensorProto.INT64),
            node("Unsqueeze", "many zero", "wide"),
            node("Shape", "h0", "rows", start=0, end=1),
            node("Concat", "rows wide", "shape", axis=0),
            node("ConstantOfShape", "shape", "seen"),
        ],
        values(pixels=("n", 3, HEIGHT, WIDTH)),
        values(seen=("n", "w"), h0=("n", STATE)),
        [
            tensor("F", np.zeros((3 * HEIGHT * WIDTH, STATE), np.float32)),
            tensor("zero", np.array([0])),
        ],
    )
    words = tokenizer_files.byte_pieces().get_vocab_size()
    step = files.step(
        files.arrays(words=words),
        [
            node("Gather", "E ids", "word"),
            node("ReduceSum", "picture", "all", keepdims=0),
            node("Add", "word all", "h1"),
            node("MatMul", "h1 O", "scores"),
            node("Identity", "h", "unread"),
        ],
    )
    step.graph.input[1].CopyFrom(values(picture=("n", "w"))[0])
    (folder / "look.onnx").write_bytes(look.SerializeToString())
    (folder / "step.onnx").write_bytes(step.SerializeToString())
    one = opened(folder)
    pictures = torch.zeros(40, HEIGHT, WIDTH, 3, dtype=torch.uint8)
    pictures[20:] = 1
    with pytest.raises(UnusableCheckpoint, match=r"look: expected one shape for all images"):
        one.look(pictures)
