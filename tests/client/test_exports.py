"""`prescore export --format`: other tools' readers find the numbers of the service, to the bit."""

import csv
import io
import json
import os
import re
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import prescore
from client.scripted_service import ScriptedService, score
from helpers import command_app
from helpers.fleet import bundle, checkpoint
from helpers.hostile_text import HOSTILE, REAL, check_table
from helpers.service_here import service_here
from helpers.submissions import run_command
from prescore.exports import new_files, trainings
from prescore.exports.every_eval_ever import write_every_eval_ever
from prescore.exports.finished_runs import FinishedRun
from prescore.exports.inspect_logs import write_inspect_logs
from prescore.exports.mlflow_runs import write_mlflow_runs
from prescore.exports.score_tables import write_score_table
from prescore.exports.wandb_runs import write_wandb_runs
from prescore.models import Caption, Evaluation

IMAGES = 40
SAID = [f"w{at % 7 + 2} w3 w{at % 5 + 2}" for at in range(IMAGES)]
STEPS = {1: 11, 2: 12, 10: 13}  # and the seeds of their checkpoints


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("home")) as service:
        service.add_dataset("tiny", bundle(IMAGES))
        yield service


@pytest.fixture(scope="module")
def runs(service, tmp_path_factory):
    """Answers of runs: one of captions with hostile labels, and the checkpoints of a training."""
    folder = tmp_path_factory.mktemp("checkpoints")
    captions = {f"{at}.jpg": caption for at, caption in enumerate(SAID)}
    labels = {"formula": HOSTILE["formula"], "page": HOSTILE["page"], "real": REAL}
    asked = {"postgen": ["rouge_l", "bleu", "cider_d"], "tokenizer": "none"}
    with prescore.Client(service.url) as client:
        found = [client.submit("tiny/test", captions=captions, labels=labels, **asked)]
        for step, seed in STEPS.items():
            path = folder / f"{step}.safetensors"
            path.write_bytes(checkpoint(seed=seed))
            digest = client.upload_checkpoint(path)
            named = {"run": "7", "step": str(step)}
            asked = {"pregen": "all", "postgen": ["rouge_l"], "tokenizer": "none"}
            found.append(client.submit("tiny/test", checkpoint=digest, labels=named, **asked))
        ended = [client.wait(run.id, timeout=60) for run in found]
    assert [run.status for run in ended] == ["succeeded"] * 4
    with service.client() as http:  # the numbers as the service sends them
        return [http.get(f"/v1/evaluations/{run.id}").json() for run in ended]


@pytest.fixture(scope="module")
def samples(service, runs):
    with service.client() as http:
        path = f"/v1/evaluations/{runs[0]['id']}/captions"
        return http.get(path, params={"limit": 1000}).json()["items"]


@pytest.fixture(scope="module")
def references(service):
    with service.client() as http:
        return {
            f"{at}.jpg": http.get(f"/v1/datasets/tiny@v1/images/{at}.jpg/references").json()[
                "references"
            ]
            for at in range(IMAGES)
        }


def _export(service, *arguments):
    return run_command(service, "export", "--format", *arguments)


def _values(run):
    return {name: one["value"] for name, one in run["scores"].items() if one["value"] is not None}


# CSV


def test_a_table_has_each_score_of_each_run_and_no_formula(service, runs, tmp_path):
    _export(service, "csv", "tiny/test", "--out", tmp_path / "scores.csv")
    heading, *rows = check_table((tmp_path / "scores.csv").read_bytes().decode("utf-8"))
    table = [dict(zip(heading, row, strict=True)) for row in rows]
    found = {(row["evaluation"], row["metric"]): row for row in table}
    wanted = {(run["id"], name): one for run in runs for name, one in run["scores"].items()}
    assert found.keys() == wanted.keys()
    for key, one in wanted.items():
        row = found[key]
        assert (row["value"], row["signature"]) == (repr(one["value"]), one["signature"])
        low, high = one["interval"] or ("", "")
        assert (row["low"], row["high"]) == (str(low), str(high))
    labels = json.loads(found[runs[0]["id"], "rouge_l"]["labels"])
    assert labels == runs[0]["labels"]


