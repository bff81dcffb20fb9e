"""What the file of a plug-in says of itself: judged without the plug-in and without a tensor."""

import io
import json

import pytest

from helpers import contract_files
from helpers.contract_files import ENCODER, laid_out, safetensors_file
from service.contract.errors import (
    ConfigInvalid,
    HeaderTooLarge,
    MetadataInvalid,
    TensorLayout,
    TensorMismatch,
    VocabularyInvalid,
)
from service.contract.formats import model_formats, plugins
from service.contract.formats.plugins import InstalledPlugin, PluginPieces, PluginWords

VOCABULARY = ["<edge>", "<unk>", "œuf", "猫"]
OF_WORDS = {
    "prescore_plugin": "acme.net-2",
    "config": '{"feature_size": 3, "layers": [1, {"a": null}]}',
    "encoder": ENCODER,
    "tokenizer": "blanks",
    "vocabulary": json.dumps(VOCABULARY),
}
PIECES = {"size": 300, "start": 1, "end": 299, "longest": 20}
OF_PIECES = {
    **{name: OF_WORDS[name] for name in ("prescore_plugin", "config", "encoder")},
    "tokenizer.json": '{"model": {}}',
    "pieces": json.dumps(PIECES),
}
MANY_KEYS = json.dumps({str(at): 0 for at in range(1001)})
TENSORS = {"a": ("F32", [2, 3]), "b": ("BF16", [4]), "counts": ("I64", [5])}


def file(metadata=OF_WORDS, tensors=TENSORS, **changed):
    told = {**metadata, **changed}
    entries, data = laid_out(tensors)
    kept = {name: text for name, text in told.items() if text is not None}
    return safetensors_file({"__metadata__": kept, **entries}, data)


def _pieces(**changed):
    """What makes a file of words one of pieces."""
    pieces = json.dumps({**PIECES, **changed})
    return {**OF_PIECES, "pieces": pieces, "tokenizer": None, "vocabulary": None}


def facts(content, length=None):
    size = len(content) if length is None else length
    return model_formats.read_file_facts(io.BytesIO(content), size)


def refused(content, error, *words):
    return contract_files.refused(lambda: facts(content), error, *words)


def test_a_file_of_words_is_described():
    found = plugins.parse_plugin_header(io.BytesIO(file(note="x")), len(file(note="x")))
    assert found.plugin == "acme.net-2"
    assert found.tokens == PluginWords("blanks", tuple(VOCABULARY))
    assert found.config == {"feature_size": 3, "layers": [1, {"a": None}]}
    assert found.notes == {"note": "x"}
    assert facts(file()) == {
        "format": "plugin",
        "architecture": "plugin:acme.net-2",
        "plugin": {"name": "acme.net-2", "package": None, "version": None},
        "parameters": 10,  # of the floating point ones
        "vocabulary_size": 4,
        "encoder": json.loads(ENCODER),
        "feature_size": 3,
        "units": "words",
    }


def test_a_file_of_pieces_is_described():
    content = file(OF_PIECES)
    header = plugins.parse_plugin_header(io.BytesIO(content), len(content))
    assert header.tokens == PluginPieces(**PIECES)
    found = facts(content)
    assert (found["units"], found["vocabulary_size"]) == ("pieces", 300)
    assert found["longest"] == 19  # and START


def test_the_beginning_of_a_file_is_enough_and_a_wrong_length_is_told():
    content = file()
    assert facts(content[:-10], float("inf")) == facts(content)
    refused(content[:-10], TensorLayout, "cut off")


def test_a_canonical_checkpoint_may_have_a_note_of_that_name():
    """As it may since before there were plug-ins."""
    content = contract_files.checkpoint("init", "gru", metadata={"prescore_plugin": "x"})
    assert facts(content)["architecture"] == "init"
    assert not plugins.is_plugin_stream(io.BytesIO(content))
    assert plugins.is_plugin_stream(io.BytesIO(file()))


