"""Forecasts: planned where there is a history, made of the pre-gen scores, and kept.

In process: whether there is a history is asked of the record at submission; the forecast is a task
that stands before the captions.
"""

import pytest

import prescore
from helpers import shape_trainings
from helpers.fleet import bundle, checkpoint, until_ended, upload
from workers.lab import shapes

FEWEST = 8
QUICK = {"decoding": {"beam": 1, "max_words": 20}}
SHORT = {"beam": 1, "min_words": 1, "max_words": 6}


def _submit(client, data, **request):
    request = {"checkpoint": upload(client, data), **QUICK, **request}
    return client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"}).json()


@pytest.mark.long
def test_a_forecast_comes_with_the_pregen_scores_once_there_is_a_history(client):
    assert client.put("/v1/datasets/told", content=bundle(12, seed=3)).status_code == 201
    asked = {"dataset": "told/test", "postgen": ["cider_d", "rouge_l"], "decoding": SHORT}
    first = [
        _submit(client, checkpoint(seed), **asked, labels={"run": str(seed % 2)})
        for seed in range(FEWEST)
    ]
    assert "needs at least 8" in first[-1]["forecast"]["none_because"]
    assert first[-1]["forecast"]["metrics"] == {}
    assert "forecast" not in {task["name"] for task in first[-1]["tasks"]}
    assert {until_ended(client, one["id"], 60)["status"] for one in first} == {"succeeded"}
    early = _submit(client, checkpoint(99), **asked)
    assert early["forecast"]["none_because"].count("differ too much") == 1  # of random weights
    assert set(early["forecast"]["metrics"]) == {"cider_d", "rouge_l"}
    ended = until_ended(client, early["id"], 60)
    assert ended["forecast"] == early["forecast"]
    again = _submit(client, checkpoint(99), **asked)
    (task,) = [task for task in again["tasks"] if task["name"] == "forecast"]
    assert task["cached"]
    assert again["forecast"] == early["forecast"]


@pytest.mark.slow
def test_a_training_run_is_forecast_from_those_before_it(service, client, tmp_path):
    """Captioners trained on shapes: every checkpoint of the last run, before it was decoded."""
    folder = tmp_path / "shapes"
    shapes.make_shapes(folder, 800, seed=0)
    with prescore.Client(service.url) as library:
        library.add_dataset("shapes", folder)
    outcomes = []
    for run in range(5):
        for path in shape_trainings.checkpoints(folder, run):
            labels = {"run": str(run)}
            asked = {"dataset": "shapes/test", "postgen": ["cider_d"], "labels": labels}
            early = _submit(client, path.read_bytes(), **asked)
            ended = until_ended(client, early["id"], 120)
            outcomes.append((run, early["forecast"], ended["scores"]["cider_d"]["value"]))
    assert all("none_because" in forecast for run, forecast, _ in outcomes if run == 0)
    given = [
        (*forecast["cider_d"]["interval"], score)
        for run, forecast, score in outcomes
        if run > 1 and forecast.get("cider_d", {}).get("value") is not None
    ]
    assert len(given) >= 10
    assert sum(low <= score <= high for low, high, score in given) >= 0.9 * len(given)
