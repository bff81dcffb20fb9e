"""`prescore score` on files, by a service in its process and by another one."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app, encoders
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of, until_ended
from service.contract.assets import AssetFolders
from workers.offline import assets

METRICS = ["bleu", "cider_d", "wmd", "variety"]
SAID, PEOPLE = captions_with_references(encoders.WORDS, 60, 3)
SAID = [f"{caption}, it's 1.5 DOGS" for caption in SAID]  # for PTB to take apart
IMAGES = {f"{index}.jpg": image for index, image in enumerate(PEOPLE)}
GIVEN = [{"image": image, "caption": said} for image, said in zip(IMAGES, SAID, strict=True)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return _with_vectors(tmp_path_factory.mktemp("a home"))


def _with_vectors(home):
    vectors = home / "vectors.txt"
    lines = [f"{word} {index} {index * index % 7}" for index, word in enumerate(encoders.WORDS)]
    vectors.write_text("\n".join([f"{len(lines)} 2", *lines, ""]))
    assets.add_asset("word-vectors", vectors, AssetFolders(home))
    return home


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Somebody's files: outputs, and the dataset as a tar."""
    folder = tmp_path_factory.mktemp("some files")
    (folder / "out puts.json").write_text(json.dumps(GIVEN))
    (folder / "tiny.tar").write_bytes(bundle_of(IMAGES))
    return folder


@pytest.fixture(scope="module")
def service(serve_here, home):
    with serve_here(home) as service:
        service.add_dataset("tiny", bundle_of(IMAGES))
        yield service


@pytest.fixture
def score(home, folder, monkeypatch):
    """Runs the command in this process, in the folder of the files."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PRESCORE_HOME", str(home))
    monkeypatch.delenv("PRESCORE_URL", raising=False)

    def run(*arguments, file="out puts.json"):
        command = ["score", file, *arguments]
        return CliRunner().invoke(command_app.prescore(), command, catch_exceptions=False)

    return run


@pytest.fixture
def asked(service, score):
    """The same by the service, of captions or of those in the file."""

    def run(*arguments, captions=None):
        if captions is not None:
            Path("others.json").write_text(json.dumps(captions))
        file = "out puts.json" if captions is None else "others.json"
        return score("--dataset", "tiny/test", "--url", service.url, *arguments, file=file)

    return run


def test_it_says_what_a_service_says(service, folder, score, asked):
    """By a dataset's name, and by a file: value for value."""
    with service.client() as client:
        request = {"captions": GIVEN, "dataset": "tiny/test", "postgen": METRICS}
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        evaluation = until_ended(client, identity, 60)
        rows = client.get(f"/v1/evaluations/{identity}/captions").json()["items"]
    written = ("--json", "--csv", "own.csv", "--json-out", "own.json")
    options = ("--metrics", ",".join(METRICS), *written)
    fetched = json.loads(asked(*options).stdout)
    assert {task["cached"] for task in fetched["tasks"]} == {True}  # the service has done it
    assert (fetched["dataset"]["name"], fetched["dataset"]["version"]) == ("tiny", "v1")
    done = score("--dataset", "tiny.tar", *options)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["scores"] == fetched["scores"] == evaluation["scores"]
    assert found == json.loads((folder / "own.json").read_text())
    assert len(found["scores"]) == 14  # bleu has four, variety eight
    with (folder / "own.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    names = [name for name in rows[0]["scores"] if name != "wmd_distance"]
    for ours, theirs in zip(read, rows, strict=True):
        assert (ours["image"], ours["caption"]) == (theirs["image"], theirs["caption"])
        assert [float(ours[name]) for name in names] == [theirs["scores"][n] for n in names]


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A locale with decimal commas, made here."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("no localedef, or no de_DE to make a locale of")
    folder = tmp_path_factory.mktemp("locales")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    subprocess.run(made, check=True, capture_output=True)
    return {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LOCPATH": str(folder)}


def _installed():
    """Everything below site-packages, and when it was changed; nothing may be."""
    root = Path(sysconfig.get_paths()["purelib"])
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def _as_people_do(home, folder, *arguments, **environment):
    """The same command in a process of its own."""
    command = [sys.executable, "-m", "prescore_command", "score", "out puts.json", *arguments]
    paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    own = {"PRESCORE_HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": paths}
    return subprocess.run(
        command, cwd=folder, env={**own, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_numbers_do_not_depend_on_the_locale_and_nothing_is_written_where_it_is_installed(
    folder, tmp_path, german
):
    """As where site-packages cannot be written to."""
    before = _installed()
    options = ("--dataset", "tiny.tar", "--metrics", "meteor,cider_d,wmd", "--json")
    quiet, scores = {"PYTHONDONTWRITEBYTECODE": "1"}, []
    for locale in ({"LC_ALL": "C"}, german):
        home = tmp_path / locale["LC_ALL"]
        home.mkdir()
        done = _as_people_do(_with_vectors(home), folder, *options, **quiet, **locale)
        assert done.returncode == 0, done.stderr
        scores.append(json.loads(done.stdout)["scores"])
    assert scores[0] == scores[1]
    assert _installed() == before


def _told(done):
    return " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dataset", "nowhere.tar"), "found nowhere.tar: there is no such path"),
        (("--dataset", "tiny.tar/val"), "expected a split of tiny.tar, one of test"),
        ((), "--dataset"),
    ],
)
def test_a_dataset_that_is_not_here_is_told(score, arguments, said):
    done = score(*arguments)
    assert done.exit_code == 2
    assert said in _told(done)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--metrics", "blue"), 2, "did you mean bleu"),
        (("--metrics", "perplexity"), 2, "it needs a checkpoint"),
        (("--metrics", "bleu_1,spice"), 3, "unavailable: spice, tuples,"),
    ],
)
def test_an_error_says_what_was_expected_and_its_code_which_kind(asked, arguments, code, said):
    done = asked(*arguments)
    assert done.exit_code == code
    assert said in _told(done)
    assert ("bleu_1" in done.stdout) == (code == 3)


