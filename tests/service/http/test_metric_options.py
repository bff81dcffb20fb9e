"""One rule for names of metrics in all commands: how they are given, how an unknown one ends."""

import json
import shlex

import pytest
import typer
from typer.testing import CliRunner

from helpers import command_app
from helpers.fleet import bundle, checkpoint
from helpers.submissions import evaluate
from prescore.cli import suggestions
from service.contract.metrics import catalogue

WRONG = "cidr_d"
NAMING = {"metrics", "metric", "pregen", "postgen", "features", "sort", "gate", "trust"}
SAID = [{"image": f"{at}.jpg", "caption": f"w2 w{at % 7}"} for at in range(40)]


def _commands(group, *names):
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from _commands(one, *names, name)
        else:
            yield (*names, name), one


OF_METRICS = {
    (" ".join(names), each.name)
    for names, command in _commands(typer.main.get_command(command_app.prescore()))
    for each in command.params
    if each.name in NAMING and not each.is_flag
}
RATED = json.dumps({"image": "a", "references": ["a"], "caption": "b", "rating": 3})
JUDGED = "rated.jsonl"
ASKED = {
    ("captions", "sort"): ["captions", "EV", "--sort", WRONG],
    ("compare", "metrics"): ["compare", "EV", "EV", "--metrics", WRONG],
    ("correlations", "metrics"): ["correlations", "tiny/test", "--metrics", WRONG],
    ("gate", "gate"): ["gate", "said.json", "--dataset", "tiny/test", "--gate", f"{WRONG} > 0"],
    ("judge", "metrics"): ["judge", JUDGED, "--metrics", WRONG],
    ("leaderboard", "metrics"): ["leaderboard", "tiny/test", "--metrics", WRONG],
    ("learned train", "features"): [
        *("learned", "train", "tiny/test", "--features", WRONG),
        *("--outputs", "a=EV", "--outputs", "b=EV", "--outputs", "c=EV"),
    ],
    ("list", "metrics"): ["list", "--metrics", WRONG],
    ("probe", "metrics"): ["probe", "tiny/test", "--metrics", WRONG],
    ("score", "metrics"): ["score", "said.json", "--dataset", "tiny.tar/test", "--metrics", WRONG],
    ("signal", "metrics"): ["signal", "tiny/test", "--metrics", WRONG],
    ("submit", "gate"): ["submit", "said.json", "--dataset", "tiny/test", "--gate", f"{WRONG} > 0"],
}
for _name in ("submit", "gate"):
    for _option in ("metrics", "pregen", "postgen", "trust"):
        ASKED[_name, _option] = [
            *(_name, "said.json", "--dataset", "tiny/test"),
            *("--gate", "bleu_1 > 0", f"--{_option}", WRONG),
        ]


@pytest.fixture(scope="module")
def run(service):
    with service.client() as client:
        return evaluate(client, captions=SAID, tokenizer="none", postgen=["bleu"])["id"]


