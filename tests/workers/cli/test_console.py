"""Console of commands: lines beside a bar, and Ctrl-C: the signal is real, at a known moment."""

import re
import signal
import sys
import threading

import pytest

from service.contract.errors import MetricFailed, MetricUnavailable, RunCanceled
from workers import progress
from workers.cli import console


def test_a_line_above_the_bar_is_in_one_piece_however_narrow_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = f"epoch   1  [loss]  {'a folder/' * 20}epoch-01.safetensors"
    with console.show_progress_steps() as steps:
        steps.begin("epoch 1")(1, 2)
        steps.tell(line)
    assert line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)


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


def _run_steps(monkeypatch, seconds):
    """Two steps, the first of which goes on until something is said, if that is to be awaited."""
    lines, heard = [], threading.Event()
    monkeypatch.setattr(progress, "SILENT_SECONDS", seconds)
    monkeypatch.setattr(console, "print_note", lambda line: (lines.append(line), heard.set()))
    with console.show_progress_steps() as steps:
        steps.begin("first")
        if seconds == 0:
            assert heard.wait(20)
            monkeypatch.setattr(progress, "SILENT_SECONDS", 60)
        steps.begin("second")
    return lines


def test_a_long_step_is_told_while_it_goes_on_and_at_its_end_and_a_short_one_is_not(monkeypatch):
    began, ended = _run_steps(monkeypatch, 0)
    assert began == "first …"
    assert re.fullmatch(r"first: [0-9.]+ s", ended)
    assert _run_steps(monkeypatch, 60) == []


def test_after_ctrl_c_who_is_told_next_ends_the_task():
    with console.catch_interrupts() as heed, console.show_progress_steps(heed) as steps:
        report = steps.begin("epochs")
        report(0, 2)
        signal.raise_signal(signal.SIGINT)
        for done in (1, 2):
            with pytest.raises(RunCanceled, match="the training was stopped"):
                report(done, 2)


def test_a_second_ctrl_c_interrupts_at_once():
    with console.catch_interrupts():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
