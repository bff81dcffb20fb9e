"""`prescore export`: the bundle of a captioner of PyTorch computes what the captioner does. The
oracle is the module as a whole, run by torch.
"""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from helpers import command_app, documents, plain_search, synthetic_pictures, tokenizer_files
from helpers import exported_networks as networks
from helpers.builders import ENCODER
from helpers.exported_networks import END, UNKNOWN, WORDS
from service.contract.errors import RequestRefused
from service.contract.formats import bundles, onnx_bundles, packages
from service.contract.formats.bundles import BundleItem
from workers.cli.check import check
from workers.cli.export import export
from workers.export import bundle_writer, modules
from workers.inference import decoding, features, scoring
from workers.inference.onnx import captioner

pytestmark = [pytest.mark.processes, pytest.mark.long]

FEATURES = 7
KINDS = ["lstm", pytest.param("attention", marks=pytest.mark.slow)]
PAGE = "deploy/guide/bring-a-model.md"


@pytest.fixture(scope="module")
def exported(needs_sandbox, tmp_path_factory):
    """A network, and its bundle opened in the sandbox; each is exported once."""
    opened = {}

    def find(kind):
        if kind not in opened:
            whole = networks.made(kind)
            folder = tmp_path_factory.mktemp(kind) / "bundle"
            bundle_writer.write_bundle(folder, networks.described(kind, whole))
            opened[kind] = whole, captioner.read_onnx_captioner(folder), folder
        return opened[kind]

    yield find
    for _, each, _ in opened.values():
        each.close()


def _references(images, seed):
    rng = np.random.default_rng(seed)
    words = [each for each in WORDS if not each.startswith("<")]
    return [
        [" ".join(rng.choice([*words, "zebra"], rng.integers(0, 9))) for _ in range(2)]
        for _ in range(images)
    ]


def _ids(caption):
    return [WORDS.index(word) if word in WORDS else UNKNOWN for word in caption.split()]


