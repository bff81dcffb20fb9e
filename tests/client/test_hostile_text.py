"""T55: whatever a service says, or another user of it has written, each command prints plain lines,
and as many of them as for harmless words.
"""

import csv
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from client.scripted_service import score, task
from helpers import command_app
from helpers.hostile_text import HOSTILE, REAL, check_plain, check_table

WORD = "{text}"  # where others' words stand in the answers below
DIGEST = "sha256:" + "0" * 64
PINNED = {"name": WORD, "version": WORD, "digest": DIGEST, "split": WORD}
PROBLEM = {
    **dict.fromkeys(("type", "title", "code", "detail", "request_id"), WORD),
    "errors": [{"pointer": WORD, "detail": WORD}],
}
BOTH = {"a": 0.5, "b": 0.4, "difference": -0.1, "interval": [-0.2, 0.1], "p": 0.5}
SCORE = score(0.41, interval=[0.38, 0.44], family=WORD, signature=WORD)
MEASURED = {"value": 0.4, "interval": [0.3, 0.5], "baseline": 0.5, "evaluation": WORD}
GATE = {"gate": WORD, "detail": WORD, "scores": {WORD: MEASURED}}
EVALUATION = {
    "id": "ev_1",
    "status": "succeeded",
    "dataset": PINNED,
    "checkpoint": WORD,
    "tasks": [{**task(WORD, WORD), "error": PROBLEM, "attempts": 2}],
    "scores": {WORD: SCORE},
    "warnings": [{"code": WORD, "image": WORD, "detail": WORD}],
    "gates": [{**GATE, "verdict": verdict} for verdict in ("failed", "undecided", WORD)],
    "verdict": WORD,
    "forecast": {WORD: {"value": 1.0, "interval": [0.0, 2.0], "of": 5, "images": 2}},
    "estimate": {WORD: WORD},
    "error": PROBLEM,
    "labels": {WORD: WORD},
}
STANDING = {"evaluation": WORD, "value": -0.5, "labels": {WORD: WORD}, "checkpoint": WORD}
FEATURES = {"encoder": {"name": WORD, "digest": WORD}, "size": 5}
DATASET = {**PINNED, "splits": {WORD: {"images": 1}}, "features": FEATURES}
TEST = {**PINNED, "name": "x", "version": "v1", "split": "test"}  # which commands look for
HEAD = {"dataset": TEST, "metric": WORD, "signature": WORD, "others": {WORD: 2}}
HEALTH = {"human": 1.5, "constant": 0.5, "constant_of_human": 0.3, "rare_of_human": 0.1}
PROBE = {"probe": WORD, "name": WORD, "share": 0.5, "scores": {WORD: 0.5}, "drop": {WORD: 0.1}}
USUAL = ("human", "frequent", "rare", "swap", "random", "single")
PROBES = {
    "id": "pb_1",
    "status": "succeeded",
    "dataset": TEST,
    "health": {WORD: HEALTH},
    "tasks": [*map(task, USUAL), {**task(WORD, WORD), "error": PROBLEM, "attempts": 2}],
    "probes": {WORD: [{**PROBE, "text": WORD, "note": WORD, "reason": WORD}]},
    "warnings": [{"code": WORD, "image": WORD, "detail": WORD}],
    "error": PROBLEM,
}
RELATED = {"place": 1, "metric": WORD, "r": 0.5, "r2": 0.25, "p": 0.1, "spearman": -0.5}
STUDY = {
    "evaluations": [WORD],
    "left_out": [{"evaluation": WORD, "metric": WORD, "reason": WORD}],
    "metrics": {WORD: {"rows": 1, "reason": WORD, "correlations": [RELATED]}},
}
DECISION = {"percent": 50, "accuracy": 0.5, "interval": [0.25, 0.75], "pairs": 3}
SIGNAL = {
    "dataset": PINNED,
    "target": WORD,
    "trainings": {WORD: 2},
    "left_out": {WORD: 1},
    "metrics": [{"metric": WORD, "largest_noise": WORD, "decisions": [DECISION]}],
}
CARD = {
    "stopped_by": WORD,
    "epochs": 5,
    "best_epoch": 2,
    "features": {WORD: WORD},
    "kendall_c": {WORD: [0.5, None]},
}
LEARNED = {**PROBES, "id": "ln_1", "metric": WORD, "model": CARD}
TOKEN = {"word": WORD, "logp": -1.0, "rank": 1, "top": WORD, "top_logp": -0.5}
TOPS = {**TOKEN, "tops": [{"word": WORD}], "entropy": 1.0}
CAPTION = {"image": WORD, "caption": WORD, "scores": {WORD: -0.5}}
MOVED = {"image": WORD, "a": WORD, "b": WORD, "scores": {WORD: BOTH}}
ANSWERS = {
    r"/v1/evaluations/ev_1/drops": {
        "gate": WORD,
        "metric": WORD,
        "baseline": WORD,
        "images": [MOVED],
    },
    r"/v1/evaluations": {"items": [EVALUATION], **EVALUATION},  # listed, and submitted
    r"/v1/evaluations/ev_1/captions": {"items": [CAPTION]},
    r"/v1/evaluations/ev_1/tokens/.*": {
        "image": WORD,
        "captions": [{"text": WORD, "tokens": [TOKEN, TOPS]}],
    },
    r"/v1/probes": {"items": [PROBES], **PROBES},
    r"/v1/probes/.*": PROBES,
    r"/v1/learned": {"items": [LEARNED], **LEARNED},
    r"/v1/learned/.*": LEARNED,
    r"/v1/studies(/.*)?": {**PROBES, "id": "st_1", "study": STUDY},
    r"/v1/metrics": {"items": [{"name": name} for name in (WORD, "a", "b")]},
    r"/v1/datasets/none/correlations": {"dataset": PINNED, "none_because": WORD},
    r"/v1/datasets/late/correlations": {
        "dataset": PINNED,
        "under_way": {"status": WORD, "error": PROBLEM},
    },
    r"/v1/datasets/.*/correlations": {"dataset": PINNED, "study": STUDY},
    r"/v1/datasets/none/signal": {**SIGNAL, "none_because": WORD},
    r"/v1/datasets/.*/signal": SIGNAL,
    r"/v1/evaluations/ev_1/pregen": {"scores": {WORD: SCORE}},
    r"/v1/evaluations/ev_failed": {**EVALUATION, "status": "failed"},
    r"/v1/evaluations(/.*)?": EVALUATION,
    r"/v1/comparisons(/.*)?": {
        "id": "cp_1",
        "status": "succeeded",
        "dataset": PINNED,
        "a": WORD,
        "b": WORD,
        "scores": {WORD: BOTH},
        "images": [MOVED],
    },
    r"/v1/datasets/.*/leaderboard": {"items": [{**STANDING, "rank": 1, "tied": True}], **HEAD},
    r"/v1/datasets/.*/history": {"items": [STANDING], **HEAD},
    r"/v1/datasets": {"items": [DATASET]},
    r"/v1/datasets/.*": DATASET,
}


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        found = next((a for where, a in ANSWERS.items() if re.fullmatch(where, path)), None)
        status = 200 if found else 404
        if "refused" in path:
            status, found = 422, {**PROBLEM, "status": 422}
        body = json.dumps(found).replace(WORD, json.dumps(self.server.text)[1:-1]).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815  the base's names


