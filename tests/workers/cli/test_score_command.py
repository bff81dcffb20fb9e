"""`prescore score` as people run it: a process, files, and a service to compare with.

The service is in this process: what is compared with it is its answers.
"""

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

from helpers import command_app, encoders
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of, until_ended
from service.contract.assets import AssetFolders
from workers.offline import assets

METRICS = ["bleu", "rouge_l", "cider_d", "cider", "wmd", "variety"]
SAID, PEOPLE = captions_with_references(encoders.WORDS, 60, 3)
SAID = [f"{caption}, it's 1.5 DOGS" for caption in SAID]  # for PTB to take apart
IMAGES = {f"{index}.jpg": image for index, image in enumerate(PEOPLE)}
GIVEN = [{"image": image, "caption": said} for image, said in zip(IMAGES, SAID, strict=True)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """With word vectors; there is a blank in its name."""
    home = tmp_path_factory.mktemp("a home")
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


def _score(home, folder, *arguments, **environment):
    command = [sys.executable, "-m", "prescore_command", "score", "out puts.json", *arguments]
    own = {"PRESCORE_HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": _python_path()}
    # Which kernels sum decides the last bits, and the service sums in this process.
    own |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    return subprocess.run(
        command, cwd=folder, env={**own, **environment}, capture_output=True, text=True, check=False
    )


def _python_path():
    return os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)


@pytest.fixture(scope="module")
def service(serve_here, home):
    with serve_here(home) as service:
        with service.client() as client:
            answer = client.put("/v1/datasets/tiny", content=bundle_of(IMAGES))
            assert answer.status_code == 201, answer.text
        yield service


@pytest.mark.processes
def test_it_says_what_a_service_says(service, home, folder, monkeypatch):
    """By a dataset's name, which it fetches once, and by a file: value for value. The second is
    in this process, for a second one of its own shows nothing new.
    """
    with service.client() as client:
        request = {"captions": GIVEN, "dataset": "tiny/test", "postgen": METRICS}
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        evaluation = until_ended(client, identity, 60)
        rows = client.get(f"/v1/evaluations/{identity}/captions").json()["items"]
    asked = ("--metrics", ",".join(METRICS), "--json", "--csv", "own.csv", "--json-out", "own.json")
    as_people_do = _score(
        home, folder, "--dataset", "tiny@v1/test", *asked, PRESCORE_URL=service.url
    )
    assert as_people_do.returncode == 0, as_people_do.stderr
    fetched = json.loads(as_people_do.stdout)
    assert fetched == json.loads((folder / "own.json").read_text())
    assert {task["cached"] for task in fetched["tasks"]} == {True}  # the service has done it
    assert (fetched["dataset"]["name"], fetched["dataset"]["version"]) == ("tiny", "v1")
    done = _invoke(home, folder, monkeypatch, "--dataset", "tiny.tar", *asked)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["scores"] == fetched["scores"] == evaluation["scores"]
    assert found == json.loads((folder / "own.json").read_text())
    assert len(found["scores"]) == 16  # bleu has four, variety eight
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