def test_what_is_odd_is_said_and_a_part_is_scored_on_the_wholes_scale(asked):
    part = [{"image": "3.jpg", "caption": "a\u2028dog"}]
    options = ("--subset", "--metrics", "cider_d", "--json")
    whole = asked(*options, captions=part)
    own = asked(*options, "--idf", "subset", captions=part)
    assert [done.exit_code for done in (whole, own)] == [0, 0]
    assert "warning: one_image" in whole.stderr
    assert "warning: line_separator: 3.jpg" in whole.stderr
    assert "df:corpus(n=60)" in json.loads(whole.stdout)["scores"]["cider_d"]["signature"]
    assert "df:subset(n=1)" in json.loads(own.stdout)["scores"]["cider_d"]["signature"]


def test_that_a_metric_says_the_same_of_all_captions_is_told(asked):
    """No caption has a word of a reference; the second ones have, one of them."""
    nonsense = [{**each, "caption": f"zz{place}"} for place, each in enumerate(GIVEN)]
    options = ("--metrics", "rouge_l", "--tokenizer", "none", "--subset")
    told = asked(*options, captions=nonsense).stderr
    assert "warning: no_spread: all 60 captions have the same rouge_l" in told
    assert "no_spread" in asked(*options, captions=nonsense[:20]).stderr
    assert "no_spread" not in asked(*options, captions=nonsense[:19]).stderr
    assert "no_spread" not in asked(*options, captions=[GIVEN[0], *nonsense[1:]]).stderr


def test_all_are_those_whose_files_are_here(folder, asked, monkeypatch):
    """Of some metrics, so that not all are computed."""
    some = {"rouge_l", "words_used", "spice", "spider", "chair_i", "nneval"}
    metrics = prescore.Client.metrics
    monkeypatch.setattr(
        prescore.Client, "metrics", lambda self: [m for m in metrics(self) if m.name in some]
    )
    options = ("--tokenizer", "none", "--metrics")
    done = asked(*options, "all", "--json-out", "all.json")
    assert done.exit_code == 0, done.stderr
    left_out = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert left_out[0].startswith("left out: spice, spider: CoreNLP")
    assert "left out: nneval: it agrees with people less than CIDEr-D" in done.stderr
    assert done.stdout.splitlines()[0] == "tiny@v1/test, 60 captions, 95 % intervals in brackets"
    scores = json.loads((folder / "all.json").read_text())["scores"]
    assert scores.keys() == {"rouge_l", "words_used"}
    both = asked(*options, "all,nneval")
    assert "left out: nneval" not in both.stderr
    assert "nneval was trained with the tokenizer 'ptb'" in both.stderr.replace("@0d07c27d6364", "")


def test_a_home_is_named_as_for_the_commands_that_add_files_to_it(score, tmp_path):
    options = ("--dataset", "tiny.tar", "--tokenizer", "none", "--metrics", "wmd")
    advised = score(*options, "--home", str(tmp_path))
    assert advised.exit_code == 3
    assert "with the same `--home`" in advised.stderr
    assert not (tmp_path / "assets").exists()


def test_json_is_not_advised_where_it_was_asked_for(asked, monkeypatch):
    monkeypatch.setattr("prescore.cli.score._SHOWN", 0)
    odd = [{**GIVEN[0], "caption": ""}]
    options = ("--tokenizer", "none", "--metrics", "rouge_l", "--subset")
    told = [
        asked(*options, *more, captions=odd).stderr
        for more in ((), ("--json",), ("--json-out", "more.json"))
    ]
    assert [re.findall("warning: .* more(.*)", each) for each in told] == [
        [", see --json"],
        [""],
        [""],
    ]
