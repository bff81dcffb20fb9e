"""prescore submit, status, watch, cancel, scores: what they print, where, and how they end."""

import csv
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import typer

from client.scripted_service import score, task
from helpers import command_app
from prescore.cli import console, progress, text

SCRIPT = Path(sys.executable).with_name("prescore")
SECRET = "sk-7f3a9c"


def _start(service, **fields):
    return service.start(
        **{
            "status": "running",
            "tasks": [task("columns", "running", 600, 1000), task("cider_d", "done", cached=True)],
            "scores": {
                "cider_d": score(0.41, interval=[0.38, 0.44]),
                "perplexity": score(12.345, family="pregen", higher_is_better=False),
                "wmd": score(None),
            },
            "labels": {"branch": "main"},
            **fields,
        }
    )


# submit


def test_a_submission_prints_the_runs_id_alone(service, prescore, checkpoint):
    result = prescore("submit", checkpoint, "--dataset", "shapes/test", "--pregen", "all")
    assert (result.exit_code, result.stdout) == (0, "ev_1\n")
    assert service.sent[0]["pregen"] == "all"
    assert "uploading epoch-08.safetensors: 7.0 kB\nuploaded" in result.stderr
    assert "prescore watch ev_1" in result.stderr
    again = prescore("submit", checkpoint, "--dataset", "shapes/test")
    assert "uploading" not in again.stderr
    assert len(service.seen("PUT", "checkpoints")) == 1


def test_every_option_of_submit_arrives(service, prescore, captions):
    options = (
        *("--pregen", "none", "--postgen", "cider_d, meteor", "--postgen", "spice"),
        *("--beam", 5, "--min-words", 2, "--max-words", 9, "--unk", "--tokenizer", "none"),
        *("--base", "tiny", "--precision", "bf16", "--length-power", 0.5, "--top", 5, "--entropy"),
        *("--prompt", "USER: <image>\nIt is"),
        *("--subset", "--label", "branch=main", "--label", "note=a=b", "--deadline", 60),
        *("--gate", "meteor > 0", "--gate", "spice > 0", "--baseline", "best"),
        *("--until", "verdict", "--trust", "spice"),
    )
    result = prescore("submit", captions, "--dataset", "shapes/test", *options, "--json")
    assert result.exit_code == 0, result.stderr
    assert service.sent == [
        {
            "captions": [
                {"image": "a.jpg", "caption": "a red square"},
                {"image": "7", "caption": "a"},
            ],
            "dataset": "shapes/test",
            "pregen": [],
            "postgen": ["cider_d", "meteor", "spice"],
            "base": "tiny",
            "precision": "bf16",
            "prompt": "USER: <image>\nIt is",
            "tokens": {"top": 5, "entropy": True},
            "decoding": {
                "beam": 5,
                "min_words": 2,
                "max_words": 9,
                "unk": True,
                "length_power": 0.5,
            },
            "tokenizer": "none",
            "subset": True,
            "gates": ["meteor > 0", "spice > 0"],
            "baseline": "best",
            "until": "verdict",
            "trust": ["spice"],
            "labels": {"branch": "main", "note": "a=b"},
            "deadline": 60,
        }
    ]
    assert json.loads(result.stdout)["labels"] == {"branch": "main", "note": "a=b"}


def test_waiting_prints_news_on_stderr_and_the_scores_at_the_end(service, prescore, captions):
    done = {"tasks": [task("cider_d")], "scores": {"cider_d": score(0.41, interval=[0.38, 0.44])}}
    with service.ending(status="succeeded", **done):
        result = prescore("submit", captions, "--dataset", "shapes/test", "--wait")
    assert result.exit_code == 0
    page = f"{service.url}/ui/evaluations/ev_1"
    for line in ("submitted ev_1", page, "ev_1  running", "ev_1  succeeded"):
        assert line in result.stderr
    assert "0.4100" not in result.stderr
    assert result.stdout.splitlines() == [
        "ev_1  succeeded  shapes@v1/test",
        "labels  file=results.json",
        "tasks",
        "  cider_d  done  1/1  0.5 s",
        "scores",
        "  cider_d  0.4100  [0.3800, 0.4400]",
    ]


