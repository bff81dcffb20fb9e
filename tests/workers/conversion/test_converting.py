"""Models of torch's own layers, converted by a map: what they compute stays what it is. The oracle
is the model itself, run by torch.
"""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from helpers import documents
from helpers.builders import ENCODER
from helpers.conversions import ours, theirs
from helpers.torch_captioners import (
    FEATURES,
    LAYERS,
    STATE,
    WORD,
    WORDS,
    arrays,
    made,
    map_of,
    with_encoder,
)
from service.contract.errors import RequestRefused
from service.contract.formats import (
    architectures,
    bundles,
    checkpoint_header,
    map_files,
    state_dicts,
)
from service.contract.formats.bundles import BundleItem
from workers.cli.convert import convert as command
from workers.conversion import canonical_checkpoints, proposal
from workers.inference import features


def _run(*arguments):
    return CliRunner().invoke(command, ["checkpoint", *map(str, arguments)])


@pytest.fixture
def files(tmp_path):
    """A model's tensors, its words, and a bundle's place for what is written."""

    def written(model, given):
        save_file(model.state_dict(), tmp_path / "model.safetensors")
        (tmp_path / "words.json").write_text(json.dumps(WORDS))
        (tmp_path / "names.toml").write_text(with_encoder(given))
        words, names = tmp_path / "words.json", tmp_path / "names.toml"
        return [tmp_path / "model.safetensors", "--vocabulary", words, "--map", names]

    return written


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("cell", LAYERS)
@pytest.mark.parametrize("architecture", architectures.RECURRENT)
def test_a_converted_model_computes_what_it_computed(files, tmp_path, architecture, cell, between):
    model, out = made(architecture, cell, between), tmp_path / "captioner.safetensors"
    done = _run(*files(model, map_of(architecture, between)), "--out", out)
    assert done.exit_code == 0, done.output
    features = torch.randn(3, FEATURES, generator=torch.Generator().manual_seed(1))
    expected = [*theirs(model, features, WORDS)]
    np.testing.assert_allclose(ours(out, features), expected, atol=2e-6)
    assert checkpoint_header.read_checkpoint_header(out).description.encoder == ENCODER


@pytest.mark.parametrize("cell", LAYERS)
@pytest.mark.parametrize("architecture", architectures.RECURRENT)
def test_a_proposal_names_the_layers_and_where_the_image_enters(architecture, cell):
    text = proposal.propose_map(arrays(made(architecture, cell)), WORDS)
    layers = {"image": "look.0", "embedding": "embed", "cell": "rnn", "output": "out"}
    words = {"start": "<start>", "end": "<end>", "unknown": "<unk>"}
    asked = {"normalize": "?", "tokenizer": "?"}  # left to a person
    for name, value in {"architecture": architecture, **layers, **words, **asked}.items():
        assert f'\n{name} = "{value}"' in text
    with pytest.raises(RequestRefused, match=r"map, (normalize|tokenizer)"):
        map_files.parse_map(text)
    given = text.replace('normalize = "?"', 'normalize = "l2"').replace('= "?"', '= "karpathy"')
    assert map_files.parse_map(given).layers.cell == "rnn"


@pytest.mark.parametrize("word", [".", ",", "Dog"])
def test_words_that_karpathy_does_not_make_tell_the_tokenizer(word):
    text = proposal.propose_map(arrays(made("init", "lstm")), [*WORDS[:-1], word])
    assert 'tokenizer = "blanks"' in text


