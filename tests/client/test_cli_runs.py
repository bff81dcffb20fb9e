"""prescore submit, status, watch, cancel, scores: what they print, where, and how they end."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.scripted_service import ScriptedService, score, task
from helpers import command_app
from prescore.cli import text

SCRIPT = Path(sys.executable).with_name("prescore")
SECRET = "sk-7f3a9c"


@pytest.fixture
def prescore(service, quick, monkeypatch):
    """Runs a command in this process, against the service."""
    monkeypatch.setenv("PRESCORE_URL", service.url)
    app = command_app.prescore()
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "results.json"
    items = [{"image": "a.jpg", "caption": "a red square"}, {"image_id": 7, "caption": "a"}]
    path.write_text(json.dumps(items))
    return path


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


@contextmanager
def _meanwhile(action):
    thread = threading.Thread(target=action)
    thread.start()
    yield
    thread.join()


def _end(service, id_="ev_1", **fields):
    """At the client's first look, or the next one."""

    def end():
        service.wait_until(lambda: service.seen("GET", id_))
        service.change(id_, **fields)

    return _meanwhile(end)


# submit


def test_a_submission_prints_the_runs_id_alone(service, shapes, prescore, checkpoint):
    result = prescore("submit", checkpoint, "--dataset", "shapes/test")
    assert (result.exit_code, result.stdout) == (0, "ev_1\n")
    assert "uploading epoch-08.safetensors: 7.0 kB\nuploaded" in result.stderr
    assert "prescore watch ev_1" in result.stderr
    again = prescore("submit", checkpoint, "--dataset", "shapes/test")
    assert "uploading" not in again.stderr
    assert len(service.seen("PUT", "checkpoints")) == 1


def test_a_digest_is_submitted_without_the_file(service, shapes, client, prescore, checkpoint):
    digest = client.upload_checkpoint(checkpoint)
    result = prescore("submit", digest, "--dataset", "shapes/test", "--json")
    assert json.loads(result.stdout)["checkpoint"] == digest
    assert len(service.seen("HEAD")) == 1


