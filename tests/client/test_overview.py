"""The client sorts and finds captions, and sees images, labels, queues and workers: against a real
service.
"""

import pytest

import prescore
from helpers.fleet import bundle, checkpoint
from helpers.service_here import service_here

SAID = [f"w{at % 7 + 2} w3 w{at % 5 + 2}" for at in range(40)]
OTHERS = ["w3 w4"] * 40


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("home")) as service:
        with service.client() as asking:
            assert asking.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
        with prescore.Client(service.url) as client:
            yield client


@pytest.fixture(scope="module")
def evaluation(client):
    return _submitted(client, SAID, branch="main")


def _submitted(client, said, **labels):
    captions = {f"{at}.jpg": caption for at, caption in enumerate(said)}
    asked = {"captions": captions, "postgen": ["rouge_l"], "tokenizer": "none", "labels": labels}
    return client.wait(client.submit("tiny/test", **asked).id).id


def _scores(captions):
    return [caption.scores["rouge_l"] for caption in captions]


@pytest.mark.long
def test_captions_are_sorted_and_found(client, evaluation):
    every = list(client.captions(evaluation))
    assert [caption.caption for caption in every] == SAID
    best = list(client.captions(evaluation, sort="-rouge_l", page_size=7))
    assert _scores(best) == sorted(_scores(every), reverse=True)
    low, high = sorted(_scores(every))[5:30:24]
    bounds = {"sort": "rouge_l", "at_least": low, "at_most": high}
    some = list(client.captions(evaluation, **bounds))
    assert _scores(some) == [score for score in sorted(_scores(every)) if low <= score <= high]
    found = list(client.captions(evaluation, search="W8 W3"))
    assert [caption.caption for caption in found] == [text for text in SAID if "w8 w3" in text]
    (one,) = client.captions(evaluation, image="7.jpg")
    assert one == every[7]


@pytest.mark.long
def test_all_images_of_a_comparison_are_there(client, evaluation):
    compared = client.compare(evaluation, _submitted(client, OTHERS))
    asked = {"metric": "rouge_l", "sort": "-difference", "page_size": 9}
    images = list(client.compared_images(compared.id, **asked))
    differences = [image.scores["rouge_l"].difference for image in images]
    assert differences == sorted(differences, reverse=True)
    assert sorted((image.a, image.b) for image in images) == sorted(zip(SAID, OTHERS, strict=True))


def test_captions_are_a_table_and_coco_results_too(client, evaluation):
    heading, *rows = client.captions_csv(evaluation).splitlines()
    assert heading == "image,caption,rouge_l"
    assert [row.split(",")[1] for row in rows] == SAID
    found = client.captions_coco(evaluation)
    assert found[7] == {"image_id": 907, "caption": SAID[7]}
    assert len(found) == 40


def test_a_checkpoint_has_facts_scores_and_words(client, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(checkpoint(seed=98))
    digest = client.upload_checkpoint(file)
    facts = client.checkpoint(digest)
    assert (facts.digest, facts.bytes, facts.state) == (digest, file.stat().st_size, "ready")
    assert facts.created_at.utcoffset().total_seconds() == 0
    assert client.has_checkpoint(digest)
    assert not client.has_checkpoint(f"sha256:{'0' * 64}")
    asked = {"pregen": "all", "postgen": [], "tokens": {"top": 2, "entropy": True}}
    run = client.wait(client.submit("tiny/test", checkpoint=digest, **asked).id)
    assert run.scores.keys() - {"perplexity"} < client.pregen(run.id).keys()
    words = client.tokens(run.id, "3.jpg")
    assert words.image == "3.jpg"
    assert [caption.tokens[-1].word for caption in words.captions] == ["<end>"] * 3
    assert all(len(token.tops) == 2 and token.entropy > 0 for token in words.captions[0].tokens)
    assert [each.name for each in client.metrics() if each.name == "cider_d"] == ["cider_d"]


def test_an_image_has_references(client):
    found = client.references("tiny@v1", "3.jpg")
    assert (found.image, found.id, str(found.dataset)) == ("3.jpg", "903", "tiny@v1/test")
    assert len(found.references) == 3
    assert not found.has_picture
    with pytest.raises(prescore.Refused, match="no image"):
        client.references("tiny", "a/b")


def test_labels_queues_and_workers_are_seen(client, evaluation):
    assert client.wait(evaluation).labels == {"branch": "main"}
    (label,) = client.labels("tiny/test")
    assert (label.name, [one.value for one in label.values]) == ("branch", ["main"])
    assert client.labels("none") == ()
    assert {queue.name for queue in client.queues()} >= {"inference", "metrics"}
    assert {queue.waiting for queue in client.queues()} == {0}
    assert [worker.role for worker in client.workers()] == ["inference", "metrics"]
    assert {worker.state for worker in client.workers()} == {"idle"}
