"""`prescore.Recorder`: columns of any model from its logits, held against the definitions."""

import io
import json
import math
import subprocess
import sys
import tarfile
import tracemalloc

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import prescore
from prescore.recording.logits import measure_logits
from service.contract.formats import bundles, columns_values
from service.contract.formats.bundles import BundleItem

WORDS = ("<edge>", "<unk>", "a", "cat", "sat", "dog", "ran")
ITEMS = (
    BundleItem("a.jpg", "test", ("a cat", "sat"), id="7"),
    BundleItem("other.jpg", "train", ("a dog",)),
    BundleItem("b.jpg", "test", ("a cat sat", "a dog", "ran")),
)
TARGETS = {
    ("a.jpg", 0): [2, 3, 0],
    ("a.jpg", 1): [4, 0],
    ("b.jpg", 0): [2, 3, 4, 0],
    ("b.jpg", 1): [2, 5, 0],
    ("b.jpg", 2): [6, 0],
}


@pytest.fixture
def bundle(tmp_path):
    bundles.write_bundle_folder(tmp_path / "data", ITEMS)
    return tmp_path / "data"


def logits_of(targets, seed=0):
    """With ties, and with a token that the model thinks impossible."""
    found = (
        np.random.default_rng([seed, *targets]).integers(-3, 4, (len(targets), len(WORDS))) * 0.7
    )
    found[0, 6] = -np.inf
    return found


def recorded(recorder, given=TARGETS, convert=np.asarray):
    for (image, reference), targets in given.items():
        recorder.add(image, reference, convert(logits_of(targets)), convert(targets))


def written(bundle, tmp_path, convert=np.asarray, **options):
    path = tmp_path / "model.columns.safetensors"
    with prescore.Recorder(bundle, split="test", **options) as recorder:
        recorded(recorder, convert=convert)
        recorder.write(path)
    return path


def definition(row, target):
    """logp, rank, the most probable tokens and the entropy in nats, by the definitions."""
    total = math.fsum(math.exp(x) for x in row)
    logs = [math.log(math.exp(x) / total) if math.exp(x) else -math.inf for x in row]
    rank = sum(x > row[target] for x in row)
    best = sorted(range(len(row)), key=lambda id_: (-row[id_], id_))
    return logs[target], rank, best, logs, -math.fsum(math.exp(x) * x for x in logs if x > -1e9)


@pytest.mark.parametrize("top", [1, 3, 7])
def test_what_is_recorded_follows_the_definitions(top, bundle, tmp_path):
    path = written(bundle, tmp_path, vocabulary=WORDS, top=top, entropy=True)
    found = load_file(path)
    rows = [
        definition(row, target)
        for targets in TARGETS.values()
        for row, target in zip(logits_of(targets).tolist(), targets, strict=True)
    ]
    logp, rank, best, logs, entropy = zip(*rows, strict=True)
    np.testing.assert_allclose(found["logp"], logp, rtol=1e-6)
    np.testing.assert_array_equal(found["rank"], rank)
    assert len(set(rank)) > 3
    np.testing.assert_array_equal(found["top_ids"][:, 0], [each[0] for each in best])
    assert all(len(set(row)) == top for row in found["top_ids"].tolist())
    own = [[one[id_] for id_ in ids] for one, ids in zip(logs, found["top_ids"], strict=True)]
    np.testing.assert_allclose(found["top_logp"], own, rtol=1e-6)
    of_best = [[one[id_] for id_ in each[:top]] for one, each in zip(logs, best, strict=True)]
    np.testing.assert_allclose(found["top_logp"], of_best, rtol=1e-6)
    np.testing.assert_allclose(found["entropy"], entropy, rtol=1e-6)
    assert found["ids"].tolist() == [id_ for targets in TARGETS.values() for id_ in targets]
    assert found["caption_offsets"].tolist() == [0, 3, 5, 9, 12, 14]
    assert found["image_offsets"].tolist() == [0, 2, 5]


