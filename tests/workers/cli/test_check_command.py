"""`prescore check` of captions, and of files that are nearly right."""

import gzip
import io
import json

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from helpers import onnx_bundle_files as files
from helpers import plugin_packages, tokenizer_files
from helpers.builders import ENCODER
from helpers.contract_files import tar, tar_entry
from service.contract.limits import CAPTION
from service.kernel import confinement
from workers.cli.check import check
from workers.inference import features
from workers.sandbox import operations

TWO = [{"image_id": "1.jpg", "caption": "a dog"}, {"image_id": "2.jpg", "caption": "a cat"}]
PEOPLE = "".join(
    json.dumps({"image": f"{n}.jpg", "split": "test", "references": ["a dog", "dogs"]}) + "\n"
    for n in (1, 2)
)


@pytest.fixture
def checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "captions.jsonl").write_text(PEOPLE)
    app = typer.Typer()
    app.command()(check)

    def run(*arguments, **files):
        for content in files.values():
            (tmp_path / arguments[0]).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    return run


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", json.dumps(TWO)),
        ("table.tsv", "caption\timage_id\na dog\t1.jpg\na cat\t2.jpg\n"),
    ],
)
def test_captions_of_each_format_are_counted_and_held_against_a_split(checked, name, content):
    alone = checked(name, "--json", content=content)
    assert json.loads(alone.stdout) == {"captions": 2, "first_image": "1.jpg"}
    against = checked(name, "--dataset", "mine", "--json")
    assert against.exit_code == 0, against.stderr
    assert json.loads(against.stdout)["images"] == "2 of 2 of mine/test"


def test_what_is_found_is_shown_in_words(checked):
    part = checked("a.json", "--dataset", "mine", "--subset", "--json", a=json.dumps(TWO[1:]))
    assert json.loads(part.stdout)["images"] == "1 of 2 of mine/test"
    whole = checked("mine/", "--json").stdout
    assert json.loads(whole)["splits"] == {"test": {"images": 2, "references": 4, "words": 6}}
    shown = checked("mine/").stdout.splitlines()
    assert shown == [
        "splits:            test: images 2, references 4, words 6",
        "features:          -",
    ]
    odd = json.dumps([{**TWO[0], "caption": "a\u0007"}, {**TWO[1], "caption": "a dog"}])
    told = checked("odd.json", "--dataset", "mine/", content=odd).stdout.splitlines()
    assert "2 of 2 of mine/test" in told[2]
    warnings = [line for line in told if line.startswith("warnings:")]
    assert warnings
    assert not [line for line in warnings if "[" in line or "{" in line]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps([*TWO, TWO[0]]), "item 3: image '1.jpg' has a caption already, in item 1"),
        (json.dumps([*TWO, {"image": "3", "caption": ""}]), "item 3: '3' is not an image of mine"),
        (
            json.dumps(TWO[1:]),
            "1 of 2 images has no caption, the first is '1.jpg'; add `--subset`",
        ),
        (json.dumps([{"image": "1.jpg", "caption": "x" * (CAPTION + 1)}]), "item 1: caption: "),
        ("[]", "expected captions in a.json, found none"),
        ('[{"image": "1.jpg"', "a.json, the file is not JSON"),
    ],
)
def test_captions_that_a_service_would_not_take_are_refused_with_their_place(
    checked, content, said
):
    done = checked("a.json", "--dataset", "mine", content=content)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def _tar(name):
    return tar(tar_entry(name.encode(), PEOPLE.encode()))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tgz", gzip.compress(_tar("captions.jsonl")), "packed by gzip: unpack it by `gunzip`"),
        ("a.tar", _tar("shapes/captions.jsonl"), "in the folder 'shapes': `tar -cf bundle.tar -C"),
        ("a.jsonl", json.dumps(TWO[0]) + '\n{"image": "2.jpg"\n', "a.jsonl, line 2 is not JSON"),
        ("empty", "", "found an empty file"),
        ("mine/captions.jsonl", PEOPLE, "has the references of a dataset bundle: check its folder"),
        ("model.bin", "\0\1", "found a file of no known format"),
    ],
)
def test_a_file_that_is_nearly_right_is_told_in_one_sentence(checked, name, content, said):
    done = checked(name, content=content)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_a_bundle_at_the_top_of_a_tar_is_right_and_takes_no_dataset(checked):
    assert checked("a.tar", content=_tar("./captions.jsonl")).exit_code == 0
    done = checked("a.tar", "--dataset", "mine")
    assert (done.exit_code, "for captions and columns" in done.stderr) == (2, True)


