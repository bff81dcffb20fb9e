"""What a checkpoint says of itself: judged without a tensor, refused with what was expected."""

import dataclasses
import io
import pickle

import pytest

from helpers import contract_files
from helpers.contract_files import ENCODER, WORDS, checkpoint, checkpoint_shapes
from service.contract import errors
from service.contract.formats import checkpoint_header
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointDescription, FeatureEncoder

KINDS = [(a, c) for a in ("init", "pre", "par", "merge") for c in ("gru", "lstm")]


def judge(content):
    return checkpoint_header.parse_checkpoint_header(io.BytesIO(content), len(content))


def refused(content, error, *words, pointer=None):
    caught = contract_files.refused(lambda: judge(content), error, *words)
    assert caught.pointer == pointer


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_a_file_made_by_hand_from_the_contract_is_described(architecture, cell):
    content = checkpoint(architecture, cell, metadata={"epoch": "7", "note": "😀 été"})
    found = judge(content)
    config = RecurrentConfig(cell=cell, size=2, feature_size=3)
    encoder = FeatureEncoder(name="vgg", digest="sha256:0")
    notes = {"epoch": "7", "note": "😀 été"}
    expected = CheckpointDescription(architecture, config, WORDS, "blanks", encoder, notes)
    assert found.description == expected
    assert {name: list(tensor.shape) for name, tensor in found.tensors.items()} == (
        checkpoint_shapes(architecture, cell, 2, 3, len(WORDS))
    )
    values = content[found.data_start :]
    assert not any(values)
    assert len(values) == 4 * found.parameters


def test_a_file_is_judged_where_it_lies(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(checkpoint())
    assert checkpoint_header.read_checkpoint_header(path) == judge(checkpoint())
    path.write_bytes(checkpoint()[:-1])
    with pytest.raises(errors.TensorLayout, match="the file is cut off"):
        checkpoint_header.read_checkpoint_header(path)


def test_a_note_does_not_take_the_place_of_what_is_required():
    description = judge(checkpoint()).description
    written = checkpoint_header.dump_checkpoint_metadata(description)
    noted = dataclasses.replace(description, notes={"prescore": "2"})
    assert checkpoint_header.dump_checkpoint_metadata(noted) == written


def test_each_tensor_has_one_of_some_precisions_and_others_are_refused_by_its_name():
    for dtype in ("F32", "F16", "BF16"):
        found = judge(checkpoint(dtypes={"image.bias": dtype}))
        assert found.tensors["image.bias"].dtype == dtype
    for dtype in ("F64", "U16"):
        content = checkpoint(dtypes={"gates.bias": dtype})
        words = ("tensor gates.bias", "expected a dtype of F32, F16, BF16", f"found {dtype}")
        refused(content, errors.TensorMismatch, *words, pointer="/gates.bias")


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_every_tensor_is_missed_and_every_wrong_shape_is_named_with_the_right_one(
    architecture, cell
):
    for name, shape in checkpoint_shapes(architecture, cell, 2, 3, len(WORDS)).items():
        content = checkpoint(architecture, cell, tensors={name: None})
        refused(content, errors.TensorMismatch, "needs the tensors", f"missing: {name}")
        transposed = [[*reversed(shape)]] if shape != [*reversed(shape)] else []
        for wrong in (*transposed, [*shape, 1], [], [shape[0] + 1, *shape[1:]], [0, *shape[1:]]):
            content = checkpoint(architecture, cell, tensors={name: wrong})
            said = f"tensor {name}: config and vocabulary ask for shape {shape}, found {wrong}"
            refused(content, errors.TensorMismatch, said, pointer=f"/{name}")


@pytest.mark.parametrize(
    ("architecture", "tensors", "words"),
    [
        ("init", {"initial": [2]}, ("unknown: 'initial'",)),
        ("merge", {"initial": None}, ("missing: initial",)),
        ("init", {"optimizer.step": [1], "a\nb": [1]}, (r"unknown: 'a\nb', 'optimizer.step'",)),
        ("init", {"gates.bias": None, "rnn.bias": [4]}, ("missing: gates.bias", "'rnn.bias'")),
        ("init", {f"{'x' * 100}{n}": [1] for n in range(100)}, ("unknown: 'xxx",)),
    ],
)
def test_tensors_that_do_not_belong_are_named(architecture, tensors, words):
    content = checkpoint(architecture, tensors=tensors)
    refused(content, errors.TensorMismatch, "needs the tensors", *words)


REQUIRED = ("prescore", "architecture", "config", "vocabulary", "tokenizer", "encoder")


@pytest.mark.parametrize("names", [*((name,) for name in REQUIRED), REQUIRED])
def test_missing_metadata_is_named(names):
    content = checkpoint(metadata=dict.fromkeys(names))
    words = (f"expected the metadata {', '.join(REQUIRED)}", f"missing: {', '.join(names)}")
    pointer = f"/__metadata__/{names[0]}"
    refused(content, errors.MetadataInvalid, *words, pointer=pointer)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("prescore", "2", ("expected '1'", "found '2'")),
        ("architecture", "parallel", ("'init' or 'pre' or 'par' or 'merge'", "'parallel'")),
        ("architecture", "x" * 10_000, ("'init' or", "found 'xxx")),
        ("tokenizer", "ptb", ("'karpathy' or 'blanks'", "found 'ptb'")),
    ],
)
def test_a_value_that_is_not_among_the_known_ones_is_refused(name, text, words):
    pointer = f"/__metadata__/{name}"
    refused(checkpoint(metadata={name: text}), errors.MetadataInvalid, *words, pointer=pointer)


def test_metadata_beyond_the_contract_is_kept_up_to_a_limit():
    notes = {f"note {n}": "x" for n in range(58)}
    assert judge(checkpoint(metadata=notes)).description.notes == notes
    refused(checkpoint(metadata={**notes, "one": "more"}), errors.HeaderTooLarge, "65", "64")
    assert judge(checkpoint(metadata={"n": "x" * 100_000})).description.notes["n"][-1] == "x"
    long = {"n": "x" * 100_001}
    refused(checkpoint(metadata=long), errors.HeaderTooLarge, "'n' has 100001", "at most 100000")
    long = {"config": ENCODER + " " * 100_001}
    refused(checkpoint(metadata=long), errors.HeaderTooLarge, "'config'", "at most 100000")


def test_an_error_keeps_its_pointer_on_the_way_between_processes():
    error = errors.MetadataInvalid("expected this, found that", pointer="/__metadata__/prescore")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert (type(again), again.detail, again.pointer) == (type(error), error.detail, error.pointer)