def test_the_service_takes_the_file_and_finds_it_of_its_split(bundle, tmp_path):
    """And no control character in it."""
    words = ("\n", "\x1b[31m", "x" * 300, "", "ü", "Ġcat", "▁a")
    path = written(bundle, tmp_path, vocabulary=words, tokenizer="blanks", model="my\nmodel")
    header = columns_values.validate_columns(path)
    shown = (r"\n", r"\x1b[31m", "x" * 32 + "…", "", "ü", "Ġcat", "▁a")
    assert (header.images, header.vocabulary) == (("a.jpg", "b.jpg"), shown)
    assert (header.tokenizer, header.model) == ("blanks", r"my\nmodel")
    split = bundles.read_split(bundle, "test")
    assert columns_values.find_split_difference(path, split, len(split)) is None


def test_without_a_vocabulary_no_tokens_are_kept(bundle, tmp_path):
    path = written(bundle, tmp_path)
    assert set(load_file(path)) == {"logp", "rank", "caption_offsets", "image_offsets"}
    assert columns_values.validate_columns(path).vocabulary is None


@pytest.mark.parametrize(
    "convert",
    [
        lambda values: torch.tensor(values, requires_grad=np.asarray(values).dtype.kind == "f"),
        lambda values: tuple(values) if isinstance(values, list) else np.asfortranarray(values),
    ],
)
def test_tensors_of_torch_and_other_arrays_are_read_alike(convert, bundle, tmp_path):
    expected = written(bundle, tmp_path, vocabulary=WORDS).read_bytes()
    assert written(bundle, tmp_path, convert, vocabulary=WORDS).read_bytes() == expected


def test_half_precision_of_torch_is_read(bundle, tmp_path):
    logits = torch.tensor(logits_of([2, 3, 0])).bfloat16()
    with prescore.Recorder(bundle, vocabulary=WORDS) as recorder:
        recorded(recorder, {key: at for key, at in TARGETS.items() if key != ("a.jpg", 0)})
        recorder.add("7", 0, logits, torch.tensor([2, 3, 0]))  # by its id
        recorder.write(tmp_path / "out")
    first = definition(logits.double().tolist()[0], 2)
    assert load_file(tmp_path / "out")["logp"][0] == pytest.approx(first[0], rel=1e-6)


def test_a_difference_that_only_float64_has_is_a_rank():
    logits = np.ones((1, 3))
    logits[0, 2] += 1e-12
    assert measure_logits(logits, [0], top=1).rank == 1


def test_a_tar_is_read_as_its_folder_is(bundle, tmp_path):
    content = (bundle / "captions.jsonl").read_bytes()
    packed = tmp_path / "data.tar"
    with tarfile.open(packed, "w") as archive:
        info = tarfile.TarInfo("./captions.jsonl")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    expected = written(bundle, tmp_path).read_bytes()
    assert written(packed, tmp_path).read_bytes() == expected


