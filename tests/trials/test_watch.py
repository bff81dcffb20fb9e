"""A training loop that watches scores arrive from a real service."""

import signal
import subprocess
import sys
import time

import prescore
from helpers.fleet import LONG, checkpoint
from helpers.networks import Cut, Network

QUICK = {"decoding": {"beam": 1, "max_words": 20}, "postgen": ["cider_d", "rouge_l"]}


def _saved(folder, seed, **sizes):
    path = folder / f"{seed}.safetensors"
    path.write_bytes(checkpoint(seed=seed, **sizes))
    return path


def test_a_training_runs_checkpoints_are_scored_through_a_bad_network(fleet, tmp_path):
    heard = []
    cuts = [
        Cut(b"PUT /v1/checkpoints/"),
        Cut(b"POST /v1/evaluations ", answered=True),
        Cut(b"GET /v1/evaluations/", refused=1),
    ]
    with (
        Network(fleet.port, *cuts) as network,
        prescore.watch(
            "watched",
            dataset="tiny/test",
            url=network.url,
            on_scores=lambda step, numbers: heard.append((step, numbers)),
            waiting=3,
            timeout=120,
            labels={"trial": "watch"},
            **QUICK,
        ) as run,
    ):
        for step in (1, 2, 3):
            run.checkpoint(_saved(tmp_path, 7100 + step), step=step)
        assert not run.should_stop("cider_d", patience=3)
    assert network.cuts == []
    results = run.results()
    assert [result.problem for result in results] == [None, None, None]
    assert {result.evaluation.status for result in results} == {"succeeded"}
    assert {"cider_d", "rouge_l", "perplexity"} <= results[0].numbers.keys()
    assert run.best("perplexity").numbers["perplexity"] == min(
        result.numbers["perplexity"] for result in results
    )
    for result in results:
        told = [numbers for step, numbers in heard if step == result.step]
        assert {name: value for numbers in told for name, value in numbers.items()} == (
            result.numbers
        )
        assert sum(len(numbers) for numbers in told) == len(result.numbers)  # each told once
    with prescore.Client(fleet.url) as client:
        listed = list(client.evaluations(labels={"run": "watched", "trial": "watch"}))
    assert {one.labels["step"]: one.id for one in listed} == {
        str(result.step): result.evaluation.id for result in results
    }
    assert len(listed) == 3


TRAINING = """
import sys, time
import prescore
with prescore.watch("interrupted", dataset="tiny/test", url=sys.argv[1], **{asked}) as run:
    run.checkpoint(sys.argv[2], step=1)
    while not any(result.evaluation for result in run.results()):
        time.sleep(0.01)
    print("saved", flush=True)
"""


def test_ctrl_c_ends_a_training_that_waits_for_its_scores(fleet, tmp_path):
    path = _saved(tmp_path, 7200)
    code = TRAINING.replace("{asked}", repr({"decoding": LONG}))
    with subprocess.Popen(
        [sys.executable, "-c", code, fleet.url, path], stdout=subprocess.PIPE, stderr=-1, text=True
    ) as training:
        assert training.stdout.readline() == "saved\n"
        begun = time.monotonic()
        training.send_signal(signal.SIGINT)
        _, said = training.communicate(timeout=30)
    assert time.monotonic() - begun < 10
    assert training.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said
    assert "not waited for any longer" in said
    with prescore.Client(fleet.url) as client:
        (left,) = client.evaluations(labels={"run": "interrupted"})
        client.cancel(left.id)
