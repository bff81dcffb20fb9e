"""By what the tasks of a model that looks at places are priced."""

from service.contract.api.evaluations import EvaluationRequest
from service.contract.plan import prices
from service.runs.submission import evaluation_submission
from service.stored.checkpoints import UsableCheckpoint
from service.stored.datasets import PinnedSplit

MODEL = {
    "architecture": "soft_attention",
    "inputs": "grid",
    "config": {"size": 512, "feature_size": 2048},
    "parameters": 21_000_000,
    "vocabulary_size": 10_000,
}


def _sizes(
    model, features, request=EvaluationRequest(dataset="d/test", columns="sha256:" + "0" * 64)
):
    pinned = PinnedSplit("d", 1, "sha256:d", "sha256:c", "test", ("test",), 1000, features, 5000)
    model = None if model is None else UsableCheckpoint("sha256:m", model)
    return evaluation_submission._choose_sizes(request, pinned, model, 1.0)


def test_captions_that_were_sent_are_priced_by_their_words():
    captions = [{"image": f"{at}.jpg", "caption": "a " * words} for at, words in ((0, 3), (1, 500))]
    request = EvaluationRequest(dataset="d/test", captions=captions)
    assert _sizes(None, None, request).caption_words == 251.5
    assert _sizes(None, None).caption_words == prices.USUAL.caption_words


def test_more_places_cost_more_of_models_that_look_at_places_alone():
    grid = {"encoder": {}, "size": 2048, "inputs": "grid", "places": 49}
    few, many = (_sizes(MODEL, {**grid, "places": places}) for places in (49, 196))
    assert (few.places, few.place_size, few.references) == (49, 2048, 5)
    assert many.columns > 1.5 * few.columns
    of_vectors = {name: each for name, each in MODEL.items() if name != "inputs"}
    assert _sizes(of_vectors, grid).places == 0


def test_such_a_model_is_as_large_as_its_parameters_say():
    grid = {"encoder": {}, "size": 2048, "inputs": "grid", "places": 1}
    deep, flat = ({**MODEL, "parameters": many} for many in (80_000_000, 8_000_000))
    assert _sizes(deep, grid).word > 2 * _sizes(flat, grid).word