@pytest.mark.parametrize("images", [1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_the_modules_own_loss_of_each_token(kind, images, exported):
    whole, ours, _ = exported(kind)
    rows = np.random.default_rng(images).normal(size=(images, FEATURES)).astype(np.float32)
    references = _references(images, images)
    found = scoring.compute_columns(ours, rows, ours.tokens.encode(references))
    logp, rank = [], []
    for row, captions in zip(rows, references, strict=True):
        for caption in captions:
            targets = [*_ids(caption), END]
            logits = networks.logits(whole, row, targets[:-1])
            loss = nn.functional.cross_entropy(logits, torch.tensor(targets), reduction="none")
            logp += (-loss).tolist()
            own = logits[range(len(targets)), targets]
            rank += (logits > own[:, None]).sum(1).tolist()
    np.testing.assert_allclose(found.logp, logp, atol=1e-4)
    np.testing.assert_array_equal(found.rank, rank)


@pytest.mark.parametrize("images", [1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_a_greedy_caption_is_what_the_module_would_say(kind, images, exported):
    whole, ours, _ = exported(kind)
    rows = np.random.default_rng(images).normal(size=(images, FEATURES)).astype(np.float32)
    options = decoding.DecodingOptions(beam=1, min_words=2, max_words=7)
    for row, caption in zip(rows, decoding.decode_captions(ours, rows, options), strict=True):

        def logits(words, row=row):
            return networks.logits(whole, row, words)[-1].detach().numpy()

        expected = plain_search.greedy(logits, END, least=2, most=7, never=[UNKNOWN])
        assert list(caption.words) == expected


class _Shared(nn.Module):
    """Gives one tensor for the state and the cell's memory."""

    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, features):
        h = self.whole.look(features)
        return (), (h, h)


def test_two_states_that_begin_as_one_tensor_stay_two():
    """Torch's export takes two inputs that are one tensor for one: the second is never read. The
    captioner of the guide is such a one.
    """
    whole = networks.made("lstm")
    given = networks.described("lstm", whole, look=_Shared(whole).eval())
    found = modules.wrap_modules(given)
    first = found.look(torch.zeros(3, FEATURES))
    assert first[0] is first[1]
    examples = modules.make_examples(found)
    places = [each.data_ptr() for each in (*examples.given, *examples.first)]
    assert len(set(places)) == len(places)


@pytest.mark.slow
def test_the_check_sees_two_inputs_that_became_one(tmp_path, monkeypatch):
    whole = networks.made("lstm")
    given = networks.described("lstm", whole, look=_Shared(whole).eval())
    monkeypatch.setattr(modules, "copy_tensors", lambda found: (*[found[0]] * len(found),))
    with pytest.raises(RequestRefused, match=r"step \d, 1 rows, logits: the module and its graph"):
        bundle_writer.write_bundle(tmp_path / "bundle", given)
    assert not (tmp_path / "bundle").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_network_with_other_weights_is_not_taken_for_its_graph(exported):
    whole, _, folder = exported("lstm")
    found = modules.wrap_modules(networks.described("lstm", networks.made("lstm", seed=1)))
    with packages.open_package(folder) as package:
        bundle = onnx_bundles.validate_onnx_bundle(package)
    bundle_writer.check_bundle(
        folder, bundle, modules.wrap_modules(networks.described("lstm", whole))
    )
    with pytest.raises(RequestRefused, match=r"look, state_0_first, 1 rows: .* differ by"):
        bundle_writer.check_bundle(folder, bundle, found)


@pytest.mark.slow
def test_a_score_that_looks_at_later_words_is_refused(tmp_path):
    whole = networks.made("attention")
    given = networks.described("attention", whole)
    score = given.score

    class Peeking(nn.Module):
        def forward(self, words, picture, state):
            return score(words.flip(1), picture, state)

    with pytest.raises(RequestRefused, match=r"score, 1 rows of 5 words, beside step 1"):
        bundle_writer.write_bundle(
            tmp_path / "out", networks.described("attention", whole, score=Peeking().eval())
        )


class _Wrong(nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, words, images, state):  # noqa: ARG002  what `step` is given
        return self.answer(words, state)


def _rows_second(words, state):
    return torch.zeros(len(words), len(WORDS)), tuple(each[None] for each in state)


def _without_state(words, state):
    return torch.zeros(len(words), len(WORDS)), ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step": _Wrong(lambda words, state: (words, state))}, r"found shape \[3\]"),
        ({"step": _Wrong(_rows_second)}, r"torch's LSTM and GRU have rows second: give h\[0\]"),
        ({"step": _Wrong(_without_state)}, "as many tensors of state as look gives, 2, found 0"),
        ({"look": nn.Linear(FEATURES, 3)}, "look: expected two results, images and state"),
        ({"start": "<begin>"}, "start: the words have no '<begin>'"),
        ({"encoder": None}, "expected --dataset with the bundle whose features"),
    ],
)
def test_what_a_function_returns_is_judged_before_anything_is_exported(change, said, tmp_path):
    change = {k: v.eval() if isinstance(v, nn.Module) else v for k, v in change.items()}
    given = networks.described("lstm", networks.made("lstm"), **change)
    with pytest.raises(RequestRefused, match=said):
        bundle_writer.write_bundle(tmp_path / "bundle", given)
    assert list(tmp_path.iterdir()) == []


def test_a_module_in_training_mode_is_refused(tmp_path):
    whole = networks.made("lstm")
    given = networks.described("lstm", whole)
    given.step.train()
    with pytest.raises(RequestRefused, match=r"step: expected a module in evaluation mode"):
        bundle_writer.write_bundle(tmp_path / "bundle", given)


def test_a_folder_with_files_is_left_as_it_is(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(RequestRefused, match="expected a new or empty folder"):
        bundle_writer.write_bundle(tmp_path, networks.described("lstm", networks.made("lstm")))
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(
        bundle_writer, "find_spec", lambda name: None if name == "onnxscript" else name
    )
    with pytest.raises(RequestRefused, match=r"needs onnxscript, .*\.\[workers,export\]"):
        bundle_writer.check_packages()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("nothing", "expected MODULE:FUNCTION, found 'nothing'"),
        ("no_such_module:f", "expected a module 'no_such_module' in this folder"),
        (
            "helpers.exported_networks:nothing",
            "helpers.exported_networks: expected a function 'nothing'",
        ),
        (
            "helpers.exported_networks:WORDS",
            "helpers.exported_networks: expected a function 'WORDS'",
        ),
    ],
)
def test_the_command_says_what_it_did_not_find(asked, said, tmp_path):
    done = command_app.invoke(export, asked, "--out", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert said in done.stderr


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with a module of this name, in which the command is called."""
    (tmp_path / "mine.py").write_text(
        "from helpers import exported_networks as networks\n"
        "def captioner():\n"
        "    return networks.described('lstm', networks.made('lstm'))\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("mine")
def test_the_command_writes_what_check_and_the_sandbox_take(monkeypatch, exported):
    _, _, folder = exported("lstm")
    monkeypatch.setattr(
        bundle_writer, "write_bundle", lambda out, given, encoder, begin: _copy(folder, out)
    )
    done = command_app.invoke(export, "mine:captioner", "--out", "out")
    assert done.exit_code == 0, done.output
    assert "out: 11 words, 432 parameters" in done.stdout
    done = command_app.invoke(check, "out", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["format"] == "onnx"
    assert (found["vocabulary_size"], found["feature_size"]) == (11, FEATURES)
    assert found["encoder"] == "random (none)"


def test_a_dataset_whose_features_have_another_size_is_refused_before_anything_is_exported(mine):
    bundles.write_bundle_folder(mine / "data", [BundleItem("1.jpg", "test", ("a dog",))])
    rows = np.ones((1, FEATURES + 2), np.float32)
    features.write_features(mine / "data" / bundles.FEATURES, ["1.jpg"], rows, ENCODER)
    done = command_app.invoke(export, "mine:captioner", "--out", "out", "--dataset", "data")
    assert done.exit_code == 2, done.output
    assert "the checkpoint expects image features of size 7, the dataset's have 9" in done.stderr
    assert not (mine / "out").exists()


def _copy(folder, out):
    shutil.copytree(folder, out)
    with packages.open_package(out) as package:
        return onnx_bundles.validate_onnx_bundle(package)


@pytest.mark.slow
def test_the_captioner_of_the_guide_is_exported(tmp_path):
    """A newcomer copies it. `Look` gives one tensor for two states."""
    scope = {}
    (text,) = documents.fenced(documents.read(PAGE), "python")
    exec(compile(text, PAGE, "exec"), scope)  # noqa: S102  our own document
    assert len([line for line in text.splitlines() if line]) <= 40
    given = dataclasses.replace(scope["captioner"](), encoder=networks.ENCODER)
    bundle = bundle_writer.write_bundle(tmp_path / "bundle", given)
    assert [*bundle.graphs] == ["look", "step"]
    with packages.open_package(tmp_path / "bundle") as package:
        assert sorted(package.files) == [
            "look.onnx", "prescore.json", "step.onnx", "vocabulary.json",
        ]  # fmt: skip


@pytest.mark.slow
def test_the_captioner_of_pictures_and_pieces_of_the_guide_is_exported(
    needs_sandbox, tmp_path, monkeypatch
):
    """By the command, as a newcomer does it; what is written opens, and captions pictures."""
    text = documents.read("deploy/guide/export_pictures.py")
    (tmp_path / "pictured.py").write_text(text)
    (tmp_path / "tokenizer.json").write_text(tokenizer_files.byte_pieces().to_str())
    monkeypatch.chdir(tmp_path)
    done = command_app.invoke(export, "pictured:captioner", "--out", "bundle")
    assert done.exit_code == 0, done.output
    done = command_app.invoke(check, "bundle", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["inputs"], found["units"], found["pictures"]) == ("pixels", "pieces", "224 x 224")
    (tmp_path / "data").mkdir()
    names = synthetic_pictures.write_dataset(tmp_path / "data", 3)
    one = captioner.read_onnx_captioner(tmp_path / "bundle")
    try:
        inputs = one.inputs(tmp_path / "data", names)
        captions = decoding.decode_captions(
            one, inputs, decoding.DecodingOptions(beam=2, max_words=5)
        )
        columns = scoring.compute_columns(
            one, inputs, one.tokens.encode(synthetic_pictures.sentences(3))
        )
    finally:
        one.close()
    assert len(captions) == 3
    assert np.isfinite(columns.logp).all()
