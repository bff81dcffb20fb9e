"""`prescore probe` on made-up captions; what its tables hold is tested with the engine."""

import csv
import json

import pytest

from helpers.builders import captions_with_references
from helpers.submissions import run_command
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem

WORDS = ["a", "the", "man", "woman", "people", "dog", "runs", "sits", "on", "grass"]
SAID, PEOPLE = captions_with_references(WORDS, 40, 0)


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    _, learned = captions_with_references(WORDS, 60, 1)
    items = [BundleItem(f"{at}.jpg", "test", ("a dog", *image)) for at, image in enumerate(PEOPLE)]
    items += [BundleItem(f"t{at}.jpg", "train", tuple(image)) for at, image in enumerate(learned)]
    bundles.write_bundle_folder(folder, items)
    with serve_here(tmp_path_factory.mktemp("home")) as service:
        run_command(service, "datasets", "add", "tiny", folder)
        yield service


@pytest.fixture
def probe(service):
    def run(*arguments, code=0):
        usual = ("--tokenizer", "none")
        metrics = () if "--metrics" in arguments else ("--metrics", "bleu_4,cider_d")
        split = () if arguments[0].startswith("tiny") else ("tiny/test",)
        return run_command(service, "probe", *split, *arguments, *usual, *metrics, code=code)

    return run


def test_every_probe_has_its_options_and_its_table(probe, tmp_path):
    given = [{"image": f"{at}.jpg", "caption": said} for at, said in enumerate(SAID)]
    (tmp_path / "outputs.json").write_text(json.dumps(given))
    asked = ("--captions", tmp_path / "outputs.json", "--csv", tmp_path / "table.csv")
    options = ("--frequent", "2", "--swap", "dog=cat,runs=sits")
    found = json.loads(probe(*asked, *options, "--json").stdout)
    names = ["human", "frequent", "rare", "swap", "random", "single"]
    assert list(found["probes"]) == names
    assert [row["name"] for row in found["probes"]["human"]] == ["RvR", "SvR"]
    assert len(found["probes"]["frequent"]) == 3
    swapped = [row["name"] for row in found["probes"]["swap"][1:]]
    assert swapped == ["dog -> cat", "runs -> sits"]
    assert len(found["probes"]["rare"]) == 5
    single = found["probes"]["single"][0]
    assert single["text"]
    assert set(single["scores"]) == {"bleu_4", "cider_d"}
    with (tmp_path / "table.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["probe"] for row in table} == set(names)
    assert all(row["score"] or row["reason"] for row in table)


def test_without_training_captions_a_table_says_so(probe):
    assert "no training captions" in probe("tiny/train", "--probes", "rare").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--probes", "humans"), 2, "expected 'human', 'frequent'"),
        (("--swap", "woman"), 2, "expected woman=man"),
        (("--probes", "human", "--metrics", "spice"), 3, "CoreNLP 3.6.0"),
        (("--probes", "human", "--captions", "nowhere.json"), 2, "cannot be read"),
    ],
)
def test_an_error_says_what_was_expected(probe, arguments, code, said):
    done = probe(*arguments, code=code)
    assert said in " ".join(done.stderr.replace("│", " ").split())
