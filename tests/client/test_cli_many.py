"""Several files, folders and patterns in one command; a run for each."""

import json

import pytest
from typer.testing import CliRunner

from prescore import commands
from prescore.cli import targets

STEPS = ("epoch-2", "epoch-10", "epoch-9")


@pytest.fixture
def prescore(service, shapes, quick, monkeypatch, tmp_path):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    monkeypatch.chdir(tmp_path)
    app = commands.build()
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments), "--patience", "1"])


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
    return [request["labels"] for request, _ in service.submissions.values()]


@pytest.mark.parametrize("given", ["runs", "runs/*.safetensors", "runs/epoch-*"])
def test_a_folder_or_a_pattern_is_a_run_for_each_checkpoint(service, prescore, runs, given):
    options = ("--dataset", "shapes/test", "--label", "run=7", "--step-from-name")
    result = prescore("submit", given, *options)
    assert (result.exit_code, result.stdout) == (0, "ev_1\nev_2\nev_3\n"), result.stderr
    assert _labels(service) == [{"run": "7", "step": step} for step in ("2", "9", "10")]
    assert "submitted ev_3: runs/epoch-10.safetensors" in result.stderr
    assert result.stderr.endswith("watch: prescore watch ev_1 ev_2 ev_3\n")


def test_files_and_captions_are_submitted_in_their_order_and_once(service, prescore, runs):
    (runs / "out.jsonl").write_text('{"image": "a.jpg", "caption": "a square"}\n')
    files = [runs / "epoch-9.safetensors", runs / "out.jsonl", runs / "epoch-9.safetensors"]
    result = prescore("submit", *files, "--dataset", "shapes/test", "--json")
    assert [each["id"] for each in json.loads(result.stdout)] == ["ev_1", "ev_2"]
    assert [set(request) for request, _ in service.submissions.values()] == [
        {"checkpoint", "dataset"},
        {"captions", "dataset"},
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
        ("runs/*.pt", "expected files that match 'runs/*.pt', found none"),
        ("elsewhere", "elsewhere cannot be read"),
    ],
)
def test_what_is_not_there_is_told(service, prescore, runs, given, message):
    result = prescore("submit", given, "--dataset", "shapes/test")
    assert result.exit_code == 2
    assert message in result.stderr


def test_another_programs_folder_is_refused_as_before(prescore, runs):
    (runs / "config.json").write_text("{}")
    result = prescore("submit", "runs", "--dataset", "shapes/test")
    assert result.exit_code == 2
    assert "found a folder of a Hugging Face model" in result.stderr


@pytest.mark.parametrize(
    ("name", "step"),
    [("epoch-08", "8"), ("run7/step_12000", "12000"), ("v2-epoch-003", "3"), ("a.1", "1")],
)
def test_a_step_is_the_last_number_in_the_name(name, step):
    assert targets.step(f"{name}.safetensors") == step


def test_more_files_than_a_command_takes_are_refused(runs, monkeypatch):
    monkeypatch.setattr(targets, "MOST", 2)
    with pytest.raises(ValueError, match="at most 2 files, found 3"):
        targets.expanded([str(runs)])


def test_several_runs_are_watched(service, prescore):
    service.start(status="succeeded")
    service.start(status="failed")
    result = prescore("watch", "ev_1", "ev_2", "--json")
    assert [each["id"] for each in json.loads(result.stdout)] == ["ev_1", "ev_2"]
    assert result.exit_code == 3
    assert "ev_1  succeeded  shapes@v1/test" in prescore("watch", "ev_1", "ev_2").stdout


def test_files_are_watched_where_the_dataset_is_named(service, prescore, runs, ended):
    assert "--dataset: expected NAME/SPLIT" in prescore("watch", "runs").stderr
    result = prescore("watch", "runs", "--dataset", "shapes/test", "--step-from-name", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)) == 3
    assert [labels["step"] for labels in _labels(service)] == ["2", "9", "10"]
