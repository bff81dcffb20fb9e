"""A plug-in in a worker: opened, tried out, and whatever it does, an error that names it."""

import shutil
import signal

import numpy as np
import pytest
import torch

from helpers import plugin_packages as packages
from service.contract.errors import (
    CheckpointMismatch,
    InvalidCheckpoint,
    OutOfMemory,
    PluginFailed,
    PluginUnavailable,
    UnusableCheckpoint,
)
from service.contract.formats.plugins import InstalledPlugin
from workers.inference import checkpoints, decoding, prefix, scoring
from workers.inference.plugins import registry

NAMED = "show-and-tell (acme-captioners 1.0)"


@pytest.fixture
def opened(tmp_path):
    """Open a file by a plug-in of this code."""
    folders = []

    def open_(code=None, content=None, **options):
        folder = tmp_path / str(len(folders))
        folders.append(folder)
        packages.install(folder, code=code)
        path = tmp_path / "model.safetensors"
        path.write_bytes(content or packages.checkpoint()[0])
        with packages.beside(folder):
            return checkpoints.open_captioner(path, **options)

    return open_


def _rows(images=9):
    return np.random.default_rng(4).normal(size=(images, 5)).astype(np.float32)


def _encoded(model, images=9):
    rng = np.random.default_rng(6)
    captions = [
        [" ".join(f"w{at}" for at in rng.integers(2, 60, rng.integers(0, 6))) for _ in range(3)]
        for _ in range(images)
    ]
    return model.tokens.encode(captions)


def _captions(model, rows):
    options = decoding.DecodingOptions(beam=3, min_words=1, max_words=9)
    return [each.words for each in decoding.decode_captions(model, rows, options)]


def test_it_computes_what_the_same_network_computes_in_our_own_form(opened, tmp_path):
    model = opened()
    (tmp_path / "ours.safetensors").write_bytes(packages.canonical(packages.checkpoint()[1]))
    ours = checkpoints.read_checkpoint(tmp_path / "ours.safetensors")
    rows, encoded = _rows(), _encoded(model)
    options = scoring.ScoringOptions(top=4, entropy=True)
    found, expected = (
        scoring.compute_columns(each, rows, encoded, options) for each in (model, ours)
    )
    np.testing.assert_allclose(found.logp, expected.logp, atol=1e-5)
    np.testing.assert_allclose(found.entropy, expected.entropy, atol=1e-5)
    np.testing.assert_array_equal(found.rank, expected.rank)
    np.testing.assert_array_equal(found.top_ids, expected.top_ids)
    np.testing.assert_array_equal(
        prefix.walk_prefixes(model, rows, encoded), prefix.walk_prefixes(ours, rows, encoded)
    )
    assert _captions(model, rows) == _captions(ours, rows)


LOGITS = (
    packages.changed(
        "        self.output = Product(network.words.weight.t(), network.words.bias)\n", ""
    )
    .replace("return state, state", "return self.network.words(state), {'h': (state, [state])}")
    .replace(
        "state = self.network.cell(self.network.embedding(words), state)",
        "state = self.network.cell(self.network.embedding(words), "
        "state['h'][1][0] if isinstance(state, dict) else state)",
    )
)


def test_a_network_may_give_logits_and_have_a_state_of_parts(opened):
    model, usual = opened(LOGITS), opened()
    rows, encoded = _rows(), _encoded(model)
    found, expected = (scoring.compute_columns(each, rows, encoded) for each in (model, usual))
    np.testing.assert_allclose(found.logp, expected.logp, atol=1e-5)
    assert _captions(model, rows) == _captions(usual, rows)


HIDDEN = """    def hidden(self, images, captions):
        return super().hidden(images.flip(0), captions)

    def step"""
