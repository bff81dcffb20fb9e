"""Several files, folders and patterns in one command; a run for each."""

import json
import os
import shutil

import pytest

from client.scripted_service import dataset
from prescore.cli import model_files, progress, submissions
from prescore.files import models, tars
from prescore.files.bodies import compute_digest
from prescore.models import Evaluation, RunTask

STEPS = ("epoch-2", "epoch-10", "epoch-9")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runs(tmp_path):
    """A folder of three checkpoints, and what a trainer writes beside them."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in STEPS:
        (folder / f"{name}.safetensors").write_bytes(f"\0{name}".encode())
    (folder / "notes.txt").write_text("beside them")
    return folder


@pytest.fixture
def ended(service, monkeypatch):
    start = service.start
    monkeypatch.setattr(service, "start", lambda **fields: start(**fields, status="succeeded"))


def _labels(service):
    return [request["labels"] for request in service.sent]


@pytest.mark.parametrize("given", ["runs", "runs/*.safetensors", "runs/epoch-*"])
def test_a_folder_or_a_pattern_is_a_run_for_each_checkpoint(service, prescore, runs, given):
    options = ("--dataset", "shapes/test", "--label", "run=7", "--step-from-name")
    result = prescore("submit", given, *options)
    assert (result.exit_code, result.stdout) == (0, "ev_1\nev_2\nev_3\n"), result.stderr
    assert _labels(service) == [{"run": "7", "step": step} for step in ("2", "9", "10")]
    assert "submitted ev_3: runs/epoch-10.safetensors" in result.stderr
    assert result.stderr.endswith("watch: prescore watch ev_1 ev_2 ev_3\n")


@pytest.fixture
def saved(tmp_path):
    """What a trainer of transformers writes: a folder for each checkpoint, in one folder."""
    parent = tmp_path / "saved"
    for step in (500, 1000):
        folder = parent / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (folder / name).write_text(f"{step}: {name}")
    (parent / "logs").mkdir()
    (parent / "logs" / "events.txt").write_text("no model")
    return parent


@pytest.mark.parametrize(
    "given", [("saved",), ("saved/*",), ("saved/checkpoint-500", "saved/checkpoint-1000")]
)
def test_a_folder_of_models_that_are_folders_is_a_run_for_each(service, prescore, saved, given):
    result = prescore("submit", *given, "--dataset", "shapes/test", "--step-from-name")
    assert (result.exit_code, result.stdout) == (0, "ev_1\nev_2\n"), result.stderr
    assert _labels(service) == [{"step": "500"}, {"step": "1000"}]


def test_a_folder_of_folders_of_checkpoints_is_a_run_for_each_checkpoint(service, prescore, runs):
    runs.rename(runs.parent / "first")
    (runs.parent / "all").mkdir()
    (runs.parent / "first").rename(runs.parent / "all" / "first")
    result = prescore("submit", "all", "--dataset", "shapes/test", "--step-from-name")
    assert [one["step"] for one in _labels(service)] == ["2", "9", "10"], result.stderr


def test_a_model_beside_its_earlier_checkpoints_is_one_run(service, prescore, saved):
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (saved / name).write_text(name)
    result = prescore("submit", "saved", "--dataset", "shapes/test")
    assert (result.exit_code, result.stdout) == (0, "ev_1\n"), result.stderr


def test_an_upload_that_the_service_refuses_is_not_told_as_done(service, prescore, runs):
    service.fault("PUT", "checkpoints", status=422, body={"title": "Refused"})
    result = prescore("submit", "runs/epoch-2.safetensors", "--dataset", "shapes/test")
    assert "uploading epoch-2.safetensors" in result.stderr
    assert "uploaded" not in result.stderr


def test_the_same_folder_has_one_digest_on_any_machine(saved, tmp_path):
    first, second = saved / "checkpoint-500", tmp_path / "elsewhere"
    second.mkdir()
    for name in ("tokenizer.json", "model.safetensors", "config.json"):  # in another order
        (second / name).write_bytes((first / name).read_bytes())
        (second / name).chmod(0o600)
        os.utime(second / name, (1, 1))
    (second / "optimizer.pt").write_bytes(b"not sent")
    assert compute_digest(models.build_body(first)) == compute_digest(models.build_body(second))
    files = {path.name: path for path in sorted(first.iterdir())}
    turned = tars.build_body(dict(reversed(files.items())))
    assert compute_digest(turned) == compute_digest(tars.build_body(files))
    (second / "config.json").write_text("another")
    assert compute_digest(models.build_body(first)) != compute_digest(models.build_body(second))


def test_files_and_captions_are_submitted_in_their_order_and_once(service, prescore, runs):
    (runs / "out.jsonl").write_text('{"image": "a.jpg", "caption": "a square"}\n')
    files = [runs / "epoch-9.safetensors", runs / "out.jsonl", runs / "epoch-9.safetensors"]
    result = prescore("submit", *files, "--dataset", "shapes/test", "--json")
    assert [each["id"] for each in json.loads(result.stdout)] == ["ev_1", "ev_2"]
    assert [set(request) for request in service.sent] == [
        {"checkpoint", "dataset", "labels"},
        {"captions", "dataset", "labels"},
    ]


def test_all_are_waited_for_and_the_worst_is_the_exit_code(service, prescore, runs, monkeypatch):
    start, states = service.start, iter(("succeeded", "failed", "succeeded"))
    monkeypatch.setattr(service, "start", lambda **fields: start(**fields, status=next(states)))
    result = prescore("submit", "runs", "--dataset", "shapes/test", "--wait", "--json")
    found = [each["status"] for each in json.loads(result.stdout)]
    assert (result.exit_code, found) == (3, ["succeeded", "failed", "succeeded"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("epoch-3.safetensors", b"\x80\x04\x95\x00", "found a pickle"),
        ("last.safetensors", b"weights\0", "expected a number in the name"),
        ("out-1.csv", b"nothing", "line 1: expected one column"),
    ],
)
def test_nothing_is_sent_where_one_file_is_wrong(service, prescore, runs, name, content, message):
    (runs / name).write_bytes(content)
    before = len(service.requests)
    files = [*sorted(runs.glob("epoch-*")), runs / name]
    result = prescore("submit", *files, "--dataset", "shapes/test", "--step-from-name")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(service.requests) == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("runs/*.pt", "folders of models, that match 'runs/*.pt', found none"),
        ("elsewhere", "elsewhere cannot be read"),
        ("saved/logs", "saved/logs: expected a model: found a folder with no .safetensors file"),
        ("hub", "expected tokenizer.json and model.safetensors beside config.json"),
    ],
)
def test_a_target_that_is_no_model_says_what_one_is(prescore, runs, saved, given, message):
    (runs.parent / "hub").mkdir()
    (runs.parent / "hub" / "config.json").write_text("{}")
    result = prescore("submit", given, "--dataset", "shapes/test")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("name", "step"),
    [("epoch-08", "8"), ("run7/step_12000", "12000"), ("v2-epoch-003", "3"), ("a.1", "1")],
)
def test_a_step_is_the_last_number_in_the_name(name, step):
    assert model_files.read_step(f"{name}.safetensors") == step


def test_more_files_than_a_command_takes_are_refused(runs, monkeypatch):
    monkeypatch.setattr(model_files, "MOST", 2)
    with pytest.raises(ValueError, match="at most 2 files, found 3"):
        model_files.expand_targets([str(runs)])


def test_of_several_runs_each_tasks_line_says_whose_it_is(capsys):
    ids = ["ev_esz9f0zlE7s4mqIIFPnNHMsr", "ev_oGiLwaguaYUzdZqZjsJcnjwT"]
    prefix = RunTask.model_validate({"name": "prefix", "status": "done", "seconds": 0.2})
    on = {"name": "shapes", "version": "v1", "digest": "", "split": "test"}
    for of_several in (False, True):
        for id_ in ids:
            progress.ProgressLines(of_several=of_several)(
                Evaluation(id=id_, status="running", dataset=on, tasks=(prefix,))
            )
    said = [line for line in capsys.readouterr().err.splitlines() if "prefix" in line]
    alone = "prefix  done  0.2 s"
    assert said == [alone, alone, f"ev_esz9f0zl  {alone}", f"ev_oGiLwagu  {alone}"]


def test_files_are_watched_where_the_dataset_is_named(service, prescore, runs, ended):
    assert "--dataset: expected NAME/SPLIT" in prescore("watch", "runs").stderr
    result = prescore("watch", "runs", "--dataset", "shapes/test", "--step-from-name", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)) == 3
    assert [labels["step"] for labels in _labels(service)] == ["2", "9", "10"]


def test_files_of_one_name_are_told_apart_by_their_folders(service, prescore, tmp_path):
    for run in ("a", "b/deep"):
        (tmp_path / "sweep" / run).mkdir(parents=True)
        (tmp_path / "sweep" / run / "best.safetensors").write_bytes(f"\0{run}".encode())
    files = ["sweep/a/best.safetensors", "sweep/b/deep/best.safetensors"]
    prescore("submit", *files, "--dataset", "shapes/test")
    names = ["a/best.safetensors", "b/deep/best.safetensors"]
    assert _labels(service) == [{"file": name} for name in names]


def test_a_run_without_labels_has_its_files_name_and_a_digest_and_a_labelled_run_have_none(
    service, prescore, runs
):
    result = prescore("submit", "runs", "--dataset", "shapes/test")
    assert _labels(service) == [{"file": f"epoch-{step}.safetensors"} for step in (2, 9, 10)]
    assert "submitted ev_1: runs/epoch-2.safetensors, labelled file=epoch-2" in result.stderr
    digest = min(service.checkpoints)
    service.submissions.clear()
    prescore("submit", digest, "--dataset", "shapes/test")
    prescore("submit", "runs/epoch-2.safetensors", "--dataset", "shapes/test", "--label", "run=7")
    assert [request.get("labels") for request in service.sent] == [None, {"run": "7"}]


def test_a_name_that_is_no_text_is_a_label_too(tmp_path):
    odd = os.fsdecode(b"odd\xff\n" + b"x" * 600 + b".json")
    (request,) = submissions.build_requests(
        {"dataset": "d/test"}, [str(tmp_path / odd)], steps=False
    )
    name = request["labels"]["file"]
    assert name.encode()
    assert len(name) == 500


def test_a_run_that_was_submitted_is_watched_again_and_not_begun(service, prescore, runs, ended):
    one = ("runs/epoch-2.safetensors", "--dataset", "shapes/test")
    prescore("submit", *one)
    result = prescore("watch", *one)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("ev_1  succeeded")
    assert "ev_1 of 2026-01-02 03:04 scores runs/epoch-2.safetensors already" in result.stderr
    assert len(service.submissions) == 1


def test_a_run_of_another_request_model_or_version_or_that_failed_is_not_followed(
    service, prescore, runs, ended
):
    one = ("runs/epoch-2.safetensors", "--dataset", "shapes/test")
    prescore("submit", *one)
    (runs / "epoch-2.safetensors").write_bytes(b"\0another")
    assert "submitted ev_2" in prescore("watch", *one).stderr
    service.change("ev_2", status="failed")
    assert "submitted ev_3" in prescore("watch", *one).stderr
    service.change("ev_3", dataset={**service.evaluations["ev_3"]["dataset"], "version": "v0"})
    assert "submitted ev_4" in prescore("watch", *one).stderr
    service.change("ev_4", labels={"file": "epoch-2.safetensors", "branch": "main"})
    assert "submitted ev_5" in prescore("watch", *one).stderr
    others = (("--label", "run=7"), ("--deadline", "60"), ("--step-from-name",))
    for number, other in enumerate(others, start=6):
        assert f"submitted ev_{number}" in prescore("watch", *one, *other).stderr


def test_captions_are_submitted_each_time(service, prescore, tmp_path, ended):
    (tmp_path / "out.jsonl").write_text('{"image": "a.jpg", "caption": "a square"}\n')
    one = ("out.jsonl", "--dataset", "shapes/test")
    prescore("submit", *one)
    assert "submitted ev_2" in prescore("watch", *one).stderr


def test_the_only_split_need_not_be_named(service, prescore, runs, ended):
    service.datasets["one"] = dataset("one", "all")
    for number, command in enumerate(("submit", "watch", "gate"), start=1):
        gate = ("--gate", "cider_d > 0") if command == "gate" else ("--label", f"by={command}")
        result = prescore(command, "runs/epoch-2.safetensors", "--dataset", "one", *gate)
        assert "on one/all, its only split" in result.stderr
        assert service.evaluations[f"ev_{number}"]["dataset"]["split"] == "all"


@pytest.mark.parametrize("command", ["submit", "watch", "gate", "health", "probes"])
def test_of_several_splits_one_is_named(service, prescore, runs, command):
    given = ("runs/epoch-2.safetensors", "--dataset", "shapes")
    more = {
        "gate": (*given, "--gate", "cider_d > 0"),
        "health": ("shapes",),
        "probes": ("shapes",),
    }
    result = prescore(command, *more.get(command, given))
    assert result.exit_code == 2
    assert "expected NAME/SPLIT, found 'shapes', which has the splits test, val" in result.stderr
    assert not service.submissions


def test_a_label_that_one_run_has_stands_for_it(service, prescore):
    service.start(labels={"run": "7"}, status="succeeded")
    for command in ("status", "scores", "watch", "cancel"):
        result = prescore(command, "run=7")
        assert result.exit_code == 0, result.stderr
        assert "run=7 is ev_1, shapes@v1/test" in result.stderr


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("shap", ["shap: did you mean shapes?"]),
        ("shapes/tets", ["tets: did you mean test?"]),
        ("shapes/test", []),
        ("zebra", ["zebra: no such dataset; there is shapes"]),
        ("shapes/7", ["7: no such split; there are test, val"]),
    ],
)
def test_a_list_of_an_unknown_dataset_or_split_names_a_near_one(prescore, asked, told):
    result = prescore("list", "--dataset", asked)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["no run matches", *told]


def test_a_label_of_several_runs_or_of_none_says_how_ids_are_found(service, prescore):
    for seed in "12":
        service.start(labels={"run": "7", "seed": seed}, status="succeeded")
    result = prescore("compare", "run=7", "ev_1")
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[0].endswith("several have 'run=7':")
    assert [line.split()[0] for line in lines[1:3]] == ["ev_1", "ev_2"]
    assert [line.partition("run=7, ")[2] for line in lines[1:3]] == ["seed=1", "seed=2"]
    assert lines[3] == "All of them: prescore list --label run=7"
    none = prescore("compare", "ev_1", "run=8")
    assert (none.exit_code, service.seen("POST")) == (2, [])
    assert "no run has the label 'run=8'; `prescore list` shows labels" in none.stderr
    assert "did you mean run=7?" in none.stderr


@pytest.mark.parametrize("pack", ["folder", "tar", "zip"])
def test_a_model_type_that_no_service_reads_is_refused_before_anything_is_sent(
    service, prescore, saved, pack
):
    folder = saved / "checkpoint-500"
    (folder / "config.json").write_text('{"model_type": "whisper"}')
    given = "saved/checkpoint-500"
    if pack != "folder":
        given = shutil.make_archive(str(saved.parent / "packed"), pack, folder)
    before = len(service.requests)
    result = prescore("submit", given, "--dataset", "shapes/test")
    assert result.exit_code == 2
    assert "expected a model_type that is read" in result.stderr
    assert "found 'whisper': transformers has no captioner of that type" in result.stderr
    assert "uploading" not in result.stderr
    assert len(service.requests) == before