@pytest.fixture
def prescore(service, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_URL", service.url)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    (tmp_path / "said.json").write_text(json.dumps(SAID))
    (tmp_path / "tiny.tar").write_bytes(bundle(40))
    (tmp_path / "model.safetensors").write_bytes(checkpoint(0))
    (tmp_path / JUDGED).write_text(RATED + "\n" + RATED + "\n")
    app = command_app.prescore()

    def invoke(*arguments):
        given = [one.replace("EV", run) for one in arguments]
        return CliRunner().invoke(app, given)

    return invoke


def test_every_option_that_names_metrics_is_tried_here():
    assert set(ASKED) == OF_METRICS


@pytest.mark.parametrize("asked", ASKED.values(), ids=map(" --".join, ASKED))
def test_an_unknown_metric_is_usage(prescore, asked):
    told = prescore(*asked)
    assert told.exit_code == 2, told.output
    assert WRONG in told.stderr


def test_both_spellings_are_taken_several_times_or_with_commas(prescore):
    seen = [
        prescore("leaderboard", "tiny/test", *given, "--json")
        for given in (
            ("--metrics", "bleu_1,bleu_2"),
            ("--metric", "bleu_1", "--metric", "bleu_2"),
            ("--metrics", "bleu_1", "--metric=bleu_2"),
        )
    ]
    assert [one.exit_code for one in seen] == [0, 0, 0], seen[-1].output
    assert len({one.stdout for one in seen}) == 1
    [row] = json.loads(seen[0].stdout)
    assert list(row["scores"]) == ["bleu_2"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (f"sha256:{'0' * 64} --dataset tiny/test", ": submit its file instead"),
        ("said.json --dataset none/test", "no dataset 'none': add it by `prescore datasets add"),
        ("said.json --dataset tiny/test --beam 500", "Entity: --beam: expected at most 100, found"),
        ("said.json --dataset tiny/test --gate 'x > 0'", "Entity: --gate: no metric is called 'x'"),
        ("part.json --dataset tiny/test", "captions do not fit tiny@v1/test: 39 of 40 images have"),
        ("bad.json --dataset tiny/test", "test: captions, item 1, image: 'zz' is not an image of"),
    ],
)
def test_a_refusal_says_it_once_in_the_words_of_the_command(prescore, tmp_path, asked, said):
    (tmp_path / "part.json").write_text(json.dumps(SAID[:1]))
    (tmp_path / "bad.json").write_text(json.dumps([{**SAID[0], "image": "zz"}, *SAID[1:]]))
    told = prescore("submit", *shlex.split(asked))
    assert said in told.stderr
    line, request, *hints = told.stderr.splitlines()
    assert "/v1/" not in line
    assert request.startswith("  (request ")
    assert hints == (["none: no such dataset; there is tiny"] if "none/" in asked else [])


def test_files_are_compared_after_they_are_submitted(prescore):
    told = prescore("compare", "said.json", "model.safetensors")
    assert told.exit_code == 2
    assert told.stderr.splitlines() == [
        "expected a run's id, ev_..., found said.json",
        "Submit first what has no id yet, and name the id that is printed:",
        "  prescore submit said.json --dataset NAME/SPLIT --wait",
        "  prescore submit model.safetensors --dataset NAME/SPLIT --wait",
    ]
    one = prescore("compare", "EV", "said.json").stderr
    assert one.count("prescore submit") == 1


def test_the_commands_know_the_names_that_stand_for_several_metrics():
    assert set(suggestions.GROUPS) == set(catalogue.GROUPS)


@pytest.mark.parametrize("command", ["submit", "gate"])
def test_only_the_named_metrics_are_computed(prescore, command):
    asked = (command, "model.safetensors", "--dataset", "tiny/test", "--tokenizer", "none")
    more = ("--gate", "bleu_1 >= 0", "--beam", "1", "--json")
    wait = ("--wait",) * (command == "submit")
    told = prescore(*asked, *more, *wait, "--metrics", "rouge_l,perplexity", "--metric", "bleu")
    assert told.exit_code == 0, told.output
    bleu = {f"bleu_{n}" for n in range(1, 5)}
    assert {*json.loads(told.stdout)["scores"]} == {"perplexity", "rouge_l", *bleu}
    told = prescore(*asked, *more, *wait, "--metrics", "rouge_l")
    assert {*json.loads(told.stdout)["scores"]} == {"rouge_l", "bleu_1"}  # the gate's too


@pytest.mark.parametrize("command", ["submit", "gate"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--metrics", "bleu", "--postgen", "rouge_l"], "without --pregen and --postgen"),
        (["--metrics", "bleu", "--pregen", "none"], "without --pregen and --postgen"),
        (["--metrics", "all"], "--metrics: expected names of metrics, found 'all'"),
    ],
)
def test_metrics_are_named_in_one_way(prescore, command, given, said):
    asked = (command, "said.json", "--dataset", "tiny/test", "--gate", "bleu_1 > 0")
    told = prescore(*asked, *given)
    assert told.exit_code == 2
    assert said in told.stderr
