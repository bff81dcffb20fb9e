"""Captions of 36 captioners and of people, as they are and shifted by one image."""

import pytest

from parity import systems
from service.contract.formats import outputs

SAID_BY = ("human_1", *systems.NAMES)
SHIFTED = "captions_look_shifted"
pytestmark = pytest.mark.long


def _slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture(
    scope="module",
    params=["flickr8k", _slow("flickr30k"), _slow("mscoco")],
)
def dataset(request):
    return request.param


@pytest.fixture(scope="module")
def references(data, dataset):
    return list(systems.raw(data, dataset))


@pytest.mark.parametrize("name", [SAID_BY[0], SAID_BY[1], *map(_slow, SAID_BY[2:])])
def test_shifted_captions_are_told_and_no_others(data, dataset, references, name):
    path = data / "systems" / f"{dataset}_{name}" / "generated_captions.txt.gz"
    captions = systems.lines(path)
    assert SHIFTED not in _codes(captions, references)
    for by in (-1, 1):
        assert SHIFTED in _codes([*captions[by:], *captions[:by]], references)


def _codes(captions, references):
    """The codes of all warnings."""
    places = {str(place): place for place in range(len(references))}
    given = [(str(place), caption) for place, caption in enumerate(captions)]
    return {
        one["code"]
        for one in outputs.arrange_captions(given, places, references, "d", subset=False).warnings
    }