def test_a_table_on_stdout_has_the_runs_that_are_named_once_and_all_pregen_scores(service, runs):
    id_ = runs[1]["id"]
    done = _export(service, "csv", id_, "step=1", id_, runs[0]["id"], "--pregen")
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    with service.client() as http:
        pregen = http.get(f"/v1/evaluations/{id_}/pregen").json()["scores"]
    without = [row["metric"] for row in rows if row["evaluation"] == runs[0]["id"]]
    assert without == list(runs[0]["scores"])  # captions have no pre-gen scores
    rows = rows[: -len(without)]
    assert {row["evaluation"] for row in rows} == {id_}
    assert [row["metric"] for row in rows] == [*pregen, "perplexity", "rouge_l"]
    assert len(rows) > 600


def test_labels_choose_runs_of_a_split_and_a_limit_is_told(service, runs):
    done = _export(service, "csv", "tiny/test", "--label", "run=7", "--limit", 2)
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    assert {row["evaluation"] for row in rows} == {run["id"] for run in runs[2:]}  # the latest
    assert "has more runs than --limit 2" in done.stderr
    assert "more runs" not in _export(service, "csv", "tiny/test", "--limit", 4).stderr
    done = run_command(
        service, "export", "--format", "csv", "tiny/test", "--label", "run=9", code=2
    )
    assert done.stdout == ""
    assert "no run of tiny/test that has succeeded matches" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--format", "csv", "ev_1"),
            "expected a run that has succeeded, found ev_1, which is runn",
        ),
        (("--format", "inspect", "ev_1"), "--out: expected a new or empty folder"),
        (("--format", "csv", "ev_1", "--label", "a=b"), "--label: expected DATASET/SPLIT"),
        (("--format", "csv", "ev_1", "--dataset", "x"), "--dataset belongs to MODULE:FUNCTION"),
        (("ev_1",), "found no --format with 'ev_1' and no --out"),
        (("ev_1", "ev_2", "--out", "x"), "found no --format with 'ev_1, ev_2'"),
    ],
)
def test_what_cannot_be_exported_is_told_in_a_line(service_of_one, arguments, said):
    done = service_of_one("export", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.fixture
def service_of_one(quick, monkeypatch):
    """Runs a command against a service with one run that goes on."""
    with ScriptedService() as scripted:
        scripted.start(scores={"cider_d": score(0.5)})
        monkeypatch.setenv("PRESCORE_URL", scripted.url)
        app = command_app.prescore()
        yield lambda *given: CliRunner().invoke(app, list(map(str, given)))


# Every Eval Ever


SCHEMAS = Path(__file__).parents[1] / "oracles" / "every_eval_ever"
THEIR_PYTHON = os.environ.get("PRESCORE_EEE_PYTHON", "")  # with every_eval_ever, Python 3.12


def _read_lines(path):
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


@pytest.fixture(scope="module")
def records(service, runs, tmp_path_factory):
    """Folder of an export of all runs; (aggregate, samples) of each by its run's id."""
    folder = tmp_path_factory.mktemp("exports") / "eee"
    _export(service, "every-eval-ever", "tiny/test", "--organization", "Ours & co", "--out", folder)
    found = {}
    for path in folder.glob("data/*/*/*/*.json"):
        (aggregate,) = _read_lines(path)
        samples = path.with_name(f"{path.stem}_samples.jsonl")
        id_ = aggregate["source_metadata"]["additional_details"]["run"]
        found[id_] = aggregate, _read_lines(samples) if samples.exists() else []
    assert found.keys() == {run["id"] for run in runs}
    return folder, found


def test_every_eval_ever_has_records_of_its_schema(records):
    def check(name, values):
        schema = json.loads((SCHEMAS / name).read_text("utf-8"))
        validator = jsonschema.Draft7Validator(schema)
        assert [error.message for one in values for error in validator.iter_errors(one)] == []

    _, found = records
    check("eval.schema.json", [aggregate for aggregate, _ in found.values()])
    check("instance_level_eval.schema.json", [one for _, lines in found.values() for one in lines])


def test_every_eval_ever_has_the_numbers_and_texts_of_runs(runs, records, samples, references):
    _, found = records
    for run in runs:
        aggregate, _ = found[run["id"]]
        results = {
            one["metric_config"]["metric_name"]: one for one in aggregate["evaluation_results"]
        }
        scores = {name: one["score_details"]["score"] for name, one in results.items()}
        assert scores == _values(run)
        for name, one in results.items():
            bounds = one["score_details"]["uncertainty"].get("confidence_interval")
            interval = run["scores"][name]["interval"]
            assert interval == (bounds and [bounds["lower"], bounds["upper"]])
            better = run["scores"][name]["higher_is_better"]
            assert one["metric_config"]["lower_is_better"] == (better is False)
        details = aggregate["source_metadata"]["additional_details"]
        assert json.loads(details["labels"]) == run["labels"]
    _, lines = found[runs[0]["id"]]
    told = {
        (one["sample_id"], one["evaluation_result_id"].rpartition("/")[2]): one for one in lines
    }
    assert len(told) == len(lines) == IMAGES * len(samples[0]["scores"])
    for sample in samples:
        for name, value in sample["scores"].items():
            one = told[sample["image"], name]
            assert one["evaluation"]["score"] == value
            assert one["output"]["raw"] == [sample["caption"]]
            assert one["input"]["reference"] == references[sample["image"]]


def test_every_eval_ever_takes_an_export_itself(records):
    if not THEIR_PYTHON:
        pytest.skip("PRESCORE_EEE_PYTHON names no Python with every_eval_ever; schemas are checked")
    folder, found = records
    paths = [str(path) for path in sorted(folder.glob("data/*/*/*/*.json*"))]
    assert len(paths) == 2 * len(found)
    command = [THEIR_PYTHON, "-m", "every_eval_ever", "validate", "--format", "json", *paths]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    reports = json.loads(done.stdout)
    assert [(one["errors"], one["warnings"]) for one in reports] == [([], [])] * len(paths)
    assert done.returncode == 0


def test_a_second_export_has_the_same_names(service, runs, records, tmp_path):
    _export(
        service,
        "every-eval-ever",
        runs[0]["id"],
        "--organization",
        "Ours & co",
        "--out",
        tmp_path / "a",
    )
    (path,) = (tmp_path / "a").glob("data/*/*/*/*.json")
    assert (records[0] / path.relative_to(tmp_path / "a")).exists()


# Inspect


def test_inspect_reads_logs_with_the_numbers_and_texts_of_runs(
    service, runs, samples, references, tmp_path
):
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    _export(service, "inspect", "tiny/test", "--out", tmp_path / "logs")
    logs = {
        path.stem: reader.read_eval_log(str(path)) for path in (tmp_path / "logs").glob("*.json")
    }
    assert logs.keys() == {run["id"] for run in runs}
    for run in runs:
        log = logs[run["id"]]
        scores = {one.name: one for one in log.results.scores}
        found = {name: one.metrics[name].value for name, one in scores.items()}
        assert found == _values(run)
        for name, one in scores.items():
            told = one.metrics[name].metadata
            assert told["interval"] == run["scores"][name]["interval"]
            assert told["signature"] == run["scores"][name]["signature"]
        assert (log.status, log.eval.model) == ("success", run["checkpoint"] or run["id"])
        assert log.eval.metadata["labels"] == run["labels"]
    log = logs[runs[0]["id"]]
    assert [one.id for one in log.samples] == [sample["image"] for sample in samples]
    for one, sample in zip(log.samples, samples, strict=True):
        assert one.target == references[sample["image"]]
        assert one.output.completion == sample["caption"]
        assert {name: score.value for name, score in one.scores.items()} == sample["scores"]


def test_a_standard_error_is_inspects_own_and_only_of_means(service, runs, tmp_path):
    """CIDEr-D and ROUGE-L are means over captions, BLEU is none."""
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    scorer = pytest.importorskip("inspect_ai.scorer", reason="inspect_ai is not installed")
    _export(service, "inspect", runs[0]["id"], "--out", tmp_path / "logs")
    log = reader.read_eval_log(str(tmp_path / "logs" / f"{runs[0]['id']}.json"))
    found = {one.name: one.metrics.get("stderr") for one in log.results.scores}
    assert {name for name, error in found.items() if error} == {"rouge_l", "cider_d"}
    for name in ("rouge_l", "cider_d"):
        scores = [scorer.SampleScore(score=one.scores[name]) for one in log.samples]
        assert found[name].value == pytest.approx(scorer.stderr()(scores), rel=1e-12)


# Trackers: the checkpoints of a training are one run


def _list_expected(run):
    """Numbers of a run by the names that trackers have for them."""
    found = _values(run)
    for name, one in run["scores"].items():
        if name in found and one["interval"]:
            found[f"{name}/low"], found[f"{name}/high"] = one["interval"]
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the tool's own
def test_mlflow_finds_metrics_by_step_parameters_and_tags(service, runs, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    _export(service, "mlflow", "tiny/test", "--out", tmp_path / "store")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name == "prescore"]
    assert experiment.artifact_location == (tmp_path / "store" / "artifacts").as_uri()
    found = {one.info.run_name: one for one in client.search_runs([experiment.experiment_id])}
    assert found.keys() == {"7", runs[0]["id"]}
    assert {one.info.status for one in found.values()} == {"FINISHED"}
    training = found["7"]
    for name in _list_expected(runs[1]):
        history = client.get_metric_history(training.info.run_id, name)
        told = sorted((one.step, one.value) for one in history)
        steps = zip(STEPS, runs[1:], strict=True)
        assert told == [(step, _list_expected(run)[name]) for step, run in steps]
    alone = found[runs[0]["id"]]
    assert alone.data.metrics == _list_expected(runs[0])
    assert alone.data.params["label/formula"] == HOSTILE["formula"]
    assert alone.data.params["label/real"] == REAL
    signature = runs[0]["scores"]["cider_d"]["signature"]
    assert alone.data.params["signature/cider_d"] == signature
    assert training.data.params["label/run"] == "7"
    assert "label/step" not in training.data.params  # it differs
    assert training.data.tags["prescore.evaluation.10"] == runs[3]["id"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the tool's own
def test_mlflows_own_settings_name_a_store_and_an_interrupted_run_is_deleted(
    service, runs, tmp_path, monkeypatch
):
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    _export(service, "mlflow", runs[1]["id"])
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("prescore").experiment_id

    def interrupt(*_args, **_named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "set_terminated", interrupt)
        done = CliRunner().invoke(
            command_app.prescore(),
            ["export", "--format", "mlflow", runs[2]["id"], "--url", service.url],
        )
    assert done.exit_code == 130
    (kept,) = client.search_runs([experiment])
    assert kept.data.metrics == _list_expected(runs[1])


def _read_wandb(path):
    """Records of an offline file, in W&B's own messages: the run, config, history, summary."""
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2", reason="wandb is not installed")
    config, history, summary, run = {}, [], {}, None
    for data in _scan_log(path.read_bytes()):
        record = records.Record.FromString(data)
        if record.HasField("run"):
            run = record.run
            config |= {one.key: json.loads(one.value_json) for one in run.config.update}
        config |= {one.key: json.loads(one.value_json) for one in record.config.update}
        if record.HasField("history"):
            items = record.history.item
            history.append({_name_item(one): json.loads(one.value_json) for one in items})
        summary |= {_name_item(one): json.loads(one.value_json) for one in record.summary.update}
    return run, config, history, summary


def _scan_log(content, block=32768):
    """Records of LevelDB's log format, which W&B has behind its own header of 7 bytes: CRC of 4
    bytes, length of 2, type of 1 (whole, first, middle, last); a block ends in zeros.
    """
    assert content[:4] == b":W&B"
    at, parts = 7, []
    while at < len(content):
        left = block - at % block
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        parts.append(content[at + 7 : at + 7 + length])
        at += 7 + length
        if kind in (1, 4):
            yield b"".join(parts)
            parts = []
    assert not parts


def _name_item(item):
    return item.key or "/".join(item.nested_key)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the tool's own
def test_wandb_finds_config_history_and_summary_in_its_offline_files(service, runs, tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed")
    _export(service, "wandb", "tiny/test", "--out", tmp_path / "runs")
    read = [_read_wandb(path) for path in (tmp_path / "runs").glob("wandb/offline-*/*.wandb")]
    found = {run.display_name: (run, *more) for run, *more in read}
    assert not [*(tmp_path / "runs").glob("wandb/offline-*/files/*")]  # nothing of this machine
    assert found.keys() == {"7", runs[0]["id"]}
    run, config, history, summary = found["7"]
    assert run.host == ""
    assert (run.run_id, run.project, config["label/run"]) == (runs[1]["id"], "prescore", "7")
    for step, one, row in zip(STEPS, runs[1:], history, strict=True):
        assert row["_step"] == step
        assert row["evaluation"] == one["id"]
        assert {name: row[name] for name in _list_expected(one)} == _list_expected(one)
    last = _list_expected(runs[3])
    assert {name: summary[name] for name in last} == last
    _, config, (row,), _ = found[runs[0]["id"]]
    assert {name: row[name] for name in _list_expected(runs[0])} == _list_expected(runs[0])
    assert config["label/formula"] == HOSTILE["formula"]
    assert config["label/real"] == REAL


def _make_run(id_, value=0.5, **labels):
    pinned = {"name": "tiny", "version": "v1", "digest": "d", "split": "test"}
    evaluation = Evaluation(
        id=id_,
        status="succeeded",
        dataset=pinned,
        labels=labels,
        scores={"cider_d": score(value), "nneval": score(None)},
    )
    return FinishedRun(evaluation, evaluation.scores)


def test_runs_of_a_training_are_one_by_step_and_a_step_twice_is_of_a_second_one():
    runs = [
        _make_run("ev_1", run="a", step="10"),
        _make_run("ev_2", run="a", step="9"),
        _make_run("ev_3", run="a", step="9"),
        _make_run("ev_4", run="b", step="x"),
        _make_run("ev_5"),
        _make_run("ev_6", run="a", step="9" * 30),
    ]
    groups = trainings.group_trainings(runs)
    found = [
        (group.name, [(step, one.evaluation.id) for step, one in group.steps]) for group in groups
    ]
    assert found == [
        ("a", [(9, "ev_2"), (10, "ev_1")]),
        ("a", [(9, "ev_3")]),
        ("b", [(0, "ev_4")]),
        ("ev_5", [(0, "ev_5")]),
        ("a", [(0, "ev_6")]),
    ]
    assert trainings.list_numbers(runs[0]) == {"cider_d": 0.5}  # an infinite score is none


# Hostile text, and files


HARSH = "".join(HOSTILE[name] for name in ("commands", "terminal", "formula", "page")) + REAL
TAKEN = HARSH + "?"  # in the place of half a character, which readers of JSON refuse


@pytest.fixture
def harsh():
    """A run whose names, labels and captions have power over other programs."""
    pinned = {"name": f"../{HARSH}", "version": "v1", "digest": HARSH, "split": HARSH}
    evaluation = Evaluation(
        id="ev_1",
        status="succeeded",
        dataset=pinned,
        labels={HARSH + "\udc80": HARSH + "\udc80", "/../x": "y", "a=": "1", "a_": "2"},
        scores={"cider_d": score(0.1, signature=HARSH)},
        note=HARSH,
    )
    captions = [
        Caption(image=f"{HARSH}{at}", caption=HARSH + "\udc80", scores={"cider_d": 0.1})
        for at in range(2)
    ]
    references = {caption.image: (HARSH,) for caption in captions}
    return FinishedRun(evaluation, evaluation.scores, captions, references)


def test_hostile_text_stays_text_in_a_table(harsh):
    stream = io.StringIO(newline="")
    write_score_table(stream, [harsh])
    assert len(check_table(stream.getvalue())) == 2


def test_hostile_text_makes_neither_paths_nor_lines_of_every_eval_ever(harsh, tmp_path):
    write_every_eval_ever([harsh], tmp_path / "out", f"../{HARSH}")
    paths = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.suffix for path in paths) == [".json", ".jsonl"]
    for path in paths:
        assert re.fullmatch(r"out/data(/[A-Za-z0-9._-]+){4}", str(path.relative_to(tmp_path)))
        assert ".." not in path.parts
    (samples,) = tmp_path.rglob("*.jsonl")
    lines = _read_lines(samples)
    assert [line["output"]["raw"] for line in lines] == [[TAKEN]] * 2
    assert [line["input"]["reference"] for line in lines] == [[HARSH]] * 2


def test_hostile_text_is_read_back_by_inspect(harsh, tmp_path):
    reader = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    write_inspect_logs([harsh], tmp_path / "out")
    log = reader.read_eval_log(str(tmp_path / "out" / "ev_1.json"))
    assert [one.output.completion for one in log.samples] == [TAKEN] * 2
    assert log.eval.metadata["labels"][TAKEN] == TAKEN


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_hostile_text_is_taken_by_trackers(harsh, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    pytest.importorskip("wandb", reason="wandb is not installed")
    write_mlflow_runs([harsh], tmp_path / "store")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("prescore").experiment_id])
    parameters = run.data.params
    assert (parameters["label/a_"], parameters["label/a__"]) == ("1", "2")  # of `a=` and `a_`
    assert parameters["label__.._x"] == "y"
    assert parameters["signature/cider_d"] == HARSH
    write_wandb_runs([harsh], tmp_path / "runs")
    ((_, config, _, _),) = map(_read_wandb, (tmp_path / "runs").glob("wandb/offline-*/*.wandb"))
    assert config["label//../x"] == "y"
    assert config["signature/cider_d"] == HARSH


def test_an_interrupted_export_leaves_no_file(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    for name in ("old.csv", "new.csv"):
        with suppress(KeyboardInterrupt), new_files.open_new_file(tmp_path / name) as stream:
            stream.write("half")
            raise KeyboardInterrupt
    with suppress(KeyboardInterrupt), new_files.open_new_folder(tmp_path / "a") as folder:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


@pytest.mark.parametrize("name", ["every-eval-ever", "inspect"])
def test_an_export_that_is_interrupted_between_two_runs_leaves_nothing(
    service, runs, tmp_path, monkeypatch, name
):
    def interrupt_at_the_second(client, id_, read=prescore.Client.captions, **more):
        if id_ == runs[1]["id"]:
            raise KeyboardInterrupt
        return read(client, id_, **more)

    monkeypatch.setattr(prescore.Client, "captions", interrupt_at_the_second)
    ids = [run["id"] for run in runs[:2]]
    run_command(service, "export", "--format", name, *ids, "--out", tmp_path / "out", code=130)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_kept(service, runs, tmp_path):
    (tmp_path / "mine").write_text("mine")
    named = ("inspect", runs[0]["id"], "--out", tmp_path)
    done = run_command(service, "export", "--format", *named, code=2)
    assert "expected a new or empty folder, found files in" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tool_that_is_not_installed_is_told_with_its_extra(
    service, runs, tmp_path, monkeypatch, name
):
    monkeypatch.setitem(sys.modules, name, None)
    named = (name, runs[0]["id"], "--out", tmp_path / "out")
    done = run_command(service, "export", "--format", *named, code=2)
    assert f"pip install 'prescore-client[{name}]'" in done.stderr
    assert list(tmp_path.iterdir()) == []
