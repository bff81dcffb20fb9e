import inspect
import tomllib
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from helpers import command_app
from prescore import commands
from prescore.cli import options
from prescore.commands import PANELS

ROOT = Path(__file__).parents[2]
EXPORT = import_module("prescore.cli.export")


def test_a_group_of_options_stands_spread_out_where_it_stood_and_reaches_the_command_whole():
    got = []

    @options.expand_groups
    def command(name: str, *, run: options.RunOptions, connection: options.Connection) -> None:
        got.append((name, run, connection))

    names = ["name", "label", "deadline", "url", "key_file", "patience", "here", "home"]
    assert list(inspect.signature(command).parameters) == names
    app = typer.Typer()
    app.command()(command)
    given = ["a name", "--label", "a=1", "--label", "b=2", "--url", "http://there"]
    result = CliRunner().invoke(app, given, env={"PRESCORE_URL": "http://here"})
    assert result.exit_code == 0, result.output
    run = options.RunOptions(label=["a=1", "b=2"])
    assert got == [("a name", run, options.Connection(url="http://there"))]


def test_a_command_whose_packages_are_missing_says_how_to_install_them(monkeypatch):
    entry = EntryPoint("judge", "absent_package.commands:judge", commands.GROUP)
    monkeypatch.setattr(commands, "entry_points", lambda group: [entry])
    app = commands.build()
    assert "Not installed" in CliRunner().invoke(app, ["--help"]).stdout
    result = CliRunner().invoke(app, ["judge"])
    assert result.exit_code == 2
    assert "pip install" in result.stderr


def test_the_client_alone_says_how_to_install_the_other_commands(monkeypatch):
    monkeypatch.setattr(commands, "entry_points", lambda group: [])
    app = commands.build()
    for arguments in (
        ("serve",),
        ("judge", "rated.jsonl", "--metrics", "cider_d"),
        ("judge", "--help"),
        ("lab", "train", "shapes/", "runs/"),
    ):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 2
        assert result.stderr.startswith(
            f"prescore {arguments[0]} needs packages that are not installed.\n"
        )
        assert "pip install" in result.stderr
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "submit" in shown
    assert "janitor" not in shown


def test_export_without_a_format_calls_the_command_of_the_other_distribution(monkeypatch, tmp_path):
    calls = []
    other = SimpleNamespace(load=lambda: lambda *given: calls.append(given))
    monkeypatch.setattr(EXPORT, "entry_points", lambda group, name: [other])
    app = commands.build()
    given = ["export", "mine:captioner", "--out", str(tmp_path / "out"), "--dataset", "data"]
    assert CliRunner().invoke(app, given).exit_code == 0
    assert calls == [("mine:captioner", tmp_path / "out", Path("data"))]
    monkeypatch.setattr(EXPORT, "entry_points", lambda group, name: [])
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert "prescore export MODULE:FUNCTION needs packages that are not installed" in result.stderr


def test_the_client_knows_the_commands_of_the_other_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    others = project["entry-points"][commands.GROUP]
    assert {*commands.OTHER_COMMANDS, "export"} == set(others)  # the client's own calls the other


def test_the_version_is_the_distributions():
    result = CliRunner().invoke(command_app.prescore(), ["--version"])
    assert result.stdout.startswith("prescore-client ")


@pytest.mark.parametrize("group", [[], ["datasets"]])
def test_without_a_command_the_help_of_a_group_is_shown_once(group):
    result = CliRunner().invoke(command_app.prescore(), group)
    assert result.exit_code == 2
    assert (result.stdout + result.stderr).count("Usage:") == 1


def test_commands_stand_in_the_order_of_a_days_work():
    names = list(typer.main.get_command(command_app.prescore()).commands)
    order = [name for panel in PANELS.values() for name in panel]
    assert names[: len(order)] == order
    assert names[:4] == ["submit", "watch", "gate", "list"]
    shown = CliRunner().invoke(command_app.prescore(), ["--help"]).stdout
    assert all(f" {name} " in shown for name in ("check", "convert", "lab"))  # entry points
    assert [shown.index(f"─ {panel} ") for panel in PANELS] == sorted(
        shown.index(f"─ {panel} ") for panel in PANELS
    )
    assert "─ Commands ─" not in shown


def test_another_distributions_command_stands_before_them(monkeypatch):
    entry = EntryPoint("more", "prescore.cli.tokens:tokens", commands.GROUP)
    monkeypatch.setattr(commands, "entry_points", lambda group: [entry])
    shown = CliRunner().invoke(commands.build(), ["--help"]).stdout
    assert shown.index("─ Commands ─") < shown.index(" more ") < shown.index("─ Runs ─")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["submit", "x", "--dataset", "d/test", "--label", "a" * 90],
            f"--label: expected NAME=VALUE, found '{'a' * 90}'",
        ),
        (["submit", "x"], "Missing option '--dataset'."),
        (["list", "--limit", "many"], "Invalid value for '--limit': "),
        (["sbmit"], "No such command 'sbmit'. Did you mean 'submit'?"),
        (["list", "--label\x1b[2J"], "No such option: --label\\x1b[2J"),
    ],
)
def test_a_wrong_call_is_told_in_a_line_however_long(monkeypatch, arguments, said):
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(command_app.prescore(), arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    line, help_ = result.stderr.splitlines()
    assert said in line
    assert help_.startswith("help: ")
    assert help_.endswith(" --help")
