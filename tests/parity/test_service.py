"""Published systems scored through HTTP, as a user would send their captions."""

import pytest

from helpers.fleet import bundle_of, until_ended
from oracles import coco_scorers
from parity import systems

SECONDS = 300
QUICK = "init_1"
DATASETS = [
    pytest.param(name, marks=[] if name == "flickr8k" else [pytest.mark.slow])
    for name in systems.DATASETS
]


@pytest.fixture(scope="module")
def service(tmp_path_factory, serve_here):
    with serve_here(tmp_path_factory.mktemp("service")) as service:
        yield service


def _evaluate(service, dataset, captions, **options):
    """The evaluation's end, and each caption with its scores."""
    said = [{"image": image, "caption": text} for image, text in captions.items()]
    request = {"captions": said, "dataset": f"{dataset}/test", **options}
    with service.client() as client:
        identity = client.post("/v1/evaluations", json=request).json()["id"]
        found = until_ended(client, identity, SECONDS)
        assert found["status"] == "succeeded", found
        return found, client.get(f"/v1/evaluations/{identity}/captions").json()["items"]


@pytest.fixture(scope="module", params=DATASETS)
def published(service, data, request):
    """A system, and its captions by image; the set is there, as Karpathy's tokens."""
    dataset = request.param
    names = (data / "systems" / f"imgs_{dataset}.txt").read_text("utf-8").split()
    people = dict(zip(names, systems.references(data, dataset), strict=True))
    service.add_dataset(dataset, bundle_of(people))
    system = systems.system(data, dataset, QUICK)
    return dataset, system, dict(zip(names, system.captions, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["none", "ptb"])
def test_published_systems_score_as_published(service, published, tokenizer):
    dataset, system, captions = published
    found, _ = _evaluate(service, dataset, captions, tokenizer=tokenizer)
    scores = {metric: score["value"] for metric, score in found["scores"].items()}
    expected = {metric: float(value) for metric, value in system.results.items()}
    assert scores == pytest.approx(expected, abs=1e-3)
    if (dataset, tokenizer) == ("flickr8k", "none"):
        assert repr(scores["meteor"]) == system.pregen["meteor"]


@pytest.mark.slow  # without HTTP: test_systems.py
def test_a_published_system_scores_as_published_where_no_table_is_read(service, published):
    """METEOR's takes ten seconds of a core."""
    dataset, system, captions = published
    found, _ = _evaluate(service, dataset, captions, postgen=["bleu", "rouge_l", "cider_d"])
    expected = {metric: float(system.results[metric]) for metric in found["scores"]}
    scores = {metric: score["value"] for metric, score in found["scores"].items()}
    assert scores == pytest.approx(expected, abs=1e-3)


ODD = {
    "1.jpg": ("A red\u2028ball", ["The red ball.", "a ball"], "line_separator"),
    "2.jpg": ("", ["Two cats run.", "..."], "empty_caption"),
    "3.jpg": ("a man ||| a dog", ["A man and a dog.", "man | dog"], None),
    "4.jpg": ("a dog runs", ["A dog runs", "a brown dog running"], None),
}


def test_odd_captions_are_scored_in_their_own_place_and_warned_of(service):
    """As the published package scores them where it can: without the separator."""
    people = {image: references for image, (_, references, _) in ODD.items()}
    captions = {image: caption for image, (caption, _, _) in ODD.items()}
    service.add_dataset("odd", bundle_of(people))
    found, items = _evaluate(service, "odd", captions, postgen=["bleu", "rouge_l", "cider_d"])
    warned = {each["image"]: each["code"] for each in found["warnings"]}
    assert warned == {image: code for image, (_, _, code) in ODD.items() if code}
    clean = [[text.replace("\u2028", " ")] for text in captions.values()]
    said = [image[0] for image in coco_scorers.tokenize(clean)]
    expected = coco_scorers.each(said, coco_scorers.tokenize(list(people.values())))
    for name in found["scores"]:
        values = [item["scores"][name] for item in items]
        theirs = list(expected[name][1])
        if name == "rouge_l":
            theirs[1] = 0.0  # theirs is 1: both "" and "..." are nothing
        assert values == pytest.approx(theirs, rel=1e-12, abs=1e-15), name
