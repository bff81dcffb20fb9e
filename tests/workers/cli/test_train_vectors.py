"""`prescore assets train vectors` as a user calls it, and WMD with what it registers."""

import json
import signal

import pytest
from typer.testing import CliRunner

from helpers import command_app
from prescore import exit_codes
from service.contract.assets import AssetFolders, locate_asset, read_register
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.metrics.vectors import word2vec, word_vectors

COLOURS = ("red", "blue", "green", "white", "black", "brown")
WHO = ("dog", "cat", "horse", "car", "truck", "bus")
IMAGES = [(colour, who) for colour in COLOURS for who in WHO]


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A home without assets, and a bundle in three splits; each has a word of its own."""
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    _write(tmp_path / "bundle", ("train", "val", "test"))
    return tmp_path / "bundle"


def _write(folder, splits):
    items = [
        BundleItem(
            f"{split}-{colour}-{who}.jpg", split, (f"a {colour} {who} of {split}", f"the {who}")
        )
        for split in splits
        for colour, who in IMAGES
    ]
    bundles.write_bundle_folder(folder, items)


def _run(*arguments, code=0):
    result = CliRunner().invoke(command_app.prescore(), list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


def _train(*arguments, code=0):
    return _run(
        "assets", "train", "vectors", *arguments, "--tokenizer", "none", "--size", "8", code=code
    )


def _words(home, words):
    found = word_vectors.read_word_vectors(locate_asset("word-vectors", AssetFolders(home)).path)
    return [word for word, row in zip(words, found.find(words), strict=True) if row >= 0]


def test_wmd_is_available_once_vectors_are_trained(bundle, tmp_path):
    done = _train(bundle, "--json")
    said = f"added to the home {tmp_path / 'home'}: services of another one need it too"
    assert done.stderr.startswith(said)
    trained = json.loads(done.stdout)
    assert (trained["words"], trained["size"]) == (
        len({*COLOURS, *WHO, "a", "of", "train", "the"}),
        8,
    )
    assert trained["learned_from"] == [f"{bundle}/train"]
    said = [
        {"image": f"test-{colour}-{who}.jpg", "caption": f"a {colour}"} for colour, who in IMAGES
    ]
    (tmp_path / "said.json").write_text(json.dumps(said))
    asked = ("--dataset", f"{bundle}/test", "--metrics", "wmd,wmd_unit", "--tokenizer", "none")
    found = json.loads(_run("score", tmp_path / "said.json", *asked, "--json").stdout)
    assert 0 < found["scores"]["wmd"]["value"] < 1, found
    signature = found["scores"]["wmd"]["signature"]
    assert f"vectors:{trained['source'][:12]}|length:stored" in signature


def test_vectors_are_learned_from_the_training_split_from_a_named_one_or_from_all(bundle, tmp_path):
    splits, home = ["train", "val", "test"], tmp_path / "home"
    assert "16 words of 8 numbers; signatures say vectors:" in _train(bundle).stdout
    assert _words(home, splits) == ["train"]
    _train(bundle, "--split", "val")
    assert _words(home, splits) == ["val"]
    _train(f"{bundle}/test")
    assert _words(home, splits) == ["test"]
    _write(tmp_path / "other", ("val", "test"))
    _train(tmp_path / "other")
    assert _words(home, splits) == ["val", "test"]
    assert len(list((home / "assets").glob("word-vectors-*"))) == 1


def test_what_cannot_be_learned_from_is_refused_and_registers_nothing(bundle, tmp_path):
    said = _train(bundle, "--split", "all", code=exit_codes.REFUSED).stderr
    assert f"expected a split of {bundle}, one of test, train, val, found 'all'" in said
    bundles.write_bundle_folder(
        tmp_path / "few", [BundleItem("1.jpg", "train", ("a dog", "a red dog"))]
    )
    said = _train(tmp_path / "few", code=exit_codes.REFUSED).stderr
    assert "found 0 in 2 captions: train on more captions, or register word vectors" in said
    assert read_register(AssetFolders(tmp_path / "home")) == {}


def test_ctrl_c_leaves_what_was_registered_before_and_nothing_else(bundle, tmp_path, monkeypatch):
    _train(bundle)
    own = tmp_path / "home" / "assets"
    before = {path: path.read_bytes() for path in own.iterdir()}
    train = word2vec.train_word_vectors

    def interrupted(captions, path, options, progress):
        def told(done, total):
            if done == 2:
                signal.raise_signal(signal.SIGINT)
            assert done <= 3, "it went on"
            progress(done, total)

        train(captions, path, options, told)

    monkeypatch.setattr(word2vec, "train_word_vectors", interrupted)
    result = _train(bundle, "--seed", "1", code=exit_codes.INTERRUPTED)
    assert result.stderr.endswith("stopped: the training was stopped\n")
    assert {path: path.read_bytes() for path in own.iterdir()} == before
