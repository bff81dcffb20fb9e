"""What commands print beside a bar."""

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.cli import console


def test_a_line_above_the_bar_is_in_one_piece_however_narrow_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    line = f"epoch   1  [loss]  {'a folder/' * 20}epoch-01.safetensors"
    with console.progress("epoch 0") as (bar, _):
        console.above(bar, line)
    assert line in capsys.readouterr().err.splitlines()


def test_metrics_without_a_score_are_told_in_a_line_for_each_reason(capsys):
    absent = MetricUnavailable("no word vectors here: `prescore assets add word-vectors`")
    console.say_missing(
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
