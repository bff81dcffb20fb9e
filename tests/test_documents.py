"""Documents are tested: what they promise is what there is."""

import re
from pathlib import Path

import pytest

from service.contract.metrics import catalogue
from service.contract.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _table(heading: str) -> list[list[str]]:
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_every_setting_is_documented_as_it_is_declared():
    documented = {row[0].strip("`"): row[2] for row in _table("Settings")}
    declared = {
        f"PRESCORE_{name.upper()}": field.description
        for name, field in Settings.model_fields.items()
    }
    assert documented == declared


def test_the_metric_table_names_what_the_catalogue_knows():
    options = {
        row[0][0]: set(re.findall(r"`([^`]+)`", row[1])) for row in _table("The pre-gen metrics")
    }
    assert options["4"] == {" ".join(catalogue.AGGREGATES)}
    assert options["3"] == {catalogue.JOIN}
    assert options["2"] == set(catalogue.CAPTION_SCORES)
    assert options["1"] == set(catalogue.FILTERS)
    assert str(len(catalogue.PREGEN)) in README


@pytest.mark.parametrize("name", catalogue.HEADLINE)
def test_headline_metrics_exist(name):
    assert catalogue.metric(name)


def test_the_readmes_commands_are_the_ones_that_are_checked():
    assert "    sh tests/run.sh\n" in README
    assert "sh tests/run.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "-c deploy/constraints.txt ./service/client '.[service,workers]'" in README


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    """Its example, on a bundle and a checkpoint made here under its names."""
    import numpy as np

    from builders import ENCODER, model, tensors
    from service.contract.formats import bundles
    from service.contract.formats.bundles import Item
    from workers.inference import checkpoints, features

    monkeypatch.chdir(tmp_path)
    names = ["a.jpg", "b.jpg"]
    bundles.write_folder(tmp_path / "flickr8k", [Item(n, "test", ("w3 w4", "w5")) for n in names])
    rows = np.ones((2, 5), np.float32)
    features.write(tmp_path / "flickr8k" / bundles.FEATURES, names, rows, ENCODER)
    (tmp_path / "runs" / "merge").mkdir(parents=True)
    written = model("merge", "gru", tensors("merge", "gru"))
    checkpoints.write(tmp_path / "runs" / "merge" / "epoch-08.safetensors", written)
    code = README.split("```python\n")[1].split("```")[0]
    scope: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), scope)  # noqa: S102  our own document
    assert len(scope["scores"]) == len(catalogue.PREGEN)
    assert len(scope["instant"]) == 84


def test_the_changelog_speaks_of_the_version_there_is():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