def test_every_option_of_submit_arrives(service, shapes, prescore, captions):
    options = (
        *("--pregen", "none", "--postgen", "cider_d, meteor", "--postgen", "spice"),
        *("--beam", 5, "--min-words", 2, "--max-words", 9, "--unk", "--tokenizer", "none"),
        *("--precision", "bf16", "--length-power", 0.5, "--top", 5, "--entropy"),
        *("--subset", "--label", "branch=main", "--label", "note=a=b", "--deadline", 60),
        *("--gate", "meteor > 0", "--gate", "spice > 0", "--baseline", "best"),
        *("--until", "verdict", "--trust", "spice"),
    )
    result = prescore("submit", captions, "--dataset", "shapes/test", *options, "--json")
    assert result.exit_code == 0, result.stderr
    assert [request for request, _ in service.submissions.values()] == [
        {
            "captions": [
                {"image": "a.jpg", "caption": "a red square"},
                {"image": "7", "caption": "a"},
            ],
            "dataset": "shapes/test",
            "pregen": [],
            "postgen": ["cider_d", "meteor", "spice"],
            "precision": "bf16",
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


@pytest.mark.parametrize(("given", "sent"), [("all", "all"), ("none", []), ("a,b", ["a", "b"])])
def test_pregen_is_all_or_none_or_names(service, shapes, prescore, captions, given, sent):
    prescore("submit", captions, "--dataset", "shapes/test", "--pregen", given)
    assert next(iter(service.submissions.values()))[0]["pregen"] == sent


def test_waiting_prints_news_on_stderr_and_the_scores_at_the_end(
    service, shapes, prescore, captions
):
    done = {"tasks": [task("cider_d")], "scores": {"cider_d": score(0.41, interval=[0.38, 0.44])}}
    with _end(service, status="succeeded", **done):
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


@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_waiting_for_a_run_that_fails_exits_3(service, shapes, prescore, captions, status):
    with _end(service, status=status, error={"title": "Timed out", "detail": "too slow"}):
        result = prescore("submit", captions, "--dataset", "shapes/test", "--wait", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["error"]["detail"] == "too slow"


def test_waiting_too_long_exits_3_and_leaves_the_run_going(service, shapes, prescore, captions):
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
        (("absent.safetensors", "--dataset", "shapes/test"), "cannot be read: No such file"),
        (("absent.json", "--dataset", "shapes/test"), "cannot be read: No such file"),
        (
            (".", "--dataset", "shapes/test"),
            "expected a model: found a folder with no .safetensors file",
        ),
        (("{captions}",), "--dataset"),
        (("{captions}", "--dataset", "shapes/test", "--label", "main"), "expected NAME=VALUE"),
        (("{captions}", "--dataset", "shapes/test", "--label", "=x"), "expected NAME=VALUE"),
        (("{captions}", "--dataset", "shapes/test", "--timeout", "5"), "goes with --wait"),
        (("{captions}", "--dataset", "shapes/test", "--beam", "0"), "--beam"),
        (("{captions}", "--dataset", "shapes/test", "--url", "nonsense"), "expected a URL"),
        (("{captions}", "--dataset", "shapes/test", "--key-file", "none"), "cannot be read"),
        (("{captions}", "--dataset", "shapes/test", "--key", "x"), "No such option"),
    ],
)
def test_wrong_usage_exits_2_and_sends_nothing(service, prescore, captions, arguments, message):
    result = prescore("submit", *(text.format(captions=captions) for text in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert service.requests == []
    assert result.stdout == ""


def test_a_refusal_exits_2_and_says_where(service, shapes, prescore, tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text('[{"image": "z\\u001b[2Jz", "caption": "a"}]')
    result = prescore("submit", path, "--dataset", "shapes/test")
    assert result.exit_code == 2
    assert "422 Refused: 1 captions cannot be placed" in result.stderr
    assert "captions, item 1, image: unknown image" in result.stderr
    assert result.stdout == ""


def test_no_answer_exits_4_and_says_what_to_look_at(prescore):
    result = prescore("status", "ev_1", "--url", "http://127.0.0.1:1", "--patience", 0)
    assert result.exit_code == 4
    assert "no answer from http://127.0.0.1:1" in result.stderr
    assert "PRESCORE_URL" in result.stderr


def test_a_broken_service_exits_4(service, prescore):
    service.fault("GET", "ev_1", status=500, body={"title": "Broken"})
    result = prescore("status", "ev_1")
    assert (result.exit_code, result.stderr) == (4, "500 Broken\n")


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
        warnings=[{"code": "empty_caption", "image": "7", "detail": "no words"}],
        error={"title": "One task failed", "detail": "spice: out of memory"},
    )
    result = prescore("status", "ev_1")
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "ev_1  failed  shapes@v1/test",
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


def test_a_run_on_a_part_of_the_split_says_so(service, prescore):
    _start(service, warnings=[{"code": "subset", "image": None, "detail": "59 of 60 images"}])
    shown = prescore("status", "ev_1").stdout
    assert shown.splitlines()[0].endswith("shapes@v1/test, 59 of 60 images")
    assert "warnings" not in shown
    assert "shapes@v1/test, 59 of 60 images" in prescore("list").stdout


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
        [*drop.split(), "cider_d", "0.4100", "0.4000", "+0.01", "open"],
        [*drop.split(), "meteor", "open"],
    ]
    assert lines[10:] == [f"open: {drop}: cider_d: +0.01"]
    service.change("ev_1", forecast={"none_because": "only 3 evaluations"}, gates=[])
    assert "  none because  only 3 evaluations" in prescore("status", "ev_1").stdout
    score = {
        "value": 0.43,
        "interval": [0.4, 0.46],
        "signature": "cider_d",
        "higher_is_better": True,
    }
    service.change("ev_1", scores={"cider_d": score})
    assert "estimate" not in prescore("status", "ev_1").stdout


def test_others_words_do_not_steer_the_terminal(service, prescore):
    _start(service, labels={"branch": "\x1b]0;owned\x07\x1b[31m\nev_1 succeeded"})
    result = prescore("status", "ev_1")
    assert "\x1b" not in result.stdout
    assert "\nev_1 succeeded" not in result.stdout


@pytest.mark.parametrize(
    ("status", "code"),
    [("queued", 0), ("running", 0), ("succeeded", 0), ("failed", 3), ("canceled", 3)],
)
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


def test_all_pregen_scores_in_json(service, prescore):
    _start(service, status="succeeded")
    result = prescore("scores", "ev_1", "--pregen", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["scores"]["perplexity"]["value"] == 12.5


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
    result = prescore("scores", "ev_1", "--csv", tmp_path / "absent" / "scores.csv")
    assert result.exit_code == 2
    assert "expected a folder for scores.csv, found none at" in result.stderr


# watch


@pytest.mark.long
def test_watching_prints_each_tasks_end_once(service, prescore):
    _start(service, tasks=[task("columns", "running", 1, 1000)], scores={})

    def go_on():
        for number in (2, 3):
            service.wait_until(lambda number=number: len(service.seen("GET", "ev_1")) >= number)
            service.change("ev_1", tasks=[task("columns", "running", number * 100, 1000)])
        service.wait_until(lambda: len(service.seen("GET", "ev_1")) >= 4)
        service.change("ev_1", tasks=[task("columns", "done", 1000, 1000, seconds=2.1)])
        service.wait_until(lambda: len(service.seen("GET", "ev_1")) >= 5)
        service.change("ev_1", scores={"cider_d": score(0.41)}, status="succeeded")

    with _meanwhile(go_on):
        result = prescore("watch", "ev_1")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines == ["ev_1  running", "columns  done  2.1 s", "ev_1  succeeded"]
    assert "cider_d  0.4100" in result.stdout


def test_what_was_computed_before_is_shown_once(service, prescore):
    gates = [{"gate": "cider_d > 0.4", "verdict": "passed", "detail": "0.4100", "scores": {}}]
    _start(service, status="succeeded", tasks=[task("cider_d", cached=True)], gates=gates)
    result = prescore("watch", "ev_1")
    assert result.stderr == "ev_1  succeeded\n"
    assert [result.stdout.count(word) for word in ("12.35", "cached", "[0.3800")] == [1, 1, 1]


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


SPICE = task("spice", "unavailable", error={"detail": "CoreNLP 3.6.0 is not here"})


@pytest.mark.parametrize("command", ["status", "watch", "scores"])
def test_a_run_that_gave_no_score_exits_3(service, prescore, command):
    _start(service, status="succeeded", tasks=[SPICE], scores={})
    result = prescore(command, "ev_1")
    assert result.exit_code == 3
    assert "ev_1 has no score: spice unavailable\n" in result.stderr
    service.change("ev_1", scores={"cider_d": score(0.41)})
    assert prescore(command, "ev_1").exit_code == 0
    service.change("ev_1", scores={}, tasks=[task("captions")])  # no score was asked for
    assert prescore(command, "ev_1").exit_code == 0


def test_why_a_metric_is_unavailable_is_told_once(service, prescore):
    told = [{"code": "unavailable", "image": None, "detail": "spice: CoreNLP 3.6.0 is not here"}]
    odd = {"code": "one_image", "image": None, "detail": "of one image"}
    _start(service, status="succeeded", tasks=[SPICE], scores={}, warnings=[*told, odd])
    shown = prescore("status", "ev_1").stdout
    assert shown.count("CoreNLP 3.6.0 is not here") == 1
    assert "of one image" in shown


def _environment(service, **more):
    clean = {name: value for name, value in os.environ.items() if "PRESCORE" not in name}
    return {**clean, "PRESCORE_URL": service.url, "TERM": "xterm", "COLUMNS": "100", **more}


@contextmanager
def _terminal():
    """Both ends of a terminal."""
    outer, inner = pty.openpty()
    try:
        yield outer, inner
    finally:
        os.close(outer)


def _all_of(outer):
    content = b""
    while True:
        try:
            piece = os.read(outer, 65536)
        except OSError:  # the other end is closed
            return content.decode()
        if not piece:
            return content.decode()
        content += piece


@pytest.mark.long
def test_on_a_terminal_there_is_a_live_table_and_stdout_stays_plain(service):
    _start(service)
    with _terminal() as (outer, inner):
        process = subprocess.Popen(
            [SCRIPT, "watch", "ev_1"],
            stdout=subprocess.PIPE,
            stderr=inner,
            env=_environment(service),
        )
        os.close(inner)
        with _end(service, status="succeeded", tasks=[task("columns", "done", 1000, 1000)]):
            screen = _all_of(outer)
        stdout = process.communicate(timeout=20)[0].decode()
    assert process.returncode == 0
    assert "\x1b[" in screen
    assert "600/1000" in screen
    assert "\x1b" not in stdout
    assert "columns  done  1000/1000" in stdout


@pytest.mark.long
def test_on_a_terminal_an_upload_shows_a_bar(service, shapes, tmp_path):
    path = tmp_path / "big.safetensors"
    path.write_bytes(bytes(5_000_000))
    with _terminal() as (outer, inner):
        process = subprocess.Popen(
            [SCRIPT, "submit", path, "--dataset", "shapes/test"],
            stdout=subprocess.PIPE,
            stderr=inner,
            env=_environment(service),
        )
        os.close(inner)
        screen = _all_of(outer)
        stdout = process.communicate(timeout=20)[0].decode()
    assert stdout == "ev_1\n"
    assert "uploading big.safetensors" in screen
    assert "\x1b[" in screen
    assert "5.0/5.0 MB" in screen


@pytest.mark.long
@pytest.mark.parametrize("force", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "FORCE_COLOR"])
def test_ctrl_c_ends_the_watching_and_not_the_run(service, force):
    _start(service)
    process = subprocess.Popen(
        [SCRIPT, "watch", "ev_1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(service, **force),
    )
    service.wait_until(lambda: any("Prefer" in headers for _, _, headers in service.requests))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stdout == b""
    assert stderr.decode().splitlines()[-1] == (
        "ev_1 goes on in the service; watch it again: prescore watch ev_1; "
        "stop it: prescore cancel ev_1"
    )
    assert b"\x1b" not in stderr
    assert b"Traceback" not in stderr
    assert service.evaluations["ev_1"]["status"] == "running"
    assert service.seen("POST") == []


# Secrets


@pytest.mark.parametrize("by", ["file", "environment"])
def test_the_key_comes_from_a_file_or_the_environment(quick, tmp_path, monkeypatch, by):
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    if by == "environment":
        monkeypatch.setenv("PRESCORE_KEY", SECRET)
    with ScriptedService(key=SECRET) as service:
        options = ("--url", service.url, *(("--key-file", str(path)) if by == "file" else ()))
        result = CliRunner().invoke(command_app.prescore(), ["datasets", "list", *options])
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize("content", ["", " \n", f"{SECRET} {SECRET}", f"{SECRET}\x00", "ключ"])
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


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        *("submit", "status", "watch", "cancel", "scores", "gate", "datasets add", "datasets list"),
        *("list", "captions", "tokens", "leaderboard", "correlations", "health", "probes"),
        *("learned list", "learned show", "learned train", "score", "probe"),
    ],
)
def test_help_teaches_by_examples_that_fit_a_terminal(prescore, monkeypatch, command):
    def examples(columns):
        monkeypatch.setenv("COLUMNS", columns)
        text = prescore(*command.split(), "--help").stdout.partition("─ ")[0]
        lines = [line.strip() for line in text.splitlines() if f"prescore {command}" in line]
        return lines[1:]  # the first one is the usage

    narrow, wide = examples("80"), examples("200")
    assert wide
    assert narrow == wide


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
    service, shapes, prescore, captions, command, options, detail, told
):
    problem = {"title": "Refused", "detail": detail}
    service.fault("POST", "/v1/evaluations", status=422, body=problem)
    name, *more = command
    result = prescore(name, captions, "--dataset", "shapes/test", *more, *options)
    assert result.stderr == f"422 Refused: {told or detail}\n"


def test_a_submission_tells_the_warnings_on_its_captions(
    service, shapes, prescore, captions, monkeypatch
):
    odd = {"code": "no_words_found", "image": None, "detail": "in 2 captions of 2: split\x1b them"}
    monkeypatch.setattr(service, "start", partial(service.start, warnings=[odd]))
    done = prescore("submit", captions, "--dataset", "shapes/test")
    assert "warning: no_words_found: in 2 captions of 2: split" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.exit_code == 0
