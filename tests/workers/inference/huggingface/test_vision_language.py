"""Folders of vision-language models, through the sandbox that prepares pictures and prompts.
Oracle: the library's own processor, its pass over the whole without a cache, and its `generate`.
"""

import dataclasses
import json
import resource
import shutil
import time

import numpy as np
import pytest
import torch
from PIL import Image

from helpers import converters
from helpers import vision_language_folders as folders
from helpers.vision_language_folders import END
from service.contract.errors import (
    CheckpointMismatch,
    ConfigInvalid,
    UnusableCheckpoint,
    UnusableDataset,
)
from workers.inference import checkpoints, generation, scoring
from workers.inference.captioners import GenerationOptions
from workers.inference.huggingface import prompted_pictures
from workers.inference.tokenizer_child import TokenizerChild
from workers.sandbox import operations

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

_SIZES = [(60, 40), (60, 40), (80, 90), (33, 120)]
_FAST = ("qwen2_5_vl", "llava")
_KINDS = [
    kind if kind in _FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in folders.MAKERS
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    found = {}

    def make(kind):
        if kind not in found:
            folder = tmp_path_factory.mktemp("saved") / kind
            found[kind] = folders.save_model(folder, kind)
        return found[kind]

    return make


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A folder with pictures of noise, of different sizes."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "images").mkdir()
    drawn = np.random.default_rng(0)
    for place in range(64):
        width, height = _SIZES[place % len(_SIZES)]
        pixels = drawn.integers(0, 255, (height, width, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{place}.png")
    return folder


def _names(images):
    return [f"{place}.png" for place in range(images)]


def _picture(bundle, place):
    with Image.open(bundle / "images" / f"{place}.png") as found:
        return found.copy()


def _check(one, model, bundle, references):
    """Columns and captions are the library's."""
    inputs = model.inputs(bundle, _names(len(references)))
    encoded = model.tokens.encode(references)
    found = scoring.compute_columns(model, inputs, encoded)
    places = zip(
        encoded.caption_images, encoded.caption_offsets[:-1], encoded.caption_offsets[1:],
        strict=True,
    )  # fmt: skip
    for image, start, end in places:
        words = encoded.tokens[start:end].tolist()
        expected = folders.log_probabilities(one, _picture(bundle, image), words).numpy()
        np.testing.assert_allclose(found.logp[start:end], expected, atol=1e-4)
    for beams in (1, 3):
        search = GenerationOptions(beams=beams, most=8)
        written = generation.generate_captions(model, inputs, search)
        expected = [
            folders.generate(one, _picture(bundle, at), num_beams=beams, max_new_tokens=8)
            for at in range(len(references))
        ]
        assert [list(each.words) for each in written] == expected
    return found


@pytest.mark.parametrize("kind", _KINDS)
def test_columns_and_captions_are_the_librarys(kind, saved, bundle):
    one = saved(kind)
    model = checkpoints.open_captioner(one.folder)
    _check(one, model, bundle, [["a red circle", "one"], ["it"], ["red green"] * 9, ["is a table"]])
    (ids, *_), text = model.tokens.encode([["a red one"]]).tokens, "a red one"
    tokens = one.processor.tokenizer.encode(text, add_special_tokens=False)
    assert (ids, model.tokens.text(tokens)) == (tokens[0], text)


@pytest.mark.slow
@pytest.mark.parametrize("images", [1, 7, 64])
@pytest.mark.parametrize("kind", ["qwen2_5_vl", "gemma3"])
@pytest.mark.usefixtures("processors_here")
def test_batches_of_any_size_give_the_same(kind, images, saved, bundle):
    one = saved(kind)
    model = checkpoints.open_captioner(one.folder)
    _check(one, model, bundle, [["a red circle", "one"]] * images)


@pytest.mark.usefixtures("processors_here")
def test_captions_in_one_row_are_blind_for_each_other(saved, bundle):
    model = checkpoints.open_captioner(saved("llava").folder)
    references = model.tokens.encode([["a red circle", "one", "red green"], ["it"]])
    inputs, reader = model.inputs(bundle, _names(2)), model._reader
    packed = scoring.compute_columns(model, inputs, references).logp
    assert reader.packs
    reader.packs = False
    apart = scoring.compute_columns(model, inputs, references).logp
    np.testing.assert_allclose(packed, apart, atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("processors_here")
def test_a_network_with_windows_does_not_read_captions_in_one_row(saved):
    assert not checkpoints.open_captioner(saved("gemma3").folder)._reader.packs


RESTRAINTS = [
    {"repetition_penalty": 1.7},
    {"no_repeat_ngram_size": 2},
    {"min_new_tokens": 5, "eos_token_id": [END, 30, 40, 50, 60]},
]


@pytest.mark.parametrize(
    ("how", "beams"),
    [
        (RESTRAINTS[0], 3),
        *(pytest.param(how, 3, marks=pytest.mark.slow) for how in RESTRAINTS[1:]),
        *(pytest.param(how, 1, marks=pytest.mark.slow) for how in RESTRAINTS),
    ],
)
@pytest.mark.usefixtures("processors_here")
def test_settings_of_the_folder_restrain_as_in_generate(how, beams, saved, bundle, tmp_path):
    one = saved("llava")
    copy = shutil.copytree(one.folder, tmp_path / "copy")
    settings = json.loads((copy / "generation_config.json").read_text())
    settings |= {**how, "num_beams": beams, "max_new_tokens": 10}
    (copy / "generation_config.json").write_text(json.dumps(settings))
    model = checkpoints.open_captioner(copy)
    found = generation.generate_captions(model, model.inputs(bundle, _names(3)), model.search)
    ends = how.get("eos_token_id", [END])
    expected = []
    for at in range(3):
        row = folders.generate(
            one, _picture(bundle, at), **{**how, "num_beams": beams, "max_new_tokens": 10}
        )
        last = next((at for at, word in enumerate(row) if word in ends), len(row))
        expected.append(row[:last])
    assert [list(each.words) for each in found] == expected


@pytest.mark.usefixtures("processors_here")
def test_what_a_captioner_cannot_read_is_named(saved, tmp_path):
    model = checkpoints.open_captioner(saved("llava").folder)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    inputs = model.inputs(tmp_path, ["bad.png", "none.png"])
    with pytest.raises(UnusableDataset, match=r"2 images cannot be decoded: 'bad\.png' .*none"):
        list(inputs.group_alike(1))
    with pytest.raises(CheckpointMismatch, match="expects pictures"):
        model.check(np.zeros((4, 2048), np.float32))


HOSTILE = [
    (
        "chat_template.jinja",
        "{% for a in range(99999) %}{% for b in range(99999) %}",
        "the chat template takes longer than 5 s",
    ),
    ("chat_template.jinja", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
    ("chat_template.jinja", "{% include '/etc/passwd' %}", "cannot be built"),
    ("preprocessor_config.json", {"size": {"shortest_edge": 10**6}}, "memory"),
    ("preprocessor_config.json", {"image_processor_type": "Trainer"}, None),
    ("tokenizer_config.json", {"extra_special_tokens": {"image_token": {"__type": "x"}}}, ""),
    ("tokenizer.json", {"model": None}, "cannot be built"),
    ("config.json", {"text_config": {"num_hidden_layers": 2**31}}, "up to 512"),
    ("config.json", {"text_config": {"hidden_size": 2**31}}, "up to 16,777,216"),
    ("config.json", {"text_config": {"hidden_size": 2**23}}, "library cannot build|memory"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values", "told"), HOSTILE)
def test_a_hostile_folder_is_refused_or_ended(name, values, told, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(prompted_pictures, "_SECONDS", 20.0)
    monkeypatch.setattr(prompted_pictures, "_MEMORY", 1_500_000_000)
    copy = shutil.copytree(saved("llava").folder, tmp_path / "copy")
    if isinstance(values, str):
        closed = values + "{% endfor %}" * values.count("{% for")
        (copy / name).write_text(closed)
    else:
        found = json.loads((copy / name).read_text())
        for field, value in values.items():
            inner = found.get(field)
            both = isinstance(inner, dict) and isinstance(value, dict)
            found[field] = {**inner, **value} if both else value
        (copy / name).write_text(json.dumps(found))
    if told is None:  # what it names is no processor: the type's own is taken
        checkpoints.open_captioner(copy)
        return
    with pytest.raises((UnusableCheckpoint, ConfigInvalid), match=told):
        checkpoints.open_captioner(copy)


LONG = "q" * 1_000_000
EXPANDING = {
    "encode": ("normalizer", {"type": "Replace", "pattern": {"String": "z"}, "content": LONG}),
    "decode": ("decoder", {"type": "Replace", "pattern": {"Regex": "."}, "content": LONG}),
}


def test_all_that_a_processor_is_asked_in_a_trial_takes_one_limit(monkeypatch):
    monkeypatch.setattr(prompted_pictures, "_SECONDS", 1.0)
    trial = prompted_pictures._ThisProcess.__new__(prompted_pictures._ThisProcess)
    trial._left, trial._handler = 1.0, _compute
    trial.ask({"seconds": 0.3})
    with pytest.raises(operations.InputRefused, match="its trial took longer than 1 s"):
        trial.ask({"seconds": 0.9})
    with pytest.raises(operations.InputRefused, match="its trial took longer than 1 s"):
        trial.ask({"seconds": 0.3})


def _compute(request):
    until = time.process_time() + request["seconds"]
    while time.process_time() < until:
        pass
    return {}


@pytest.mark.parametrize("do", EXPANDING)
def test_a_tokenizer_that_expands_a_letter_into_a_million_is_refused(do, saved, tmp_path):
    copy = shutil.copytree(saved("llava").folder, tmp_path / "copy")
    found = json.loads((copy / "tokenizer.json").read_text())
    part, value = EXPANDING[do]
    (copy / "tokenizer.json").write_text(json.dumps({**found, part: value}))
    with pytest.raises(UnusableCheckpoint, match=f"its {part} may make more than 64 characters"):
        checkpoints.open_captioner(copy)


def test_a_piece_of_a_million_letters_makes_no_caption(saved, tmp_path):
    """No form tells it: what the child answers is bounded."""
    copy = shutil.copytree(saved("llava").folder, tmp_path / "copy")
    found = json.loads((copy / "tokenizer.json").read_text())
    vocabulary = found["model"]["vocab"]
    longest = next(piece for piece, at in vocabulary.items() if at == 40)
    vocabulary[LONG] = vocabulary.pop(longest)
    merges = [each for each in found["model"]["merges"] if longest not in "".join(each)]
    found["model"]["merges"] = [each for each in merges if longest not in each]
    (copy / "tokenizer.json").write_text(json.dumps(found))
    model = checkpoints.open_captioner(copy)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((UnusableCheckpoint, CheckpointMismatch), match="bytes to decode"):
        model.tokens.text([40, 41])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 200_000_000


@pytest.mark.usefixtures("processors_here")
def test_pieces_that_the_network_does_not_know_are_refused(saved):
    reader = checkpoints.open_captioner(saved("llava").folder)._reader
    known = reader.network.get_input_embeddings().weight.shape[0]
    for ids in ([0, known], [-1, 0]):
        with pytest.raises(UnusableCheckpoint, match=f"{ids[0]} to {ids[1]}, the network knows"):
            reader.choose_inputs({"input_ids": torch.tensor([ids])})


def test_pictures_that_were_handed_on_do_not_count_as_waiting(monkeypatch, tmp_path):
    """Three shapes in turn, of which two at once fit in memory."""
    monkeypatch.setattr(prompted_pictures, "_BLOCK_BYTES", 24)
    (tmp_path / "images").mkdir()
    for at in range(12):
        (tmp_path / "images" / f"{at}.png").write_bytes(b"x" * (1 + at % 3))
    inputs = prompted_pictures.PromptedPictures(
        lambda content: {"a": torch.zeros(1, len(content))}, tmp_path, _names(12)
    )
    assert [rows for rows, _ in inputs.group_alike(2)] == [
        *([0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]),
    ]


def test_a_folder_is_opened_through_a_converter(saved, bundle, needs_sandbox, tmp_path):
    with converters.running(tmp_path) as found:
        operations.choose_converter(found.address)
        try:
            model = checkpoints.open_captioner(saved("llava").folder)
            assert found.children()
            _check(saved("llava"), model, bundle, [["a red circle"]])
        finally:
            operations.choose_converter(None)


ANSWERS = [
    ({"bytes": 2**40}, "at most"),
    ({"bytes": -1}, "at most"),
    ({"bytes": 8, "tensors": [["pixel_values", "object", [1]]]}, "expected tensors"),
    ({"bytes": 8, "tensors": [["pixel_values", "float32", [-2]]]}, "expected tensors"),
    ({"bytes": 8, "tensors": [["pixel_values", "float32", [3]]]}, "as many bytes"),
    ({"bytes": 8, "tensors": [["pixel_values", "int64", [2**29, 2**29]]]}, "as many bytes"),
    ({"bytes": 0}, "as many bytes"),
]


@dataclasses.dataclass
class _HostileChild:
    answer: dict
    is_open: bool = True
    memory: memoryview = dataclasses.field(default_factory=lambda: memoryview(bytearray(1 << 20)))

    def ask(self, _request):
        return self.answer


@pytest.mark.parametrize(("answer", "told"), ANSWERS)
def test_what_the_child_answers_is_judged(answer, told):
    child = prompted_pictures.ProcessorChild.__new__(prompted_pictures.ProcessorChild)
    TokenizerChild.__init__(child, lambda: _HostileChild(answer))
    with pytest.raises(UnusableCheckpoint, match=told):
        child.prepare(b"picture")


@pytest.mark.parametrize(
    "text", ["no json", "[[1]]", "[[[1, -1], [[0, 1], [1, 2]]]]", "[[[1], [[0]]]]"]
)
def test_pieces_of_the_child_are_judged(text):
    hostile = _HostileChild({"bytes": len(text)})
    child = TokenizerChild(lambda: hostile)
    hostile.ask = lambda _: (
        hostile.memory.__setitem__(slice(len(text)), text.encode()) or hostile.answer
    )
    with pytest.raises(UnusableCheckpoint, match="answered something else"):
        child.encode_batch(["a"], add_special_tokens=False)
    with pytest.raises(UnusableCheckpoint, match="answered something else"):
        child.decode_batch([[1]], skip_special_tokens=True)