@pytest.fixture(scope="module")
def told():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


CSV = "table.csv"
COMMANDS = (
    ("status", "ev_1"),
    ("status", "ev_refused"),
    ("watch", "ev_1"),
    ("watch", "ev_failed"),
    ("cancel", "ev_1"),
    ("scores", "ev_1", "--csv", CSV),
    ("scores", "ev_1", "--pregen", "--csv", CSV),
    ("compare", "ev_1", "ev_2", "--images", "5", "--csv", CSV),
    ("leaderboard", "x/test", "--csv", CSV),
    ("leaderboard", "x/test", "--history", "--csv", CSV),
    ("leaderboard", "x/word", "--metric", "a,b", "--csv", CSV),
    ("datasets", "list"),
    ("list", "--metrics", "a,b", "--csv", CSV),
    ("captions", "ev_1", "--csv", CSV),
    ("captions", "ev_1", "--limit", "5"),
    ("tokens", "ev_1", "a.jpg", "--csv", CSV),
    ("correlations", "x/test", "--csv", CSV),
    ("correlations", "x/test", "--compute"),
    ("correlations", "none/test"),
    ("correlations", "late/test"),
    ("signal", "x/test", "--csv", CSV),
    ("signal", "none/test"),
    ("health", "x/test", "--csv", CSV),
    ("health", "x/test", "--compute"),
    ("probe", "x/test", "--csv", CSV),
    ("probes", "pb_1"),
    ("learned", "list"),
    ("learned", "show", "ln_1"),
    ("learned", "train", "x/test", "--outputs", "a=ev_1"),
    ("submit", DIGEST, "--dataset", "x/test", "--wait"),
    ("gate", DIGEST, "--dataset", "x/test", "--gate", "a > 0", "--csv", CSV, "--junit", "j.xml"),
)
of_each_command = pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda each: " ".join(each[:2])
)
OWN = ("::error title=prescore gate::", "::warning title=prescore gate::")