@pytest.mark.parametrize(("tokenizer", "told"), [("karpathy", False), ("blanks", True)])
def test_a_tokenizer_that_leaves_more_words_unknown_is_told(files, tmp_path, tokenizer, told):
    people = ["A dog runs fast.", "A red dog runs."]
    bundles.write_bundle_folder(tmp_path / "bundle", [BundleItem("1.jpg", "test", tuple(people))])
    given = f'tokenizer = "{tokenizer}"\n{map_of("init")}'
    asked = files(made("init", "lstm"), given)
    done = _run(*asked, "--dataset", tmp_path / "bundle", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert ("by the tokenizer blanks, and 0.0% by karpathy" in done.stderr) == told


@pytest.mark.parametrize(
    ("shape", "code", "said"),
    [
        ((1, FEATURES), 0, ""),
        ((1, 9), 2, "the checkpoint expects image features of size 7, the dataset's have 9"),
        ((1, 3, FEATURES), 2, "the dataset has features of a grid's places"),
    ],
)
def test_features_of_another_size_or_kind_than_the_model_reads_are_refused(
    files, tmp_path, shape, code, said
):
    rows = np.ones(shape, np.float32)
    bundles.write_bundle_folder(tmp_path / "bundle", [BundleItem("1.jpg", "test", ("a dog",))])
    features.write_features(tmp_path / "bundle" / bundles.FEATURES, ["1.jpg"], rows, ENCODER)
    asked = files(made("init", "lstm"), map_of("init"))
    done = _run(*asked, "--dataset", tmp_path / "bundle", "--out", tmp_path / "out")
    assert done.exit_code == code, done.output
    assert said in done.stderr
    assert (tmp_path / "out").exists() == (code == 0)


def test_the_command_proposes_a_map_and_says_what_to_do_with_it(files):
    done = _run(*files(made("init", "lstm"), "")[:3])
    assert done.exit_code == 0, done.output
    assert 'cell = "rnn"' in done.stdout
    assert "--map" in done.stderr


def test_what_is_no_checkpoint_is_not_written(files, tmp_path):
    asked, out = files(made("init", "lstm"), map_of("init")), tmp_path / "out"
    (tmp_path / "words.json").write_text(json.dumps([*WORDS[:-1], "two words"]))
    out.write_text("as it was")
    done = _run(*asked, "--out", out)
    assert done.exit_code == 2, done.output
    assert "'two words' has a blank in it" in done.stderr
    assert out.read_text() == "as it was"


def _converted(architecture="init", model=None, given=None, by_id=WORDS):
    model = model or made(architecture, "lstm")
    return canonical_checkpoints.convert_tensors(
        arrays(model), by_id, map_files.parse_map(given or map_of(architecture)), ENCODER
    )


def test_a_start_that_is_the_end_is_one_word():
    words = ["<edge>" if word == "<start>" else word for word in WORDS]
    given = map_of("init").replace("<start>", "<edge>").replace("<end>", "<edge>")
    description, tensors = _converted(given=given, by_id=words)
    assert description.vocabulary[:2] == ("<edge>", "<unk>")
    assert sorted(description.vocabulary) == sorted(words)
    assert len(tensors["embedding.weight"]) == len(words)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('cell = "rnn"', 'cell = "rn"'), r"no tensor 'rn.weight_ih'"),
        (('image = "look.0"', 'image = "look.1"'), r"no tensor 'look.1.weight'; did you mean look"),
        (('output = "out"', 'output = "look.0"'), r"layers.output: is for 4 words, .* has 9"),
        (('image = "look.0"', 'image = ["look.0", "out"]'), r"init: image.weight would be \[7, 9"),
        (('image = "look.0"', 'image = ["look.0", "look.0"]'), r"takes 7 numbers, .* gives 4"),
        (('"<end>"', '"<ende>"'), r"words.end: .* no word '<ende>'; did you mean <end>\?"),
        (('unknown = "<unk>"', 'unknown = "<end>"'), r"unknown: is also the start or the end"),
        (('"init"', '"pre"'), r"pre: image.weight would be \[7, 4\], and \[7, 6\] is needed"),
        (('"none"', '"?"'), r"map, normalize"),
        (("[layers]", 'embeding = "x"\n[layers]'), r"map, words.embeding: unknown field"),
        (("[layers]", "[layers"), r"expected TOML"),
        (('"state", "image"', '"state", "state"'), "order: expected each of image, state once"),
    ],
)
def test_what_does_not_fit_is_named(change, told):
    assert change[0] in map_of("init")
    with pytest.raises(RequestRefused, match=told):
        _converted(given=map_of("init").replace(*change, 1))


def test_two_layers_are_refused_and_told_what_to_do():
    model = made("init", "lstm")
    model.rnn = nn.LSTM(WORD, STATE, num_layers=2)
    with pytest.raises(RequestRefused, match=r"expected one layer .* found 'rnn.weight_ih_l1'"):
        _converted(model=model)
    model.rnn = nn.LSTM(WORD, STATE, bidirectional=True)
    with pytest.raises(RequestRefused, match=r"found 'rnn.weight_ih_l0_reverse'"):
        _converted(model=model)


@pytest.mark.parametrize(
    "found",
    [
        ["a", "b", "c"],
        {"a": 0, "b": 1, "c": 2},
        {"0": "a", "1": "b", "2": "c"},
        {"idx2word": {"0": "a", "1": "b", "2": "c"}, "word2idx": {"a": 0}},
        {"word2idx": {"c": 2, "a": 0, "b": 1}, "idx": 3},
    ],
)
def test_vocabularies_are_read_as_programs_write_them(found):
    assert state_dicts.parse_words(json.dumps(found)) == ["a", "b", "c"]


def test_ids_that_no_word_has_keep_their_places():
    """As in programs whose words begin with 1."""
    assert state_dicts.parse_words('{"a": 1, "b": 3}') == ["<unused0>", "a", "<unused2>", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "expected JSON"),
        ("3", "expected a list of words"),
        ('["a", 3]', "a list with other things"),
        ('{"a": 0, "b": 0}', "two words have one id"),
        ('{"a": 0, "b": "x"}', "from words to ids, or from ids to words"),
        ('{"a": 0, "b": 1000000000}', "the id 1000000000 is too large for 2 words"),
        ("{}", "from words to ids"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(text, told):
    with pytest.raises(RequestRefused, match=told):
        state_dicts.parse_words(text)


def test_the_guides_maps_are_ones():
    tomls = documents.fenced(documents.read("deploy/guide/bring-a-model.md"), "toml")
    texts = [text for text in tomls if text.startswith("architecture")]
    texts += [
        documents.read(f"deploy/guide/maps/{name}.toml")
        for name in ("soft_attention", "bottom_up_top_down", "adaptive_attention", "transformer")
    ]
    given = [map_files.parse_map(text) for text in texts]
    assert given[0].images == ["linear", "bn"]
    assert {each.architecture for each in given[1:]} == {*checkpoint_header.ARCHITECTURES} - {
        *architectures.RECURRENT
    }
    uncommented = [re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE) for text in texts]
    assert [map_files.parse_map(text).order.model_dump() for text in uncommented[:-1]] == [
        {"cell": ("word", "image"), "output": ("state", "image")},
        {"cell": ("word", "context"), "deep": ("state", "context")},
        {"look": ("state", "image", "word"), "speak": ("context", "state")},
        {"cell": ("word", "image")},
    ]


@pytest.mark.long
def test_a_whole_module_that_was_pickled_is_refused_as_a_wrong_file(needs_sandbox, tmp_path):
    torch.save(nn.Linear(2, 3), tmp_path / "model.pt")
    (tmp_path / "words.json").write_text(json.dumps(WORDS))
    done = _run(tmp_path / "model.pt", "--vocabulary", tmp_path / "words.json")
    assert done.exit_code == 2, done.output
    assert "invalid_checkpoint: PyTorch cannot read it: " in done.stderr
    assert "torch.save(model.state_dict(), path)" in done.stderr
