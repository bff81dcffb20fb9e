"""Captioners as ONNX graphs: what they compute, and T44: what hostile graphs do, and that the
worker lives.
"""

import os

import numpy as np
import psutil
import pytest
import torch

from helpers import onnx_bundle_files as files
from helpers.onnx_bundle_files import FEATURES, STATE, WORDS, model, node, tensor, values
from helpers.tars import packed
from service.contract.assets import AssetFolders
from service.contract.errors import OutOfMemory, UnusableCheckpoint
from workers.inference import prefix, scoring
from workers.inference.onnx import graphs
from workers.jobs.toolbox import Toolbox

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_sandbox")]
REFERENCES = [["a dog runs", "red"], ["a zebra runs fast"], ["", "fast a dog"]]


@pytest.fixture
def folder(tmp_path):
    return files.write(tmp_path / "bundle")


def rows(images, seed=0):
    return np.random.default_rng(seed).normal(size=(images, FEATURES)).astype(np.float32)


def test_columns_and_prefixes_follow_the_definition(opened, folder):
    one, given = opened(folder), rows(3)
    encoded = one.tokens.encode(REFERENCES)
    found = scoring.compute_columns(
        one, given, encoded, scoring.ScoringOptions(top=2, entropy=True)
    )
    ids = {word: at for at, word in enumerate(WORDS)}
    logp, rank, prefixes = [], [], []
    for row, captions in zip(given, REFERENCES, strict=True):
        for caption in captions:
            words = [ids.get(word, ids["<unk>"]) for word in caption.split()]
            table = files.definition(files.arrays(), row, words)
            targets = [*words, ids["<end>"]]
            own = table[range(len(targets)), targets]
            logp += own.tolist()
            rank += (table > own[:, None]).sum(1).tolist()
            hits = [*(table.max(1) == own), False]
            prefixes.append(hits.index(False))
    np.testing.assert_allclose(found.logp, logp, atol=1e-5)
    np.testing.assert_array_equal(found.rank, rank)
    np.testing.assert_array_equal(prefix.walk_prefixes(one, given, encoded), prefixes)
    assert len(set(rank)) > 3


def test_what_does_not_fit_into_shared_memory_goes_in_parts(opened, folder, monkeypatch):
    one, given = opened(folder), rows(20)
    encoded = one.tokens.encode(REFERENCES[:1] * 20)
    expected = scoring.compute_columns(one, given, encoded)
    monkeypatch.setattr("workers.inference.onnx.graphs.SHARED_BYTES", 1016)
    parts = opened(folder)
    np.testing.assert_array_equal(
        scoring.compute_columns(parts, given, encoded).logp, expected.logp
    )


def test_tensors_that_nobody_names_are_forgotten(opened, folder):
    """Or a search would keep the state of every step. The child's memory is a limit for it."""
    width = 1_000_000
    wide = model(
        [
            node("MatMul", "pixels W", "seen"),
            node("ConstantOfShape", "shape", "h0"),
        ],
        values(pixels=("n", FEATURES)),
        values(seen=("n", STATE), h0=(2, width)),
        [tensor("W", files.arrays()["look"]), tensor("shape", np.array([2, width]))],
    )
    step = model(
        [node("Gather", "E ids", "scores"), node("Add", "h one", "h1")],
        values(ids=["n"], picture=("n", STATE), h=("n", width)),
        values(scores=("n", len(WORDS)), h1=("n", width)),
        [tensor("E", np.eye(9, dtype=np.float32)), tensor("one", np.float32(1))],
    )
    (folder / "look.onnx").write_bytes(wide.SerializeToString())
    (folder / "step.onnx").write_bytes(step.SerializeToString())
    one = opened(folder, memory=700_000_000)
    state = one.begin(one.look(torch.zeros(2, FEATURES)))
    for _ in range(100):  # 8 MB each
        _, state = one.step(state, torch.tensor([2, 3]))
    with pytest.raises(UnusableCheckpoint, match="more memory than it may"):
        _ = [one.step(state, torch.tensor([2, 3])) for _ in range(100)]


def _bomb(nodes, *initializers, before=()):
    """A step whose logits are what `nodes` make, beside what the small network computes."""
    usual = [node(*each) for each in files.STEP[:-1]]
    last = [node("MatMul", "h1 O", "plain"), *before, *nodes, node("Add", "plain bomb", "scores")]
    return files.step(files.arrays(), [*usual, *last], initializers)