def _run(told, text, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_URL", f"http://127.0.0.1:{told.server_port}")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).unlink(missing_ok=True)
    told.text = text
    result = CliRunner().invoke(command_app.prescore(), [*arguments, "--patience", "0"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.long
@of_each_command
def test_foreign_text_is_plain_and_makes_no_line(told, tmp_path, monkeypatch, arguments):
    harmless = _run(told, "word", arguments, tmp_path, monkeypatch)
    lines = [len(part.splitlines()) for part in (harmless.stdout, harmless.stderr)]
    files = {path.name: len(path.read_text().split("\n")) for path in tmp_path.iterdir()}
    for text in HOSTILE.values():
        result = _run(told, text, arguments, tmp_path, monkeypatch)
        check_plain(result.output, OWN if arguments[0] == "gate" else ())
        assert [len(part.split("\n")) - 1 for part in (result.stdout, result.stderr)] == lines
        for name, count in files.items():
            written = (tmp_path / name).read_text("utf-8")
            if name == CSV:
                check_table((tmp_path / name).read_bytes().decode())
                continue
            if name != "j.xml":  # where a detail keeps its lines
                assert len(written.split("\n")) == count, (name, text[:20])
            check_plain(written)


@pytest.mark.long
@of_each_command
def test_what_people_write_stays_as_it_is(told, tmp_path, monkeypatch, arguments):
    result = _run(told, REAL, arguments, tmp_path, monkeypatch)
    if arguments[:1] not in (("cancel",), ("gate",)):
        assert REAL in result.output
    if CSV in arguments:
        with (tmp_path / CSV).open(newline="", encoding="utf-8") as file:
            assert any(REAL in cell for row in csv.reader(file) for cell in row)
    if arguments[0] == "gate":
        case = ET.parse(tmp_path / "j.xml").find(".//testcase")  # noqa: S314  our own file
        assert case.get("name") == REAL


def test_json_says_the_same_without_marks(told, tmp_path, monkeypatch):
    for text in HOSTILE.values():
        result = _run(told, text, ("status", "ev_1", "--json"), tmp_path, monkeypatch)
        check_plain(result.stdout)
        assert json.loads(result.stdout)["labels"] == {text: text}


def test_a_name_that_is_suggested_is_plain(told, tmp_path, monkeypatch):
    asked = ("leaderboard", "refused/test", "--metric", "cider_d")
    result = _run(told, "cider\x1b_d", asked, tmp_path, monkeypatch)
    check_plain(result.output)
    assert r"cider_d: did you mean cider\x1b_d?" in result.stderr


def test_an_id_that_could_be_a_command_is_no_answer(told, tmp_path, monkeypatch):
    """`watch it: prescore watch …` is what people copy into a shell."""
    monkeypatch.setitem(ANSWERS, r"/v1/evaluations(/.*)?", {**EVALUATION, "id": "ev_1;id"})
    result = _run(told, "word", ("status", "ev_2"), tmp_path, monkeypatch)
    assert result.exit_code == 4
    assert "not an answer of Prescore" in result.stderr
    assert ";id" not in result.output