STEP, LOOK = "return state, state", "return self.network.image(inputs)"
WRONG = {
    "raises": (STEP, "raise ValueError('no')", "failed in hidden: ValueError: no"),
    "exits": (STEP, "raise SystemExit(3)", "failed in hidden: SystemExit"),
    "hangs": (STEP, "while True: pass", "no answer within 0.3 s"),
    "few rows": (STEP, "return state[1:], state", "of `hidden`"),
    "three dimensions": (STEP, "return state[:, None], state", "expected two dimensions"),
    "no numbers": (STEP, "return state * float('nan'), state", "expected finite numbers"),
    "no tensor": (LOOK, "return None", "expected a tensor of `look`"),
    "few images": (LOOK, "return inputs[:1]", "expected 2 rows"),
    "whole numbers": (LOOK, "return inputs.long()", "floating point"),
    "other words": (
        "network.words.weight.t(), network.words.bias",
        "network.words.weight.t()[:, 1:].contiguous()",
        "expected 50 words of `output`, found 49",
    ),
    "odd attribute": ("    def look", "    batch_tokens = 0\n\n    def look", "`batch_tokens`"),
    "no captioner": ("return ShowAndTell(network, description)", "return None", "failed in"),
    "no import": ("from torch import nn", "import not_there", "failed in importing it: ModuleNot"),
    "no factory": ("def build(config, tensors, description):", "build = 3\ndef f(*_):", "factory"),
    "other teacher forcing": ("    def step", HIDDEN, "expected `hidden` to give the prob"),
    "rows of others": (
        "    def step",
        "    def select(self, state, rows):\n        return state[rows].roll(1, 0)\n\n    def step",
        "apart",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_whatever_it_does_is_an_error_that_names_it(opened, name, monkeypatch):
    monkeypatch.setattr(registry, "SECONDS", 0.3)
    old, new, told = WRONG[name]
    with pytest.raises(PluginFailed) as caught:
        opened(packages.changed(old, new))
    assert NAMED in caught.value.detail
    assert told in caught.value.detail
    assert len(caught.value.detail) < 700


def test_the_limit_of_a_call_does_not_outlive_it(opened):
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(True))
    try:
        opened()
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert heard == [True]


@pytest.mark.parametrize(("value", "fits"), [("inf", False), ("nan", False), ("-inf", True)])
def test_logits_may_say_never_and_must_be_numbers(opened, value, fits):
    code = LOGITS.replace(
        "self.network.words(state)",
        f"self.network.words(state).index_fill(1, torch.tensor([7]), float('{value}'))",
    ).replace("from torch import nn", "import torch\nfrom torch import nn")
    if fits:
        model = opened(code)
        assert np.isneginf(
            scoring.compute_columns(model, _rows(1), model.tokens.encode([["w7"]])).logp[0]
        )
    else:
        with pytest.raises(PluginFailed, match="numbers or -inf"):
            opened(code)


@pytest.mark.parametrize("shape", ["[:, 1:]", "[0]"])
def test_logits_are_of_all_words(opened, shape):
    code = LOGITS.replace("self.network.words(state),", f"self.network.words(state){shape},")
    with pytest.raises(PluginFailed, match=r"expected .* of `(output|hidden)`"):
        opened(code)


def test_what_goes_wrong_later_names_it_too(opened):
    """Made-up images pass; those of a dataset do not."""
    model = opened(packages.changed(STEP, "return state / (state.abs().max() < 40), state"))
    rows = _rows(1) * 1e4
    with pytest.raises(PluginFailed, match="finite numbers of `hidden`"):
        scoring.compute_columns(model, rows, model.tokens.encode([["w3"]]))


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"config": {"feature_size": 5}}, UnusableCheckpoint, "refused it: config or tensors"),
        ({"config": {"feature_size": 6, "size": 8}}, UnusableCheckpoint, "refused it"),
        (
            {"tensors": {"words.bias": np.full(50, np.nan, "f4")}},
            UnusableCheckpoint,
            "tensor words.bias: 50 of 50",
        ),
        ({"prescore_plugin": "other"}, PluginUnavailable, f"'other', which is not .* {'show'}"),
    ],
)
def test_a_wrong_file_is_refused(opened, changed, error, told):
    with pytest.raises(error, match=told):
        opened(content=packages.checkpoint(**changed)[0])


def test_a_file_that_takes_too_much_memory_is_not_read(opened):
    with pytest.raises(OutOfMemory, match="1,330 parameters"):
        opened(limit=1_000_000)


def test_features_of_another_size_or_encoder_are_told_as_of_any_checkpoint(opened):
    model = opened()
    with pytest.raises(CheckpointMismatch, match="size 5"):
        model.check(np.zeros((3, 6), np.float32))


def test_half_precision_is_given_in_float32(opened):
    half = {"embedding.weight": np.ones((50, 8), np.float16)}
    code = packages.changed(
        "    network.requires",
        "    assert tensors['embedding.weight'].dtype.itemsize == 4\n    network.requires",
    )
    assert opened(code, packages.checkpoint(tensors=half)[0]).device == torch.device("cpu")


def test_what_is_installed_is_found_without_importing_it(tmp_path):
    packages.install(tmp_path, code="raise RuntimeError('imported')")
    with packages.beside(tmp_path):
        assert registry.find_plugins().usable == {
            "show-and-tell": InstalledPlugin("show-and-tell", "acme-captioners", "1.0")
        }


def test_a_package_that_is_found_twice_is_one(tmp_path):
    packages.install(tmp_path / "site")
    with packages.beside(tmp_path / "site"), packages.beside(tmp_path / "site"):
        assert list(registry.find_plugins().usable) == ["show-and-tell"]
    shutil.copytree(tmp_path / "site", tmp_path / "again")
    with packages.beside(tmp_path / "site"), packages.beside(tmp_path / "again"):
        assert list(registry.find_plugins().usable) == ["show-and-tell"]


def test_two_packages_of_one_name_and_odd_names_cannot_be_used(tmp_path):
    packages.install(tmp_path, "1.0")
    packages.install(tmp_path, "2.0", package="other-captioners")
    packages.install(tmp_path, package="third", entry="Odd|Name = acme_captioners:build")
    with packages.beside(tmp_path):
        found = registry.find_plugins()
        assert found.usable == {}
        assert "acme-captioners 1.0, other-captioners 2.0" in found.wrong["'show-and-tell'"]
        assert "expected a name" in found.wrong["'Odd|Name'"]
        with pytest.raises(PluginUnavailable, match="uninstall all but one"):
            registry.load_plugin("show-and-tell")


def test_a_version_that_is_installed_over_an_imported_one_is_not_taken_for_it(tmp_path):
    """The code in memory is the old one's."""
    packages.install(tmp_path, "1.0")
    with packages.beside(tmp_path):
        registry.load_plugin("show-and-tell")
        (tmp_path / "acme_captioners-1.0.dist-info" / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: acme-captioners\nVersion: 2.0\n"
        )
        assert registry.load_plugin("show-and-tell").plugin.version == "1.0"
        registry.check_plugin(InstalledPlugin("show-and-tell", "acme-captioners", "1.0"))
        with pytest.raises(PluginUnavailable, match=r"2\.0\), this worker has .* 1\.0\)"):
            registry.check_plugin(InstalledPlugin("show-and-tell", "acme-captioners", "2.0"))


def test_a_tokenizer_that_makes_other_ids_is_refused(opened):
    fewer = '{"size": 5, "start": 1, "end": 1, "longest": 9}'
    with pytest.raises(InvalidCheckpoint, match="has a piece 5"):
        opened(content=packages.of_pieces(pieces=fewer))