def test_waiting_too_long_exits_3_and_leaves_the_run_going(service, prescore, captions):
    options = ("--dataset", "shapes/test", "--wait", "--timeout", 0.2)
    result = prescore("submit", captions, *options, "--json")
    assert result.exit_code == 3
    assert "ev_1 is still running after 0.2 s; it goes on in the service" in result.stderr
    assert json.loads(result.stdout)["status"] == "running"
    assert service.evaluations["ev_1"]["status"] == "running"


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{captions}", "--dataset", "shapes/test", "--label", "=x"), "expected NAME=VALUE"),
        (("{captions}", "--dataset", "shapes/test", "--timeout", "5"), "goes with --wait"),
        (("{captions}", "--dataset", "shapes/test", "--beam", "0"), "--beam"),
        (("{captions}", "--dataset", "shapes/test", "--url", "nonsense"), "expected a URL"),
        (("{captions}", "--dataset", "shapes/test", "--key-file", "none"), "cannot be read"),
    ],
)
def test_wrong_usage_exits_2_and_sends_nothing(service, prescore, captions, arguments, message):
    result = prescore("submit", *(text.format(captions=captions) for text in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert service.requests == []
    assert result.stdout == ""


def test_what_is_tried_again_is_told_meanwhile(service, prescore):
    _start(service)
    service.fault("GET", "ev_1", status=503, body={"title": "Busy \x1b[2J"})
    result = prescore("status", "ev_1")
    assert result.exit_code == 0
    assert result.stderr.startswith(r"503 Busy \x1b[2J; trying again in ")


# status, cancel, scores


def test_status_says_all_that_matters(service, prescore):
    failed = task("spice", "failed", attempts=3, seconds=None, error={"detail": "out of memory"})
    _start(
        service,
        status="failed",
        tasks=[task("columns", "done", 1000, 1000), failed],
        warnings=[
            {"code": "empty_caption", "image": "7", "detail": "no words"},
            {"code": "subset", "image": None, "detail": "59 of 60 images"},
        ],
        error={"title": "One task failed", "detail": "spice: out of memory"},
    )
    result = prescore("status", "ev_1")
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "ev_1  failed  shapes@v1/test, 59 of 60 images",
        "labels  branch=main",
        "error   spice: out of memory",
        "tasks",
        "  columns  done    1000/1000  0.5 s",
        "  spice    failed  1/1               attempt 3, out of memory",
        "scores",
        "  cider_d     0.4100  [0.3800, 0.4400]",
        "  perplexity  12.35                     lower is better",
        "  wmd         -",
        "warnings",
        "  empty_caption  7  no words",
    ]
    assert "shapes@v1/test, 59 of 60 images" in prescore("list").stdout


@pytest.mark.parametrize(
    ("warnings", "shown"),
    [
        ([("empty_caption", "0", "7.jpg")], [("empty_caption", "7.jpg", "0")]),
        (
            [("empty_caption", "0", "7.jpg"), ("empty_caption", "0", "9.jpg")],
            [("empty_caption", "", "0 (2 images, the first is '7.jpg')")],
        ),
        (
            [("long_caption", f"{words} words", f"{words}.jpg") for words in range(81, 103)],
            [("long_caption", "", "22 images, such as '81.jpg': 81 words")],
        ),
        ([("one_image", "0", None), ("one_image", "1", None)], [("one_image", "", "0")] * 2),
    ],
)
def test_warnings_of_images_with_one_code_are_one_row(warnings, shown):
    found = text.group_warnings(warnings)
    assert [row[:2] for row in found] == [row[:2] for row in shown]
    assert found[0] == shown[0]


def test_status_says_what_is_expected_and_what_gates_say(service, prescore):
    measured = {"value": 0.41, "interval": None, "baseline": 0.4, "difference": 0.01}
    drop = "no_significant_drop(cider_d, meteor)"
    _start(
        service,
        tasks=[],
        scores={},
        labels={},
        forecast={"cider_d": {"value": 0.4, "interval": [0.35, 0.45], "card": {}}},
        estimate={"cider_d": {"value": 0.42, "interval": [0.4, 0.44], "images": 400, "of": 1000}},
        gates=[
            {"gate": "meteor > 0", "verdict": "passed", "detail": None, "scores": {}},
            {
                "gate": drop,
                "verdict": None,
                "detail": "cider_d: +0.01",
                "scores": {"cider_d": measured, "meteor": {}},
            },
        ],
    )
    lines = prescore("status", "ev_1").stdout.splitlines()
    assert lines[1:6] == [
        "forecast",
        "  cider_d  0.4000  [0.3500, 0.4500]",
        "estimate",
        "  cider_d  0.4200  [0.4000, 0.4400]  400 of 1000 images",
        "gates",
    ]
    assert [line.split() for line in lines[7:10]] == [
        ["meteor", ">", "0", "passed"],
        [*drop.split(), "cider_d", "0.4100", "0.4000", "+0.01000", "open"],
        [*drop.split(), "meteor", "open"],
    ]
    assert lines[10:] == [f"open: {drop}: cider_d: +0.01"]
    beyond = {"value": 0.4, "interval": [0.35, 0.45], "beyond": 0.01, "card": {}}
    service.change("ev_1", forecast={"cider_d": beyond})
    told = "  cider_d  0.4000  [0.3500, 0.4500]  beyond what other runs have shown"
    assert told in prescore("status", "ev_1").stdout.splitlines()
    service.change("ev_1", forecast={"none_because": "only 3 evaluations"}, gates=[])
    assert "  none because  only 3 evaluations" in prescore("status", "ev_1").stdout
    service.change("ev_1", scores={"cider_d": score(0.43)})
    assert "estimate" not in prescore("status", "ev_1").stdout


@pytest.mark.parametrize(("status", "code"), [("queued", 0), ("succeeded", 0), ("canceled", 3)])
def test_status_exits_as_the_run_does(service, prescore, status, code):
    _start(service, status=status)
    result = prescore("status", "ev_1", "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["status"] == status
    assert json.loads(result.stdout)["scores"]["cider_d"]["interval"] == [0.38, 0.44]


def test_a_run_that_is_not_there_exits_2(service, prescore):
    for command in ("status", "watch", "cancel", "scores"):
        result = prescore(command, "ev_9")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "no evaluation ev_9" in result.stderr


def test_cancel_stops_it(service, prescore):
    _start(service)
    result = prescore("cancel", "ev_1")
    assert (result.exit_code, result.stdout) == (0, "ev_1  canceled\n")
    assert service.evaluations["ev_1"]["status"] == "canceled"
    assert result.stderr == ""
    again = prescore("cancel", "ev_1", "--json")
    assert json.loads(again.stdout)["id"] == "ev_1"
    assert again.stderr == "ev_1 had ended already (canceled): nothing was stopped\n"


@pytest.mark.parametrize(
    ("value", "said"),
    [(2974.2, "2974"), (-2974.2, "-2974"), (0.5, "0.5000"), (29742.0, "2.974e+04"), (1000, "1000")],
)
def test_a_number_has_four_digits_and_no_point_without_any_after_it(value, said):
    assert text.format_number(value) == said
    assert text.format_difference(value) == (said if value < 0 else f"+{said}")


def test_scores_are_printed_as_far_as_they_are(service, prescore):
    _start(service)
    result = prescore("scores", "ev_1")
    assert result.exit_code == 0
    assert result.stdout.startswith("cider_d     0.4100  [0.3800, 0.4400]\n")
    assert result.stderr == "ev_1 is running: more may follow\n"
    service.change("ev_1", status="failed")
    assert prescore("scores", "ev_1").exit_code == 3
    service.change("ev_1", scores={})
    assert prescore("scores", "ev_1").stdout == ""


def test_scores_as_a_csv_file(service, prescore, tmp_path):
    _start(service, status="succeeded")
    path = tmp_path / "scores.csv"
    assert prescore("scores", "ev_1", "--csv", path).exit_code == 0
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0] == {
        "name": "cider_d",
        "value": "0.41",
        "low": "0.38",
        "high": "0.44",
        "family": "postgen",
        "higher_is_better": "True",
        "signature": "s",
    }
    assert rows[2]["value"] == rows[2]["low"] == ""


# watch


@pytest.mark.parametrize("command", ["status", "watch"])
def test_a_metric_in_which_a_constant_sentence_is_as_good_as_people_is_told(
    service, prescore, command
):
    health = {"cider_d": {"constant_of_human": 1.12}, "wmd": {"constant_of_human": 0.4}}
    _start(service, status="succeeded", health={**health, "spice": {"constant_of_human": 2}})
    lines = prescore(command, "ev_1").stdout.splitlines()
    [told] = [line for line in lines if line.startswith("health: ")]
    assert told.endswith(": cider_d 112% of people's; prescore health shapes@v1/test")
    assert lines[lines.index(told) - 4] == "scores"
    service.change("ev_1", health={"cider_d": {"constant_of_human": None}, "wmd": None})
    assert "health" not in prescore(command, "ev_1").stdout


@pytest.mark.parametrize("command", ["status", "watch", "scores"])
def test_a_run_that_gave_no_score_exits_3_and_tells_once_why(service, prescore, command):
    detail = "CoreNLP 3.6.0 is not here"
    spice = task("spice", "unavailable", error={"detail": detail})
    warnings = [{"code": "unavailable", "image": None, "detail": f"spice: {detail}"}]
    _start(service, status="succeeded", tasks=[spice], scores={}, warnings=warnings)
    result = prescore(command, "ev_1")
    assert result.exit_code == 3
    assert "ev_1 has no score: spice unavailable\n" in result.stderr
    assert result.stdout.count(detail) == (command != "scores")
    service.change("ev_1", scores={"cider_d": score(0.41)})
    assert prescore(command, "ev_1").exit_code == 0
    service.change("ev_1", scores={}, tasks=[task("captions")])  # no score was asked for
    assert prescore(command, "ev_1").exit_code == 0


@contextmanager
def _terminal(capsys, monkeypatch):
    """Collects what a terminal shows, and stdout has not."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    yield shown
    shown += capsys.readouterr()
    assert shown[0] == ""
    assert "\x1b[" in shown[1]


def test_on_a_terminal_there_is_a_live_table(service, client, capsys, monkeypatch):
    _start(service)
    end = service.ending(status="succeeded", tasks=[task("columns", "done", 1000, 1000)])
    with _terminal(capsys, monkeypatch) as shown, end:
        progress.follow_run(client, "ev_1")
    assert "600/1000" in shown[1]


def test_on_a_terminal_an_upload_shows_a_bar(capsys, monkeypatch):
    upload = console.show_upload("big.safetensors")
    with _terminal(capsys, monkeypatch) as shown, upload as report:
        report(0, 5_000_000)
        report(5_000_000, 5_000_000)
    assert "uploading big.safetensors" in shown[1]
    assert "5.0/5.0 MB" in shown[1]


@pytest.mark.long
def test_ctrl_c_ends_the_watching_and_not_the_run_and_leaves_no_colour(service):
    _start(service)
    process = subprocess.Popen(
        [SCRIPT, "watch", "ev_1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PRESCORE_URL": service.url, "COLUMNS": "100", "FORCE_COLOR": "1"},
    )
    service.wait_until(lambda: any("Prefer" in headers for _, _, headers in service.requests))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stdout == b""
    first, *_, last = stderr.decode().splitlines()
    assert first == "ev_1  running"
    assert last == (
        "ev_1 goes on in the service; watch it again: prescore watch ev_1; "
        "stop it: prescore cancel ev_1"
    )
    assert b"\x1b" not in stderr
    assert b"Traceback" not in stderr
    assert service.evaluations["ev_1"]["status"] == "running"
    assert service.seen("POST") == []


# Secrets


def test_the_key_comes_from_a_file(service, prescore, tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    assert prescore("status", "ev_1", "--key-file", path).exit_code
    assert service.requests[0][2]["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("content", [" \n", f"{SECRET} {SECRET}", f"{SECRET}\x00", "ключ"])
def test_a_key_file_without_a_key_exits_2(prescore, tmp_path, content):
    path = tmp_path / "key"
    path.write_text(content, encoding="utf-8")
    result = prescore("datasets", "list", "--key-file", path)
    assert result.exit_code == 2
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({}, 0),
        ({"status": 401}, 2),
        ({"status": 500}, 4),
        ({"status": 200, "body": b"?"}, 4),
        ({"lose": "answer", "times": 10**6}, 4),
    ],
)
def test_nothing_that_is_printed_holds_the_key(service, monkeypatch, prescore, fault, code):
    _start(service, status="succeeded")
    service.fault("GET", "ev_1", **fault)
    monkeypatch.setenv("PRESCORE_KEY", SECRET)
    for json_ in ((), ("--json",)):
        service.faults[0].times += 1
        result = prescore("status", "ev_1", "--patience", 0.05, *json_)
        assert result.exit_code == code
        assert SECRET not in result.output + repr(result.exception)
    assert service.requests[0][2]["Authorization"] == f"Bearer {SECRET}"


def _commands(group, *names):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *names, name)
        elif command.callback.__module__.startswith("prescore.cli."):
            yield " ".join((*names, name)), command


def test_help_teaches_by_examples_that_fit_a_terminal(prescore, monkeypatch):
    found = dict(_commands(typer.main.get_command(command_app.prescore())))
    assert len(found) > 30
    examples = {
        name: [line.strip() for line in command.help.splitlines() if f"prescore {name}" in line]
        for name, command in found.items()
    }
    assert all(examples.values())
    assert max(len(line) for lines in examples.values() for line in lines) <= 78
    monkeypatch.setenv("COLUMNS", "80")
    shown = prescore("gate", "--help").stdout
    assert all(f" {line} " in shown for line in examples["gate"])


@pytest.mark.parametrize(
    ("options", "detail", "told"),
    [
        # a near name that the service has told is not told again
        (("--postgen", "cidr_d"), "no metric 'cidr_d'; did you mean cider_d?", None),
        # words for many metrics are no misspelt ones
        (("--postgen", "none"), "the checkpoint reads other features", None),
        (("--postgen", "all"), "the checkpoint reads other features", None),
        # a field that programs are advised to send is an option
        ((), "40 have none; send `subset: true` to score", "40 have none; add `--subset` to score"),
    ],
)
@pytest.mark.parametrize("command", [("submit",), ("gate", "--gate", "cider_d > 0")])
def test_a_refusal_is_told_in_the_words_of_the_command(
    service, prescore, captions, command, options, detail, told
):
    problem = {"title": "Refused", "detail": detail}
    service.fault("POST", "/v1/evaluations", status=422, body=problem)
    name, *more = command
    result = prescore(name, captions, "--dataset", "shapes/test", *more, *options)
    assert result.stderr == f"422 Refused: {told or detail}\n"


def test_a_submission_tells_the_warnings_on_its_captions(service, prescore, captions, monkeypatch):
    odd = {"code": "no_words_found", "image": None, "detail": "in 2 captions of 2: split\x1b them"}
    monkeypatch.setattr(service, "start", partial(service.start, warnings=[odd]))
    done = prescore("submit", captions, "--dataset", "shapes/test")
    assert "warning: no_words_found: in 2 captions of 2: split" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.exit_code == 0
