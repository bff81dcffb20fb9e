"""What commands print beside a bar."""

from workers.cli import console


def test_a_line_above_the_bar_is_in_one_piece_however_narrow_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    line = f"epoch   1  [loss]  {'a folder/' * 20}epoch-01.safetensors"
    with console.progress("epoch 0") as (bar, _):
        console.above(bar, line)
    assert line in capsys.readouterr().err.splitlines()
