import json
import threading
from pathlib import Path

import pytest

import prescore
from client.scripted_service import score, task

CAPTIONS = [
    {"image": "a.jpg", "caption": "a red square", "score": -1.5, "beam": 3},
    {"image": None, "image_id": 7, "caption": "", "id": 1},
]


def _sent(service):
    return [request for request, _ in service.submissions.values()]


def _keys(service):
    return {headers["Idempotency-Key"] for _, _, headers in service.seen("POST")}


def test_a_checkpoint_is_evaluated_as_the_service_does_by_default(
    service, client, shapes, checkpoint
):
    digest = client.upload_checkpoint(checkpoint)
    evaluation = client.submit("shapes/test", checkpoint=digest)
    assert evaluation.status == "running"
    assert evaluation.checkpoint == digest
    assert str(evaluation.dataset) == "shapes@v1/test"
    assert _sent(service) == [{"checkpoint": digest, "dataset": "shapes/test"}]


def test_every_field_of_the_contract_arrives_as_it_was_given(service, client, shapes):
    fields = {
        "pregen": ["perplexity"],
        "postgen": [],
        "precision": "fp32",
        "tokens": {"top": 5, "entropy": True},
        "tokenizer": "none",
        "decoding": {"beam": 5, "unk": True},
        "subset": True,
        "gates": ["cider_d >= 0.4"],
        "baseline": "branch=main",
        "until": "verdict",
        "trust": ["meteor"],
        "labels": {"branch": "main"},
        "deadline": 60,
    }
    client.submit("shapes/test", captions=CAPTIONS, **fields)
    assert _sent(service) == [
        {
            "captions": [
                {"image": "a.jpg", "caption": "a red square"},
                {"image": "7", "caption": ""},
            ],
            "dataset": "shapes/test",
            **fields,
        }
    ]
    client.submit("shapes/test", captions=CAPTIONS, pregen="all", postgen=("bleu", "meteor"))
    assert _sent(service)[1]["pregen"] == "all"
    assert _sent(service)[1]["postgen"] == ["bleu", "meteor"]


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


def test_half_a_character_reaches_the_service_which_knows_its_place(service, client, shapes):
    odd = "a\ud800b\u2028c 🙂"
    client.submit("shapes/test", captions=[{"image": "a.jpg", "caption": odd}])
    assert _sent(service)[0]["captions"][0]["caption"] == odd


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
def test_a_submission_that_is_sent_again_starts_one_run(service, client, shapes, fault):
    service.fault("POST", "/v1/evaluations", times=3, **fault)
    evaluation = client.submit("shapes/test", captions=CAPTIONS)
    assert evaluation.id == "ev_1"
    assert len(service.seen("POST")) == 4
    assert len(_keys(service)) == 1
    assert list(service.evaluations) == ["ev_1"]


def test_a_key_of_the_callers_own_makes_two_programs_start_one_run(service, client, shapes):
    for _ in range(2):
        client.submit("shapes/test", captions=CAPTIONS, idempotency_key='ci run "7" \\ 2')
    assert _keys(service) == {r'"ci run \"7\" \\ 2"'}
    assert list(service.evaluations) == ["ev_1"]
    client.submit("shapes/test", captions=CAPTIONS)
    assert list(service.evaluations) == ["ev_1", "ev_2"]


def test_the_answer_may_wait_for_the_first_scores(service, client, shapes):
    def end():
        service.wait_until(lambda: "ev_1" in service.evaluations)
        service.change("ev_1", status="succeeded")

    thread = threading.Thread(target=end)
    thread.start()
    evaluation = client.submit("shapes/test", captions=CAPTIONS, wait=20)
    thread.join()
    assert evaluation.status == "succeeded"
    assert service.seen("POST")[0][2]["Prefer"] == "wait=20"


def test_an_evaluation_is_typed_and_what_is_newer_than_the_client_is_left_aside(service, client):
    failed = task("spice", "failed", attempts=3, error={"code": "timeout", "detail": "too slow"})
    id_ = service.start(
        status="failed",
        tasks=[task("columns", "done", 600, 1000), failed, task("odd", "new_state", error="why")],
        scores={
            "cider_d": score(0.41, interval=[0.38, 0.44]),
            "perplexity": score(None, family="pregen", higher_is_better=False),
        },
        warnings=[{"code": "empty_caption", "image": "7", "detail": "has no words"}],
        error={"code": "task_failed", "detail": "spice", "title": "of next year"},
        labels={"branch": "main"},
        dataset={"name": "shapes", "version": 3, "digest": "d", "split": "test"},
        finished_at="2026-01-02T03:05:05.5Z",
    )
    evaluation = client.evaluation(id_)
    assert evaluation.ended
    assert str(evaluation.dataset) == "shapes@3/test"
    assert evaluation.tasks[0].progress.total == 1000
    assert evaluation.tasks[1].error.detail == "too slow"
    assert evaluation.tasks[2].error.detail == "why"
    assert evaluation.scores["cider_d"].interval == (0.38, 0.44)
    assert evaluation.scores["perplexity"].value is None
    assert evaluation.warnings[0].image == "7"
    assert evaluation.error.code == "task_failed"
    assert (evaluation.finished_at - evaluation.created_at).total_seconds() == 60.5
    assert not hasattr(evaluation, "a_field_of_next_year")
    with pytest.raises(ValueError, match="frozen"):
        evaluation.status = "succeeded"


def test_a_list_is_fetched_as_it_is_read(service, client):
    for number in range(5):
        service.start(labels={"branch": "main" if number % 2 else "dev"})
    found = client.evaluations()
    assert service.requests == []
    assert next(found).id == "ev_1"
    assert len(service.requests) == 1
    assert [evaluation.id for evaluation in found] == ["ev_2", "ev_3", "ev_4", "ev_5"]
    assert len(service.requests) == 3


def test_a_list_is_filtered_by_the_service(service, client):
    for number in range(6):
        service.start(
            labels={"branch": "main", "n é": str(number % 2)},
            status="running" if number < 4 else "failed",
        )
    found = client.evaluations(
        dataset="shapes", status="running", labels={"branch": "main", "n é": "1"}, page_size=1
    )
    assert [evaluation.id for evaluation in found] == ["ev_2", "ev_4"]
    assert len(service.requests) == 2


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


@pytest.mark.parametrize("form", ["a list", "by image", "a path", "a text"])
def test_captions_are_a_list_or_by_image_or_a_file(service, client, shapes, tmp_path, form):
    items = [{"image": "a.jpg", "caption": "a square"}]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(items))
    forms = {"a list": items, "by image": {"a.jpg": "a square"}, "a path": path}
    client.submit("shapes/test", captions=forms.get(form, str(path)))
    ((request, _),) = service.submissions.values()
    assert request["captions"] == items
