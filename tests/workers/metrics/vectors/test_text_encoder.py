"""A model's folder is data from outside: what is read, what is refused."""

import json
import pickle
import shutil
import socket
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers import encoders
from service.contract.errors import MetricFailed
from workers.metrics.vectors import text_encoder

SENTENCES = ["a dog runs", "", "the big red cat sits on the grass"]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return encoders.make(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "model")


@pytest.fixture
def expected(made):
    return text_encoder.read_encoder(made, 2).embed(SENTENCES).vectors


def _config(folder, **changed):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changed}
    kept = {name: value for name, value in config.items() if value is not None}
    path.write_text(json.dumps(kept))


def _same(folder, expected, atol=0.0):
    found = text_encoder.read_encoder(folder, 2).embed(SENTENCES).vectors
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_more_sentences_than_a_batch_holds(made, monkeypatch):
    model = text_encoder.read_encoder(made, 2)
    whole = model.embed(SENTENCES * 9)
    monkeypatch.setattr(text_encoder, "_BATCH_TOKENS", 8)
    found = model.embed(SENTENCES * 9)
    np.testing.assert_allclose(found.vectors, whole.vectors, atol=1e-6)


def test_only_the_files_of_a_model_are_opened_and_no_network(folder, expected, monkeypatch):
    """What else stands there is hostile: a pickle, code, an adapter."""
    others = ["pytorch_model.bin", "modeling_x.py", "adapter_config.json", "vocab.txt"]
    others += ["generation_config.json", "special_tokens_map.json", "chat_template.jinja"]
    for name in others:
        (folder / name).write_bytes(b"\x80 no such thing")

    def refuse(*_):
        raise AssertionError("a network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    _same(folder, expected)
    names = {path.rsplit("/", 1)[1] for path in opened if path.startswith(str(folder))}
    assert names <= {"config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS}
    assert "config.json" in names


def test_weights_in_parts_in_half_precision_or_of_a_larger_model_are_the_same(folder, expected):
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(weights)
    for part, chosen in ((1, names[::2]), (2, names[1::2])):
        found = {f"bert.{name}": weights[name] for name in chosen}
        save_file(found, folder / f"model-0000{part}-of-00002.safetensors")
    _same(folder, expected)
    (folder / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(MetricFailed, match="expected all parts"):
        text_encoder.read_encoder(folder, 2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    halves = {name: tensor.half() for name, tensor in weights.items()}
    save_file({**halves, "cls.predictions.bias": torch.ones(9)}, folder / WEIGHTS)
    assert next(text_encoder.read_encoder(folder, 2).model.parameters()).dtype == torch.float32
    _same(folder, expected, atol=5e-3)


def test_the_digest_is_that_of_all_that_was_read(folder, made):
    same = text_encoder.read_encoder(folder, 1).digest
    assert same == text_encoder.read_encoder(made, 2).digest
    (folder / "README.md").write_text("another")
    assert text_encoder.read_encoder(folder, 1).digest == same
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    assert text_encoder.read_encoder(folder, 1).digest != same


@pytest.mark.parametrize(("stated", "tokens"), [(9, 9), (10**30, 16), (0, 16), ("x", 16)])
def test_a_sentence_is_as_long_as_model_and_tokeniser_allow(folder, stated, tokens):
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": stated}))
    found = text_encoder.read_encoder(folder, 1).embed(["dog " * 40])
    assert len(found.tokens) == tokens
    assert found.cut.tolist() == [1]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_positions_that_begin_behind_the_paddings_are_fewer(kind, tmp_path):
    folder = encoders.make(tmp_path, kind)
    (folder / "tokenizer_config.json").unlink()
    found = text_encoder.read_encoder(folder, 1).embed(["dog " * 40])
    assert len(found.tokens) == encoders.POSITIONS


def test_the_tokenisers_own_padding_and_cutting_are_not_heeded(folder, expected):
    """sentence-transformers' folders say: 128 tokens, always."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["truncation"] = {
        "max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"
    }  # fmt: skip
    tokenizer["padding"] = {
        "strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
    }  # fmt: skip
    path.write_text(json.dumps(tokenizer))
    _same(folder, expected)


def test_the_librarys_own_notes_are_ignored(folder, expected):
    """`_attn_implementation` could name a kernel to download."""
    _config(folder, _attn_implementation="somebody/kernels", dtype="float16", unheard_of=1)
    _same(folder, expected)


CONFIGS = {
    "code": ({"auto_map": {"AutoModel": "modeling_x.X"}}, "auto_map, which names code"),
    "quantisation": ({"quantization_config": {}}, "quantization_config, which names code"),
    "another kind": ({"model_type": "llama"}, "model_type of bert, .* found 'llama'"),
    "no kind": ({"model_type": None}, "found None"),
    "a kind that is no text": ({"model_type": ["bert"]}, r"found \['bert'\]"),
    "too few layers": ({"num_hidden_layers": 1}, "a layer from 1 to 1, found 2"),
    "too many layers": ({"num_hidden_layers": 10**9}, "a layer from 1 to 1000000000"),
    "layers that are no number": ({"num_hidden_layers": "3"}, "layer from 1 to '3'"),
    "a huge vocabulary": ({"vocab_size": 10**15}, "describes .* weights, the files hold"),
    "many positions": ({"max_position_embeddings": 10**12}, "describes .* weights"),
    "a huge size": ({"hidden_size": 4 * 10**12}, "config.json"),
    "another size": ({"hidden_size": 12}, "make no bert"),
    "no size": ({"hidden_size": -24}, "make no bert"),
    "a size that is no number": ({"hidden_size": "x"}, "make no bert"),
    "unknown activation": ({"hidden_act": "os.system"}, "make no bert"),
}


@pytest.mark.parametrize(("changed", "complaint"), CONFIGS.values(), ids=CONFIGS)
def test_a_config_that_is_none_of_ours_is_refused(folder, changed, complaint):
    _config(folder, **changed)
    with pytest.raises(MetricFailed, match=complaint):
        text_encoder.read_encoder(folder, 2)


def test_a_token_that_the_model_does_not_know_is_refused(folder):
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["zebra"] = 99
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(MetricFailed, match="a token 99, the model knows 18"):
        text_encoder.read_encoder(folder, 2)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("it was run",))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("config.json", None, "expected config.json in the model's folder"),
        ("config.json", b"{", "config.json: expected JSON"),
        ("config.json", b"[]", "config.json: expected a JSON object"),
        ("config.json", b"\xff", "config.json: "),
        ("tokenizer.json", None, "expected tokenizer.json in the model's folder"),
        ("tokenizer.json", b"{}", "tokenizer.json describes no tokeniser"),
        ("tokenizer.json", b"\xff", "tokenizer.json describes no tokeniser"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json: expected a JSON object"),
        (WEIGHTS, None, "expected weights in model.safetensors, found none"),
        (WEIGHTS, b"", "no safetensors"),
        (WEIGHTS, pickle.dumps(Harmful()), "no safetensors"),
        (WEIGHTS, b"\xff" * 64, "no safetensors"),
    ],
)
def test_a_file_that_is_none_of_a_models_is_refused(folder, name, content, complaint):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(MetricFailed, match=complaint):
        text_encoder.read_encoder(folder, 2)


def test_a_pickle_alone_is_refused_and_not_opened(folder):
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(MetricFailed, match=r"found pytorch_model\.bin, which runs code"):
        text_encoder.read_encoder(folder, 2)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda weights, name: weights.pop(name), "1 weights are missing"),  # not drawn at random
        (lambda weights, name: weights[name].fill_(float("nan")), "not finite"),
    ],
)
def test_weights_that_are_missing_or_not_finite_are_refused(folder, change, complaint):
    weights = {**load_file(folder / WEIGHTS), "another": torch.zeros(10_000)}
    change(weights, "encoder.layer.1.output.dense.weight")
    save_file(weights, folder / WEIGHTS)
    text_encoder.read_encoder(folder, 1)
    with pytest.raises(MetricFailed, match=complaint):
        text_encoder.read_encoder(folder, 2)


def test_a_layer_that_the_model_lacks_is_refused(made):
    for layer in (0, -1, 4):
        with pytest.raises(MetricFailed, match=f"expected a layer from 1 to 3, found {layer}"):
            text_encoder.read_encoder(made, layer)


def test_nothing_to_embed_is_nothing(made):
    found = text_encoder.read_encoder(made, 1).embed([])
    assert found.vectors.shape == (0, encoders.SIZE)
    assert found.offsets.tolist() == [0]


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(MetricFailed, match="expected a model's folder"):
        text_encoder.read_encoder(tmp_path / "nothing", 1)
