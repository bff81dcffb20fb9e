"""Overviews and falls over HTTP, by the client and by commands."""

import pytest

from helpers.fleet import bundle, bundle_of
from helpers.stored_records import enter_checkpoint
from helpers.submissions import evaluate, run_command
from prescore import Client
from service.stored import datasets

GOOD = (0, 0.2, 2.1, 3.2, 4.1, 4.37)
BROKEN = (0, 0.2, 2.07, 3.18, 3.34)
SENTENCE = "cider_d 3.34 at step 5 is 0.76 [0.49, 1.03] below merge-64 at the same step"


def enter_trainings(service, name, **trainings):
    """Enter checkpoints with scores on a split of their own."""
    with service.client() as client:
        client.put(f"/v1/datasets/{name}", content=bundle(4)).raise_for_status()
    pinned = datasets.pin_split(service.records, f"{name}/test")
    with service.records.transaction() as connection:
        for run, values in trainings.items():
            for step, value in enumerate(values, start=1):
                marks, scores = {"run": run, "step": str(step)}, {"cider_d": (value, 0.0975)}
                times = {"created_at": float(step), "finished_at": step + 0.5}
                identity = f"ev_{name}{run}{step}".ljust(27, "x")
                enter_checkpoint(connection, identity, pinned, marks, scores, **times)


@pytest.fixture(scope="module")
def trained(service):
    """The fifth checkpoint of the second of two trainings is broken."""
    enter_trainings(service, "trained", **{"merge-64": GOOD, "merge-nightly": BROKEN})
    return "ev_trainedmerge-nightly5".ljust(27, "x")


def test_an_evaluation_has_its_falls_and_a_new_version_with_the_next_checkpoint(
    service, client, trained
):
    answer = client.get(f"/v1/evaluations/{trained}")
    (fall,) = answer.json()["falls"]
    assert (fall["kind"], fall["metric"], fall["step"]) == ("run", "cider_d", 5)
    assert fall["beside"]["labels"] == {"run": "merge-64", "step": "5"}
    listed = client.get("/v1/evaluations?dataset=trained&limit=200").json()["items"]
    assert {one["id"]: len(one["falls"]) for one in listed if one["falls"]} == {trained: 1}
    assert f"fall: {SENTENCE}" in run_command(service, "status", trained).stdout.splitlines()
    same = {"If-None-Match": answer.headers["ETag"]}
    assert client.get(f"/v1/evaluations/{trained}", headers=same).status_code == 304
    pinned = datasets.pin_split(service.records, "trained/test")
    with service.records.transaction() as connection:
        marks, scores = {"run": "merge-nightly", "epoch": "6"}, {"cider_d": (4.34, 0.0975)}
        enter_checkpoint(connection, "ev_later", pinned, marks, scores, created_at=7.0)
    later = client.get(f"/v1/evaluations/{trained}", headers=same)
    assert [one["kind"] for one in later.json()["falls"]] == ["trend", "run"]
    listed = client.get("/v1/evaluations?dataset=trained&limit=200").json()["items"]
    assert {one["id"]: len(one["falls"]) for one in listed if one["falls"]} == {trained: 2}


def test_a_checkpoint_that_really_ends_is_judged(client):
    """Captions that are references of fewer and fewer images: BLEU falls when it ends."""
    people = {f"{at}.jpg": f"w{at} x{at % 7} y{at % 5} z{at % 3} end" for at in range(40)}
    content = bundle_of({image: [text] for image, text in people.items()})
    client.put("/v1/datasets/ending", content=content).raise_for_status()
    falls = []
    for step, right in enumerate((10, 40, 0)):
        captions = [
            {"image": image, "caption": text if number < right else "nothing of this"}
            for number, (image, text) in enumerate(people.items())
        ]
        marks = {"run": "ending", "step": str(step)}
        asked = {"captions": captions, "postgen": ["bleu_1"], "tokenizer": "none"}
        ended = evaluate(client, dataset="ending/test", labels=marks, **asked)
        falls.append([(one["metric"], one["kind"], one["step"]) for one in ended["falls"]])
    assert falls == [[], [], [("bleu_1", "step", 2.0)]]


