"""Tokenizers of strangers are opened in the sandbox first, where what they do hurts nobody."""

import io
import json
from math import inf

import pytest

import onnx_bundle_files as files
import plugin_packages
import tokenizer_files
from service.contract.errors import UnusableCheckpoint
from service.contract.formats import plugins
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits
from workers.sandbox import confinement

pytestmark = pytest.mark.processes


@pytest.fixture
def folder(tmp_path):
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    preprocessing = {"size": {"height": 5, "width": 6}, "resample": 3}
    files.of_pixels(
        tmp_path / "mine", tokenizer_files.byte_pieces(), preprocessing, (3, 5, 6), seed=1
    )
    return tmp_path / "mine"


def _change(folder, **parts):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


def _doubling(times):
    """Each `a` becomes two, so many times."""
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return {"type": "Sequence", "normalizers": [step] * times}


def test_a_tokenizer_that_opens_and_makes_pieces_is_accepted(folder):
    _change(folder, normalizer=_doubling(2))
    foreign_files.check_tokenizer(folder, ConversionLimits())


@pytest.mark.slow
def test_one_that_takes_all_memory_ends_its_own_process_alone(folder):
    _change(folder, normalizer=_doubling(40))
    with pytest.raises(UnusableCheckpoint, match=r"it cannot be opened: the process|more memory"):
        foreign_files.check_tokenizer(folder, ConversionLimits(memory=300_000_000))


def test_one_that_is_none_is_refused_with_a_sentence(folder):
    _change(folder, model={"type": "Mine"})
    with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer: "):
        foreign_files.check_tokenizer(folder, ConversionLimits())


@pytest.fixture
def of_plugin(tmp_path):
    """Writes a plug-in's checkpoint of pieces, whose tokenizer.json has these parts changed."""
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    whole = json.loads(
        plugins.parse_plugin_header(io.BytesIO(plugin_packages.of_pieces()), inf).tokenizer_json
    )

    def write(**parts):
        path = tmp_path / "model.safetensors"
        changed = json.dumps({**whole, **parts})
        path.write_bytes(plugin_packages.of_pieces(**{"tokenizer.json": changed}))
        return path

    return write


def test_that_of_a_plug_ins_checkpoint_is_opened_as_that_of_a_bundle(of_plugin):
    foreign_files.check_tokenizer(of_plugin(normalizer=_doubling(2)), ConversionLimits())
    with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer: "):
        foreign_files.check_tokenizer(of_plugin(model={"type": "Mine"}), ConversionLimits())


@pytest.mark.slow
def test_that_of_a_plug_in_which_takes_all_memory_ends_its_own_process_alone(of_plugin):
    with pytest.raises(UnusableCheckpoint, match=r"it cannot be opened: the process|more memory"):
        foreign_files.check_tokenizer(
            of_plugin(normalizer=_doubling(40)), ConversionLimits(memory=300_000_000)
        )