def _invoke(home, folder, monkeypatch, *arguments, file="out puts.json"):
    """The same command in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PRESCORE_HOME", str(home))
    monkeypatch.delenv("PRESCORE_URL", raising=False)
    command = ["score", file, *arguments]
    return CliRunner().invoke(command_app.prescore(), command, catch_exceptions=False)


def _installed():
    """Everything below site-packages, and when it was changed; nothing may be."""
    root = Path(sysconfig.get_paths()["purelib"])
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_numbers_do_not_depend_on_the_locale_and_nothing_is_written_where_it_is_installed(
    home, folder, german
):
    """As where site-packages cannot be written to."""
    before = _installed()
    asked = ("--dataset", "tiny.tar", "--metrics", "meteor,cider_d,wmd", "--json")
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
    found = [
        _score(home, folder, *asked, **quiet, **locale) for locale in ({"LC_ALL": "C"}, german)
    ]
    assert [done.returncode for done in found] == [0, 0], found[0].stderr + found[1].stderr
    assert len({done.stdout for done in found}) == 1
    assert _installed() == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--dataset", "nowhere.tar"), 2, "found nowhere.tar: there is no such path"),
        (("--dataset", "tiny.tar/val"), 2, "expected a split of tiny.tar, one of test"),
        (("--dataset", "tiny.tar", "--metrics", "blue"), 2, "did you mean bleu"),
        (("--dataset", "tiny.tar", "--metrics", "perplexity"), 2, "it needs a checkpoint"),
        (("--dataset", "tiny.tar", "--tokenizer", "moses"), 2, "'ptb', 'none'"),
        ((), 2, "--dataset"),
        (
            ("--dataset", "tiny.tar", "--metrics", "bleu_1,spice"),
            3,
            "unavailable: spice, tuples,",
        ),
    ],
)
def test_an_error_says_what_was_expected_and_its_code_which_kind(
    home, folder, monkeypatch, arguments, code, said
):
    done = _invoke(home, folder, monkeypatch, *arguments)
    assert done.exit_code == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert ("bleu_1" in done.stdout) == (code == 3)


@pytest.mark.processes
def test_what_is_odd_is_said_and_a_part_is_scored_on_the_wholes_scale(home, folder, monkeypatch):
    part = folder / "part"
    part.mkdir()
    (part / "out puts.json").write_text(json.dumps([{"image": "3.jpg", "caption": "a\u2028dog"}]))
    asked = ("--dataset", "../tiny.tar", "--subset", "--metrics", "cider_d", "--json")
    whole = _invoke(home, part, monkeypatch, *asked)
    own = _invoke(home, part, monkeypatch, *asked, "--idf", "subset")
    assert [done.exit_code for done in (whole, own)] == [0, 0]
    assert "warning: one_image" in whole.stderr
    assert "warning: line_separator: 3.jpg" in whole.stderr
    assert "df:corpus(n=60)" in json.loads(whole.stdout)["scores"]["cider_d"]["signature"]
    assert "df:subset(n=1)" in json.loads(own.stdout)["scores"]["cider_d"]["signature"]
    assert json.loads(own.stdout)["scores"]["cider_d"]["value"] == 0


@pytest.mark.processes
def test_that_a_metric_says_the_same_of_all_captions_is_told_here_and_by_a_service(
    service, home, folder, monkeypatch
):
    """No caption has a word of a reference; the second ones have, one of them."""
    nonsense = [{**each, "caption": f"zz{place}"} for place, each in enumerate(GIVEN)]
    one = folder / "nonsense"
    one.mkdir()
    asked = ("--dataset", "../tiny.tar", "--metrics", "rouge_l", "--tokenizer", "none", "--subset")

    def told(captions):
        (one / "out puts.json").write_text(json.dumps(captions))
        return _invoke(home, one, monkeypatch, *asked).stderr

    assert "warning: no_spread: all 60 captions have the same rouge_l" in told(nonsense)
    assert "no_spread" in told(nonsense[:20])
    assert "no_spread" not in told(nonsense[:19])
    assert "no_spread" not in told([GIVEN[0], *nonsense[1:]])
    request = {"captions": nonsense, "dataset": "tiny/test", "postgen": ["rouge_l"]}
    with service.client() as client:
        answer = client.post("/v1/evaluations", json={**request, "tokenizer": "none"})
        warnings = until_ended(client, answer.json()["id"], 60)["warnings"]
    assert "no_spread" in [warning["code"] for warning in warnings]


@pytest.mark.processes
def test_all_are_those_whose_files_are_here(home, folder, monkeypatch):
    asked = ("--dataset", "tiny.tar", "--tokenizer", "none", "--metrics", "all")
    done = _invoke(home, folder, monkeypatch, *asked, "--json-out", "all.json")
    assert done.exit_code == 0, done.stderr
    left_out = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert left_out[0].startswith("left out: spice, spider: CoreNLP")
    assert "left out: nneval: it agrees with people less than CIDEr-D" in done.stderr
    assert done.stdout.splitlines()[0] == ("tiny@v1/test, 60 captions, 95 % intervals in brackets")
    scores = json.loads((folder / "all.json").read_text())["scores"]
    assert scores.keys() > {"bleu_1", "rouge_l", "wmd", "accord", "words_used"}
    assert not scores.keys() & {"spice", "spider", "chair_i", "nneval"}
    both = _invoke(home, folder, monkeypatch, *asked[:-1], "all,nneval")
    assert "left out: nneval" not in both.stderr
    assert "nneval was trained with the tokenizer 'ptb'" in both.stderr.replace("@0d07c27d6364", "")


def test_a_home_is_named_as_for_the_commands_that_add_files_to_it(
    home, folder, tmp_path, monkeypatch
):
    asked = ("--dataset", "tiny.tar", "--tokenizer", "none", "--metrics", "wmd")
    advised = _invoke(tmp_path, folder, monkeypatch, *asked)
    assert advised.exit_code == 3
    assert "with the same `--home`" in advised.stderr
    done = _invoke(tmp_path, folder, monkeypatch, *asked, "--home", str(home))
    assert done.exit_code == 0, done.stderr
    assert "--home" not in done.stderr
    assert not (tmp_path / "assets").exists()


def test_json_is_not_advised_where_it_was_asked_for(home, folder, monkeypatch):
    monkeypatch.setattr("prescore.cli.score._SHOWN", 0)
    asked = ("--dataset", "tiny.tar", "--tokenizer", "none", "--metrics", "rouge_l", "--subset")
    (folder / "empty.json").write_text(json.dumps([{**GIVEN[0], "caption": ""}]))
    told = [
        _invoke(home, folder, monkeypatch, *asked, *more, file="empty.json").stderr
        for more in ((), ("--json",), ("--json-out", "more.json"))
    ]
    assert [re.findall("warning: .* more(.*)", each) for each in told] == [
        [", see --json"],
        [""],
        [""],
    ]


@pytest.mark.processes
def test_captions_without_blanks_are_told_and_not_given_to_meteor(home, folder, monkeypatch):
    other = folder / "chinese"
    other.mkdir()
    people = {"a.jpg": ["一只狗在草地上奔跑。"], "b.jpg": ["两个男人站在海边，望着远方。"]}
    (other / "tiny.tar").write_bytes(bundle_of(people))
    said = [{"image": image, "caption": "一个男人在海边看书"} for image in people]
    (other / "out puts.json").write_text(json.dumps(said))
    done = _invoke(home, other, monkeypatch, "--dataset", "tiny.tar", "--metrics", "bleu_1,meteor")
    assert "warning: no_words_found: the tokenizer ptb finds no words in 2 captions" in done.stderr
    assert "meteor: meteor is for English" in done.stderr
    assert done.exit_code == 3
    split = [{**each, "caption": "一个 男人 在 海边 看 书"} for each in said]
    (other / "out puts.json").write_text(json.dumps(split))
    (other / "tiny.tar").write_bytes(
        bundle_of({image: ["一 只 狗 在 草地 上"] for image in people})
    )
    asked = ("--dataset", "tiny.tar", "--metrics", "bleu_1", "--tokenizer", "none")
    done = _invoke(home, other, monkeypatch, *asked)
    assert (done.exit_code, "no_words_found" in done.stderr) == (0, False)