@pytest.mark.parametrize(
    ("changed", "error", "pointer", "words"),
    [
        ({"prescore_plugin": ""}, MetadataInvalid, "/prescore_plugin", "name of an entry point"),
        ({"prescore_plugin": "../x"}, MetadataInvalid, "/prescore_plugin", "'../x'"),
        ({"prescore_plugin": "a\n"}, MetadataInvalid, "/prescore_plugin", "'a\\n'"),
        ({"config": None}, MetadataInvalid, "/config", "missing: config"),
        ({"vocabulary": None}, MetadataInvalid, "/vocabulary", "missing: vocabulary"),
        ({"pieces": "{}"}, MetadataInvalid, "/tokenizer.json", "missing: tokenizer.json"),
        (OF_PIECES, MetadataInvalid, "/tokenizer", "too many: tokenizer, vocabulary"),
        ({"config": "[]"}, ConfigInvalid, "/config", "expected an object"),
        ({"config": "{}"}, ConfigInvalid, "/config/feature_size", "found None"),
        ({"config": '{"feature_size": 0}'}, ConfigInvalid, "/config/feature_size", "found 0"),
        ({"config": '{"feature_size": 1048577}'}, ConfigInvalid, "/config/feature_size", "048577"),
        ({"config": MANY_KEYS}, ConfigInvalid, "/config", "at most 1000 keys"),
        ({"encoder": '{"name": "\\u001b", "digest": "0"}'}, ConfigInvalid, "/encoder", "control"),
        ({"tokenizer": "ptb"}, MetadataInvalid, "/tokenizer", "'ptb'"),
        ({"vocabulary": '["a"]'}, VocabularyInvalid, "/vocabulary", "one entry"),
        (_pieces(end=300), ConfigInvalid, "/pieces", "below size"),
        (_pieces(longest=1), ConfigInvalid, "/pieces/longest", "at least 2"),
        (_pieces(size=250_001), ConfigInvalid, "/pieces/size", "at most 250000"),
        (
            {**_pieces(), "tokenizer.json": "vocab.txt"},
            MetadataInvalid,
            "/tokenizer.json",
            "content of a tokenizer.json",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(changed, error, pointer, words):
    caught = refused(file(**changed), error, words)
    assert caught.pointer == f"/__metadata__{pointer}"


def test_every_size_has_a_bound():
    refused(file(config=json.dumps({"feature_size": 3, "a": "x" * 100_000})), HeaderTooLarge)
    refused(file(**{f"note {at}": "" for at in range(60)}), HeaderTooLarge, "65 metadata entries")
    refused(file(note="x" * 100_001), HeaderTooLarge, "'note'")
    many = {f"t{at}": ("F32", [1]) for at in range(2000)}
    assert facts(file(tensors=many))["parameters"] == 2000
    refused(file(tensors={f"t{at}": ("F32", [1]) for at in range(20_000)}), HeaderTooLarge)


def test_a_file_without_tensors_is_refused():
    refused(file(tensors={}), TensorMismatch, "found none")


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x00" * 20, b'{"prescore_plugin"'])
def test_other_bytes_are_no_file_of_a_plug_in(content):
    assert not plugins.is_plugin_stream(io.BytesIO(content))


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (InstalledPlugin("a", "acme", "1.0+local!2"), None),
        (InstalledPlugin("A", "acme", "1.0"), "name"),
        (InstalledPlugin("a", "", "1.0"), "package"),
        (InstalledPlugin("a", "acme", ""), "version"),
        (InstalledPlugin("a", "acme", "1|2"), "version"),
        (InstalledPlugin("a", "ac|me", "1"), "package"),
    ],
)
def test_what_would_break_a_signature_is_no_plug_in(plugin, told):
    assert (plugin.oddity() is None) == (told is None)
    assert told is None or f"expected a {told}" in plugin.oddity()