def test_a_missing_reference_is_named_and_nothing_is_written(bundle, tmp_path):
    with prescore.Recorder(bundle) as recorder:
        recorded(recorder, {("a.jpg", 0): [2, 3, 0], ("b.jpg", 1): [2, 0]})
        with pytest.raises(prescore.InvalidArgument) as caught:
            recorder.write(tmp_path / "out")
    expected = (
        "3 of 5 references were not recorded: references[1] of 'a.jpg', references[0] of 'b.jpg'"
    )
    assert str(caught.value).startswith(expected)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("other.jpg", 0, np.zeros((1, 7)), [0]), "'other.jpg' is not an image"),
        (("a.jpg", 2, np.zeros((1, 7)), [0]), "2 references, counted from 0; found 2"),
        (("a.jpg", -1, np.zeros((1, 7)), [0]), "found -1"),
        (("a.jpg", 1, np.zeros((1, 7)), [0]), "was recorded before"),
        (("a.jpg", 0, np.zeros((1, 8)), [0]), r"expected logits \(T, 7\)"),
        (("a.jpg", 0, np.zeros(7), [0]), r"expected logits \(T, 7\)"),
        (("a.jpg", 0, np.zeros((2, 7)), [0]), r"found logits \(2, 7\) and targets \(1,\)"),
        (("a.jpg", 0, np.zeros((0, 7)), []), r"found logits \(0, 7\)"),
        (("a.jpg", 0, np.zeros((1, 7)), [0.0]), "found float64"),
        (("a.jpg", 0, np.zeros((2, 7)), [2, -100]), "from 0 to 6, found -100 to 2"),
        (("a.jpg", 0, np.zeros((1, 7)), [7]), "from 0 to 6, found 7 to 7"),
        (("a.jpg", 0, np.zeros((2, 7)), [0, 2]), "expected the same last token, END"),
        (("a.jpg", 0, np.full((1, 7), np.nan), [0]), "finite logits"),
        (("a.jpg", 0, np.array([[0, np.inf, 0, 0, 0, 0, 0]]), [0]), "finite logits"),
        (("a.jpg", 0, np.full((1, 7), -np.inf), [0]), "finite logits"),
        (("a.jpg", 0, np.full((1, 7), 1 / 7), [0]), "found rows of probabilities"),
    ],
)
def test_what_cannot_be_recorded_is_refused_at_once(given, words, bundle):
    with prescore.Recorder(bundle, vocabulary=WORDS) as recorder:
        recorder.add("a.jpg", 1, np.zeros((1, 7)), [0])
        with pytest.raises(prescore.InvalidArgument, match=words):
            recorder.add(*given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "val"}, "expected a split named 'val' in .*, found test, train"),
        ({"tokenizer": "a|b"}, "tokenizer: expected"),
        ({"top": 0}, "top: expected 1 to 20, found 0"),
    ],
)
def test_wrong_options_are_refused(options, words, bundle):
    with pytest.raises(prescore.InvalidArgument, match=words):
        prescore.Recorder(bundle, **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "line 1: expected"), (b'{"image": "a"}', "line 1: expected"), (b"[]", "line 1")],
)
def test_a_wrong_bundle_is_refused(content, words, tmp_path):
    (tmp_path / "captions.jsonl").write_bytes(content)
    with pytest.raises(prescore.InvalidArgument, match=words):
        prescore.Recorder(tmp_path)
    with pytest.raises(prescore.InvalidArgument, match="expected a dataset's folder"):
        prescore.Recorder(tmp_path / "captions.jsonl")
    with pytest.raises(prescore.InvalidArgument, match="cannot be read"):
        prescore.Recorder(tmp_path / "nothing")


def test_a_long_reference_is_measured_in_pieces_and_its_probabilities_are_not_kept(tmp_path):
    """Of 16 MB in float64: two pieces, and copies of no more than one."""
    bundles.write_bundle_folder(tmp_path, ITEMS[2:])
    logits = np.random.default_rng(1).normal(size=(100, 20_000))
    logits[:, 7] += np.arange(100) / 10
    targets = np.full(100, 7)
    with prescore.Recorder(tmp_path) as recorder:
        tracemalloc.start()
        for reference in range(3):
            recorder.add("b.jpg", reference, logits, targets)
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        recorder.write(tmp_path / "out")
    assert kept < 100_000
    assert peak < 4 * logits.nbytes
    found = load_file(tmp_path / "out")
    assert found["rank"][:100].tolist() == (logits > logits[:, 7:8]).sum(axis=1).tolist()
    expected = logits[:, 7] - np.log(np.exp(logits).sum(axis=1))
    np.testing.assert_allclose(found["logp"][:100], expected, rtol=1e-6)


@pytest.mark.processes
def test_importing_the_client_is_light_and_its_recorder_needs_numpy_alone():
    code = (
        "import sys, json, prescore; prescore.Client; before = [*sys.modules]; prescore.Recorder; "
        "print(json.dumps([before, [*sys.modules]]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    heavy = {"numpy", "torch", "safetensors", "fastapi", "typer", "service", "workers"}
    client, recorder = map(set, json.loads(result.stdout))
    assert not heavy & client
    assert heavy & recorder == {"numpy"}


def test_what_is_missing_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    for name in [name for name in sys.modules if name.startswith("prescore.recording")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"prescore-client\[recorder\]"):
        _ = prescore.Recorder
    with pytest.raises(AttributeError):
        _ = prescore.Recordings