def _huge(operator, inputs, **initializers):
    """One node makes something large of these tensors."""
    nodes = [node(operator, inputs, "big"), node("ReduceSum", "big", "bomb")]
    return lambda: _bomb(nodes, *(tensor(name, each) for name, each in initializers.items()))


HUGE = np.array([1 << 20, 1 << 20])
ZERO = np.float32([0])
BOMBS = {
    "Expand": _huge("Expand", "zero shape", shape=HUGE, zero=ZERO),
    "a graph that doubles what it has 40 times": lambda: _bomb(
        [
            *(node("Concat", f"x{at} x{at}", f"x{at + 1}", axis=0) for at in range(40)),
            node("ReduceSum", "x40", "bomb"),
        ],
        tensor("x0", np.float32([0] * 64)),
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_graph_that_takes_too_much_memory_is_refused_and_the_worker_lives(name, opened, tmp_path):
    path = files.write(tmp_path / "bomb", step=BOMBS[name]())
    with pytest.raises(UnusableCheckpoint, match="its graphs cannot be run") as told:
        opened(path, memory=1_000_000_000)
    assert "\n" not in str(told.value)
    assert _children() == []


def test_a_worker_whose_graph_was_a_bomb_computes_the_next_work(tmp_path):
    """Of the tars that are stored; one child is there at a time."""
    stored = {}
    for name, made in {"bomb": {"step": BOMBS["Expand"]()}, "good": {}}.items():
        folder, stored[name] = files.write(tmp_path / name, **made), tmp_path / f"{name}.tar"
        inside = {each.name: each.read_bytes() for each in folder.iterdir()}
        stored[name].write_bytes(packed(inside))
    toolbox = Toolbox("cpu", AssetFolders(tmp_path), 1_000_000_000)

    def score(name):
        one = toolbox.model(name, stored[name])
        return scoring.compute_columns(one, rows(3), one.tokens.encode(REFERENCES)).logp

    expected = score("good")
    with pytest.raises(UnusableCheckpoint, match="more memory than it may"):
        score("bomb")
    np.testing.assert_array_equal(score("good"), expected)
    assert len(_children()) == 1
    toolbox.close()
    assert _children() == []


def test_a_trial_ends_before_a_call_may(opened, tmp_path, monkeypatch):
    """Whoever sends bundles takes the workers' time with each of them."""
    monkeypatch.setattr(graphs, "TRIAL_SECONDS", 1.5)
    step = _bomb([files.make_loop()], tensor("yes", np.bool_(True)), tensor("zero", np.float32(0)))
    path = files.write(tmp_path / "bomb", step=step)
    with pytest.raises(UnusableCheckpoint, match=r"the process took longer than 1\.\d+ s"):
        opened(path, seconds=100)
    assert opened(files.write(tmp_path / "good"), seconds=100).graphs._until is None


def test_a_graph_without_end_is_ended(opened, tmp_path):
    step = _bomb([files.make_loop()], tensor("yes", np.bool_(True)), tensor("zero", np.float32(0)))
    path = files.write(tmp_path / "bomb", step=step)
    with pytest.raises(UnusableCheckpoint, match=r"the process took longer than 1.5 s"):
        opened(path, seconds=1.5)
    assert _children() == []


def _children():
    """Those of this process that run graphs: none is left behind."""
    return [each for each in psutil.Process().children() if "sandbox.child" in str(each.cmdline())]


def test_a_model_that_cannot_fit_is_refused_before_it_is_opened(opened, folder):
    with pytest.raises(OutOfMemory, match="takes about 400 MB, and a task may take 100 MB"):
        opened(folder, memory=100_000_000)


def test_after_its_process_has_ended_the_next_look_starts_another_one(opened, folder):
    one, given = opened(folder), rows(2)
    encoded = one.tokens.encode(REFERENCES[:2])
    before = scoring.compute_columns(one, given, encoded).logp
    os.kill(one.graphs.pid, 9)
    while one.graphs._child.is_open:
        pass
    np.testing.assert_array_equal(scoring.compute_columns(one, given, encoded).logp, before)
