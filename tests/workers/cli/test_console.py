"""What commands print beside a bar."""

import re
import threading

from service.contract.errors import MetricFailed, MetricUnavailable
from workers import progress
from workers.cli import console


def test_a_line_above_the_bar_is_in_one_piece_however_narrow_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    line = f"epoch   1  [loss]  {'a folder/' * 20}epoch-01.safetensors"
    with console.show_progress("epoch 0") as (bar, _):
        console.print_above(bar, line)
    assert line in capsys.readouterr().err.splitlines()


def test_metrics_without_a_score_are_told_in_a_line_for_each_reason(capsys):
    absent = MetricUnavailable("no word vectors here: `prescore assets add word-vectors`")
    console.print_missing(
        {
            "wmd": absent,
            "meteor": MetricFailed("a caption is too long"),
            "spice": MetricUnavailable("CoreNLP is not here"),
            "wmd_unit": absent,
        }
    )
    assert capsys.readouterr().err.splitlines() == [
        f"unavailable: wmd, wmd_unit: {absent.detail}",
        "unavailable: spice: CoreNLP is not here",
        f"{MetricFailed.code}: meteor: a caption is too long",
    ]


def _steps(monkeypatch, seconds):
    """Two steps, the first of which goes on until something is said, if that is to be awaited."""
    said, heard = [], threading.Event()
    monkeypatch.setattr(progress, "SILENT_SECONDS", seconds)
    monkeypatch.setattr(console, "print_note", lambda line: (said.append(line), heard.set()))
    with console.show_progress_steps() as begin:
        begin("first")
        if seconds == 0:
            assert heard.wait(20)
            monkeypatch.setattr(progress, "SILENT_SECONDS", 60)
        begin("second")
    return said


def test_a_long_step_is_told_while_it_goes_on_and_at_its_end_and_a_short_one_is_not(monkeypatch):
    began, ended = _steps(monkeypatch, 0)
    assert began == "first …"
    assert re.fullmatch(r"first: [0-9.]+ s", ended)
    assert _steps(monkeypatch, 60) == []
