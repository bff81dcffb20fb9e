import json
from pathlib import Path

import pytest

import prescore
from client.scripted_service import meanwhile

CAPTIONS = [{"image": "a.jpg", "caption": "a red square"}, {"image_id": 7, "caption": ""}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "one of the two"),
        ({"captions": CAPTIONS, "checkpoint": "sha256:0"}, "one of the two"),
        ({"captions": CAPTIONS, "postgen": "cider_d"}, "postgen: expected a list of names"),
        ({"captions": CAPTIONS, "gates": "cider_d > 0"}, "gates: expected a list of names"),
        ({"captions": CAPTIONS, "decoding": {"beam": float("nan")}}, "JSON"),
        ({"captions": CAPTIONS, "labels": {"a": object()}}, "JSON"),
        ({"captions": CAPTIONS, "idempotency_key": "é"}, "visible ASCII"),
        ({"captions": CAPTIONS, "idempotency_key": "a\nb"}, "visible ASCII"),
        ({"captions": CAPTIONS, "idempotency_key": "a" * 256}, "255"),
        ({"captions": ["a red square"]}, "item 1: expected an object"),
        ({"captions": [{"caption": "a"}]}, 'item 1: expected "image" or "image_id"'),
        ({"captions": [*CAPTIONS, {"image": True, "caption": "a"}]}, "item 3: .*found true"),
        ({"captions": [{"image_id": 1.5, "caption": "a"}]}, "found 1.5"),
        ({"captions": [{"image": "a.jpg", "caption": None}]}, 'expected "caption", .*null'),
    ],
)
def test_what_cannot_be_a_request_is_not_sent(service, client, fields, message):
    with pytest.raises(prescore.InvalidArgument, match=message):
        client.submit("shapes/test", **fields)
    assert service.requests == []


def test_half_a_character_reaches_the_service_which_knows_its_place(service, client):
    odd = "a\ud800b\u2028c 🙂"
    client.submit("shapes/test", captions=[{"image": "a.jpg", "caption": odd}])
    assert service.sent[0]["captions"][0]["caption"] == odd


@pytest.mark.parametrize(
    "fault",
    [
        {"lose": "request"},
        {"lose": "answer"},
        {"cut_answer": True},
        {"status": 503},
        {"status": 409, "body": {"code": "in_flight"}},
    ],
    ids=str,
)
def test_a_submission_that_is_sent_again_starts_one_run(service, client, fault):
    service.fault("POST", "/v1/evaluations", times=3, **fault)
    evaluation = client.submit("shapes/test", captions=CAPTIONS)
    assert evaluation.id == "ev_1"
    assert len(service.seen("POST")) == 4
    assert len(set(service.keys)) == 1
    assert list(service.evaluations) == ["ev_1"]


def test_a_key_of_the_callers_own_makes_two_programs_start_one_run(service, client):
    for _ in range(2):
        client.submit("shapes/test", captions=CAPTIONS, idempotency_key='ci run "7" \\ 2')
    assert set(service.keys) == {r'"ci run \"7\" \\ 2"'}
    assert list(service.evaluations) == ["ev_1"]
    client.submit("shapes/test", captions=CAPTIONS)
    assert list(service.evaluations) == ["ev_1", "ev_2"]


def test_the_answer_may_wait_for_the_first_scores(service, client):
    def end():
        service.wait_until(lambda: "ev_1" in service.evaluations)
        service.change("ev_1", status="succeeded")

    with meanwhile(end):
        evaluation = client.submit("shapes/test", captions=CAPTIONS, wait=20)
    assert evaluation.status == "succeeded"
    assert service.seen("POST")[0][2]["Prefer"] == "wait=20"


def test_a_run_is_canceled_once_and_again_without_harm(service, client):
    id_ = service.start()
    service.fault("POST", "/cancel", lose="answer")
    assert client.cancel(id_).status == "canceled"
    assert client.cancel(id_).status == "canceled"
    with pytest.raises(prescore.Refused, match="no evaluation ev_9"):
        client.cancel("ev_9")


@pytest.mark.parametrize("given", ["runs/x.safetensors", Path("runs/x")])
def test_a_checkpoints_file_is_uploaded_first(service, client, given):
    with pytest.raises(prescore.InvalidArgument, match="upload it first"):
        client.submit("shapes/test", checkpoint=given)
    assert service.requests == []


def test_captions_are_a_list_or_by_image_or_a_file_and_names_a_list_or_a_tuple(
    service, client, tmp_path
):
    items = [{"image": "a.jpg", "caption": "a square"}, {"image": "7", "caption": ""}]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(items))
    by_image = {item["image"]: item["caption"] for item in items}
    more = [{**items[0], "score": -1.5}, {"image": None, "image_id": 7, "caption": "", "id": 1}]
    for captions in (items, more, by_image, path, str(path)):
        client.submit("shapes/test", captions=captions, pregen="all", postgen=("bleu", "meteor"))
    expected = {"pregen": "all", "postgen": ["bleu", "meteor"]}
    assert service.sent == [{"captions": items, "dataset": "shapes/test", **expected}] * 5