def _with_features(folder, names, wrong=(), counts=None, splits=None):
    """Images "1.jpg" to "6.jpg", and a row for each of `names`: ones, and at the end of the last
    place what `wrong` says.
    """
    splits = splits or {}
    lines = [
        {"image": f"{n}.jpg", "split": splits.get(n, "test"), "references": ["a dog"]}
        for n in range(1, 7)
    ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shape = (len(names), 4) if counts is None else (len(names), 3, 4)
    rows = np.ones(shape, np.float32)
    for name, value in dict(wrong).items():
        rows[names.index(name)].flat[-1] = value
    written = None if counts is None else np.full(len(names), counts)
    features.write_features(folder / "features.safetensors", names, rows, ENCODER, written)


SIX = [f"{n}.jpg" for n in (4, 2, 6, 1, 3, 5)]


@pytest.mark.parametrize(
    ("names", "wrong", "counts", "said"),
    [
        (SIX, {}, None, None),
        (SIX[1:], {}, None, "test: 1 of 6 images without features: '4.jpg'"),
        (
            SIX,
            {"2.jpg": np.nan, "5.jpg": -np.inf},
            None,
            "test: 2 of 6 images with features that are not finite numbers: '2.jpg', '5.jpg'",
        ),
        (SIX, {"4.jpg": np.nan}, 2, None),  # in a place that the image has not
        (
            SIX,
            {"4.jpg": np.nan},
            3,
            "test: 1 of 6 images with features that are not finite numbers: '4.jpg'",
        ),
    ],
)
def test_features_on_which_a_run_would_fail_are_told_with_the_images(
    checked, tmp_path, names, wrong, counts, said
):
    _with_features(tmp_path / "mine", names, wrong, counts)
    done = checked("mine")
    assert done.exit_code == (0 if said is None else 2)
    told = f"invalid_dataset: features.safetensors: {said}\n"
    assert done.stderr.endswith(told) if said else "invalid" not in done.stderr


def test_a_split_with_no_features_at_all_is_no_error_and_is_told(checked, tmp_path):
    _with_features(tmp_path / "mine", SIX[:4], splits={3: "train", 5: "train"})
    done = checked("mine", "--json")
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert (facts["splits"]["train"]["images"], facts["features"]["size"]) == (2, 4)
    (said,) = facts["warnings"]
    assert said.startswith("no features: train: no image of it has features")


def test_features_in_a_file_that_nobody_reads_are_told(checked, tmp_path):
    (tmp_path / "mine" / "features.npy").write_bytes(b"\x93NUMPY")
    (said,) = json.loads(checked("mine", "--json").stdout)["warnings"]
    assert said.startswith("passed over: features.npy: features are read from features.safetensors")


def test_references_without_words_are_told_of_a_bundle(checked, tmp_path):
    lines = [
        {"image": "0.jpg", "split": "train", "references": ["a dog"]},
        {"image": "1.jpg", "split": "test", "references": ["a dog", " ", ""]},
        {"image": "2.jpg", "split": "test", "references": ["\u2003", "a cat"]},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "mine" / "captions.jsonl").write_text(text)
    (said,) = json.loads(checked("mine", "--json").stdout)["warnings"]
    assert said == (
        "empty_references: test: 3 references of 2 images without words, which nothing matches; "
        "the first is of '1.jpg'"
    )


def test_captions_have_their_warnings_without_a_dataset_too(checked):
    odd = [("1", ""), ("2", "  "), ("3", "a\u2028dog"), ("4", "a\u0007"), ("5", "UNK " * 81)]
    given = json.dumps([{"image": image, "caption": caption} for image, caption in odd])
    warnings = json.loads(checked("odd.json", "--json", a=given).stdout)["warnings"]
    assert [one.partition(":")[0] for one in warnings] == [
        *("many_unknown_words", "empty_caption", "line_separator", "control_character"),
        "long_caption",
    ]
    assert warnings[1] == "empty_caption: it scores 0 (2 images, the first is '1')"
    same = json.dumps([{"image": str(at), "caption": "a dog"} for at in range(20)])
    (few,) = json.loads(checked("few.json", "--json", a=same).stdout)["warnings"]
    assert few.startswith("few_distinct_captions: one caption for all 20 images")


def test_a_file_of_a_plug_in_is_tried_out_where_the_plug_in_is_installed(checked, tmp_path):
    content, arrays = plugin_packages.checkpoint()
    alone = checked("model.safetensors", file=content)
    assert alone.exit_code == 0, alone.output
    assert "plug-in:           show-and-tell" in alone.output
    assert "not tried out: expected the plug-in 'show-and-tell', which is not" in alone.output
    plugin_packages.install(tmp_path / "site")
    with plugin_packages.beside(tmp_path / "site"):
        tried = checked("model.safetensors", "--json")
        assert tried.exit_code == 0, tried.output
        assert json.loads(tried.stdout) == {
            "format": "plugin",
            "plug-in": "show-and-tell",
            "opened by": "show-and-tell (acme-captioners 1.0)",
            "feature_size": 5,
            "vocabulary_size": 50,
            "units": "words",
            "encoder": "random (none)",
            "parameters": sum(each.size for each in arrays.values()),
        }
        wrong, _ = plugin_packages.checkpoint(config={"feature_size": 5, "size": 7})
        refused = checked("model.safetensors", file=wrong)
        assert refused.exit_code == 2
        assert "show-and-tell (acme-captioners 1.0) refused it" in refused.output


@pytest.mark.processes
def test_the_tokenizer_of_a_plug_ins_file_is_opened_in_the_sandbox_wherever_the_plug_in_is(
    needs_sandbox, checked, monkeypatch
):
    whole = plugin_packages.of_pieces()
    assert checked("model.safetensors", file=whole).exit_code == 0
    wrong = plugin_packages.of_pieces(**{"tokenizer.json": '{"model": {}}'})
    refused = checked("model.safetensors", file=wrong)
    assert refused.exit_code == 2
    assert "tokenizer.json describes no tokenizer" in refused.stderr
    monkeypatch.setattr(
        confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock"
    )
    done = checked("model.safetensors", "--json", file=whole)
    assert (done.exit_code, json.loads(done.stdout)["units"]) == (3, "pieces")


@pytest.mark.processes
def test_an_onnx_bundle_is_run_once_and_says_what_it_looks_at(needs_sandbox, checked, tmp_path):
    preprocessing = {"size": {"height": 5, "width": 6}, "resample": 3}
    tokenizer = tokenizer_files.byte_pieces()
    files.of_pixels(tmp_path / "bundle", tokenizer, preprocessing, (3, 5, 6))
    found = json.loads(checked("bundle", "--json").stdout)
    assert (found["inputs"], found["units"], found["pictures"]) == ("pixels", "pieces", "5 x 6")
    assert found["vocabulary_size"] == tokenizer.get_vocab_size()
    assert not {"encoder", "feature_size", "tokenizer"} & found.keys()
    (tmp_path / "bundle" / "tokenizer.json").write_text("{}")
    refused = checked("bundle")
    assert refused.exit_code == 2, refused.output
    assert "tokenizer.json describes no tokenizer" in refused.stderr


def _pictures(folder, broken=()):
    (folder / "images").mkdir()
    for name in ("1.jpg", "2.jpg"):
        file = io.BytesIO()
        Image.effect_noise((64, 48), 50).convert("RGB").save(file, "JPEG")
        whole = file.getvalue()
        (folder / "images" / name).write_bytes(
            whole[: len(whole) // 2] if name in broken else whole
        )


@pytest.mark.parametrize("broken", [(), ("1.jpg", "2.jpg")])
def test_pictures_that_cannot_be_decoded_are_named(needs_sandbox, checked, tmp_path, broken):
    _pictures(tmp_path / "mine", broken)
    done = checked("mine", "--json")
    assert done.exit_code == (2 if broken else 0), done.stderr
    assert [name for name in ("1.jpg", "2.jpg") if f"'{name}'" in done.stderr] == [*broken]


def test_without_a_sandbox_what_is_known_is_shown_and_what_is_not_is_told(
    checked, tmp_path, monkeypatch
):
    def unavailable(*_, **__):
        raise operations.ConfinementUnavailable("this kernel has no Landlock")

    _pictures(tmp_path / "mine")
    monkeypatch.setattr(operations, "run_operation", unavailable)
    done = checked("mine", "--json")
    facts = json.loads(done.stdout)
    assert (done.exit_code, facts["splits"]["test"]["pictures"]) == (3, 2)
    assert "the pictures are not checked: this kernel has no Landlock" in facts["not checked"]
    assert "prescore doctor" in facts["not checked"]
