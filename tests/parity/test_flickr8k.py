"""Captioners trained here, on real photos' features."""

import pytest

from parity import flickr8k, forecasts
from workers.lab.training import PAPER


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["init", "merge"])
def test_a_trained_captioner_is_as_good_as_such_captioners_are(
    data, tmp_path, architecture, capsys
):
    """What its epochs say is scored as in `test_forecasts.py`."""
    batch = PAPER["init"].batch
    training = forecasts.Training(architecture, 256, seed=0, epochs=8, batch=batch)
    epochs = forecasts.train(flickr8k.make_bundle(data, tmp_path), training)
    cider = [epoch.scores["cider_d"] for epoch in epochs]
    with capsys.disabled():
        print(f"\n{architecture}: greedy CIDEr-D by epoch {[round(each, 3) for each in cider]}")
    assert max(cider) >= 0.33