def test_evaluations_that_need_attention_are_listed(service, client):
    captions = [{"image": f"{number}.jpg", "caption": "a man"} for number in range(40)]
    asked = {"dataset": "tiny/test", "captions": captions, "tokenizer": "none"}
    collapsed = evaluate(client, **asked, postgen=["caption_length"])
    failed = evaluate(client, **asked, gates=["caption_length >= 9"])
    listed = client.get("/v1/attention").json()["items"]
    items = [one for one in listed if one["dataset"]["name"] == "tiny"]
    assert [(one["kind"], one["evaluation"]) for one in items] == [
        ("gate", failed["id"]),
        ("collapsed", collapsed["id"]),
    ]
    assert items[0]["gate"]["gate"] == "caption_length >= 9"
    assert items[1]["caption"] == {"text": "a man", "images": 40, "of": 40}
    assert collapsed["collapsed"] == items[1]["caption"]
    varied = [{"image": f"{number}.jpg", "caption": f"a man {number}"} for number in range(40)]
    distinct = evaluate(client, **{**asked, "captions": varied}, postgen=["caption_length"])
    assert distinct["collapsed"] is None
    assert len(client.get("/v1/attention?limit=1").json()["items"]) == 1
    with Client(service.url) as mine:
        found = [one.evaluation for one in mine.attention(limit=100)]
    assert found == [one["evaluation"] for one in listed]


def test_trainings_are_listed(service, client):
    enter_trainings(service, "listed", first=GOOD, second=(*BROKEN, 4.34, 4.35))
    items = client.get("/v1/trainings?dataset=listed/test").json()["items"]
    assert [(one["run"], one["checkpoints"]) for one in items] == [("second", 7), ("first", 6)]
    fallen = "ev_listedsecond5".ljust(27, "x")
    assert {one["evaluation"] for one in items[0]["steps"] if one["is_fallen"]} == {fallen}
    best = "ev_listedfirst6".ljust(27, "x")
    assert items[1]["best"] == {"step": 6.0, "evaluation": best, "value": 4.37}
    (one,) = client.get("/v1/trainings?limit=1&metric=meteor").json()["items"]
    assert (one["metric"], one["best"]) == ("meteor", None)
    with Client(service.url) as mine:
        found = list(mine.captioner_trainings(dataset="listed", metric="cider_d"))
    assert [one.checkpoints for one in found] == [7, 6]


def test_a_training_without_the_usual_metric_shows_another(service, client):
    client.put("/v1/datasets/beside", content=bundle(4)).raise_for_status()
    pinned = datasets.pin_split(service.records, "beside/test")
    with service.records.transaction() as connection:
        for run, metric in (("usual", "cider_d"), ("other", "meteor")):
            marks, scores = {"run": run, "step": "1"}, {metric: (0.5, 0.1), "bleu_4": (0.2, 0.1)}
            enter_checkpoint(connection, f"ev_{run}".ljust(27, "x"), pinned, marks, scores)
    items = client.get("/v1/trainings?dataset=beside").json()["items"]
    shown = {one["run"]: (one["metric"], one["best"]["value"]) for one in items}
    assert shown == {"usual": ("cider_d", 0.5), "other": ("bleu_4", 0.2)}


@pytest.mark.parametrize(
    "query",
    [
        "attention?limit=0",
        "attention?limit=101",
        "attention?dataset=trained",
        "trainings?limit=101",
        "trainings?metric=cidr_d",
        "trainings?dataset=a/b/c",
        "trainings?label.run=a",
    ],
)
def test_a_wrong_question_is_refused(client, query):
    assert client.get(f"/v1/{query}").status_code == 422
