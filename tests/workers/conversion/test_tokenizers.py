"""Tokenizers of strangers are opened in the sandbox first, where what they do hurts nobody."""

import io
import json
from math import inf

import pytest

from helpers import onnx_bundle_files as files
from helpers import plugin_packages, tokenizer_files
from service.contract.errors import UnusableCheckpoint
from service.contract.formats import plugins
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_sandbox")]


def _bundle(folder, parts):
    """An ONNX bundle whose tokenizer.json has these parts changed."""
    preprocessing = {"size": {"height": 5, "width": 6}, "resample": 3}
    files.of_pixels(folder, tokenizer_files.byte_pieces(), preprocessing, (3, 5, 6), seed=1)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


def _plugin(path, parts):
    """A plug-in's checkpoint of pieces, changed likewise."""
    header = plugins.parse_plugin_header(io.BytesIO(plugin_packages.of_pieces()), inf)
    changed = json.dumps({**json.loads(header.tokenizer_json), **parts})
    path.write_bytes(plugin_packages.of_pieces(**{"tokenizer.json": changed}))


@pytest.fixture(params=[_bundle, _plugin])
def checked(request, tmp_path):
    """Checks the tokenizer of a file whose parts are these."""

    def check(limits=ConversionLimits(), **parts):
        request.param(tmp_path / "model", parts)
        foreign_files.check_tokenizer(tmp_path / "model", limits)

    return check


def _doubling(times):
    """Each `a` becomes two, so many times."""
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return {"type": "Sequence", "normalizers": [step] * times}


def test_a_tokenizer_that_opens_and_makes_pieces_is_accepted(checked):
    checked(normalizer=_doubling(2))


@pytest.mark.slow
def test_one_that_takes_all_memory_ends_its_own_process_alone(checked):
    with pytest.raises(UnusableCheckpoint, match=r"it cannot be opened: the process|more memory"):
        checked(ConversionLimits(memory=300_000_000), normalizer=_doubling(40))


def test_one_that_is_none_is_refused_with_a_sentence(checked):
    with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer: "):
        checked(model={"type": "Mine"})
