"""Ctrl-C: the signal is real, and comes at a known moment."""

import json
import signal
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from service.contract.errors import Canceled
from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from workers import processes
from workers.cli.console import interruptible
from workers.cli.learned import learned
from workers.jobs.toolbox import Toolbox

CAPTIONS = ("a red ball", "a blue box", "a red box")


@pytest.fixture
def train(tmp_path, monkeypatch):
    """`prescore learned train` on a feature, and the model that it would write."""
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    images = [f"{number}.jpg" for number in range(20)]
    bundles.write_folder(tmp_path / "bundle", [Item(image, "test", CAPTIONS) for image in images])
    said = tmp_path / "said.json"
    said.write_text(json.dumps([{"image": image, "caption": "a box"} for image in images]))
    out = tmp_path / "model.safetensors"
    given = ["--dataset", str(tmp_path / "bundle"), "--out", str(out), "--tokenizer", "none"]
    for name in "abc":
        given += ["--outputs", f"{name}={said}"]

    def run(feature):
        result = CliRunner().invoke(learned, ["train", *given, "--features", feature])
        return result, out

    return run


def test_after_ctrl_c_who_is_told_next_ends_the_work():
    with interruptible() as heed:
        heed(0, 2)
        signal.raise_signal(signal.SIGINT)
        for done in (1, 2):
            with pytest.raises(Canceled, match="the training was stopped"):
                heed(done, 2)


def test_a_second_ctrl_c_interrupts_at_once():
    with interruptible():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_training_while_java_reads_meteors_table(train, monkeypatch):
    send, receive = processes.Child.send, processes.Child.receive
    asked, answered = [], []

    def interrupted(child, message):
        send(child, message)
        asked.append(message["operation"])
        signal.raise_signal(signal.SIGINT)

    def listening(child, seconds):
        body = receive(child, seconds)
        answered.extend([body] if body else [])
        return body

    monkeypatch.setattr(processes.Child, "send", interrupted)
    monkeypatch.setattr(processes.Child, "receive", listening)
    result, out = train("meteor")
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped: the training was stopped\n")
    assert (asked, answered) == (["meteor"], [])
    assert not list(out.parent.glob("model*"))


def test_ctrl_c_ends_a_training_while_captions_are_parsed(train, monkeypatch):
    def parse(_captions, *, progress):
        signal.raise_signal(signal.SIGINT)
        progress(0, 1)
        pytest.fail("it went on")

    parser = SimpleNamespace(parse=parse, close=lambda: None)
    monkeypatch.setattr(Toolbox, "parser", lambda _: parser)
    result, _ = train("spice")
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped: the training was stopped\n")
