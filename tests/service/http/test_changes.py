"""PATCH of runs: labels and notes are others from the next request on, for all who look."""

import itertools

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, until_ended
from helpers.submissions import evaluate, submit
from service.engine.tables import labels

TEXTS = itertools.count(2)


ASKED = {"postgen": ["bleu_1"], "tokenizer": "none"}


def _captions(text):
    return [{"image": str(900 + n), "caption": text} for n in range(40)]


@pytest.fixture
def place(client):
    labels = {"branch": "topic", "run": "7"}
    found = evaluate(client, captions=_captions("w2 w3"), **ASKED, labels=labels)
    return f"/v1/evaluations/{found['id']}"


def _change(client, place, status=200, headers=None, **wanted):
    answer = client.patch(place, json=wanted, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def _listed(client, **wanted):
    asked = {f"label.{name}": value for name, value in wanted.items()}
    return client.get("/v1/evaluations", params=asked).json()["items"]


def test_labels_are_replaced_one_by_one_beside_the_note_and_null_removes_either(client, place):
    answer = _change(client, place, labels={"branch": "main", "run": None, "by": "ann"})
    assert answer.json()["labels"] == {"branch": "main", "by": "ann"}
    assert client.get(place).json() == answer.json()
    assert client.get(place).headers["ETag"] == answer.headers["ETag"]
    assert answer.json()["note"] is None
    _change(client, place, note="trained on half of the data")
    _change(client, place, labels={"by": "bob"})
    assert client.get(place).json()["note"] == "trained on half of the data"
    _change(client, place, note=None)
    assert client.get(place).json()["note"] is None


def test_who_polls_gets_the_new_version_and_who_changes_nothing_makes_none(client, place):
    before = client.get(place).headers["ETag"]
    seen = {"If-None-Match": before}
    _change(client, place, labels={"branch": "topic"})
    assert client.get(place, headers=seen).status_code == 304
    _change(client, place, labels={"branch": "main"})
    answer = client.get(place, headers={**seen, "Prefer": "wait=30"})
    assert answer.status_code == 200
    assert answer.json()["labels"]["branch"] == "main"


def test_lists_boards_and_histories_follow_at_once_whatever_they_have_shown_before(client, place):
    identity = place.rsplit("/", 1)[1]
    mark = f"t{next(TEXTS)}"
    _change(client, place, labels={"mark": mark})
    (before,) = _listed(client, mark=mark)
    _change(client, place, note="seen again", labels={"run": "8"})
    (after,) = _listed(client, mark=mark)
    assert (before["note"], before["labels"]["run"]) == (None, "7")
    assert (after["note"], after["labels"]["run"]) == ("seen again", "8")
    asked = f"metric=bleu_1&split=test&label.mark={mark}"
    boards = [f"/v1/datasets/tiny/{path}?{asked}" for path in ("leaderboard", "history")]
    for board in boards:
        (shown,) = client.get(board).json()["items"]
        assert (shown["evaluation"], shown["labels"]["mark"]) == (identity, mark), board
    _change(client, place, labels={"mark": None})
    assert _listed(client, mark=mark) == []
    assert any(each["id"] == identity for each in _listed(client, run="8"))
    assert [client.get(board).json()["items"] for board in boards] == [[], []]


def test_an_unfinished_evaluation_is_changed_too_and_ends_as_ever(client, service):
    with service.held():
        identity = submit(client, captions=_captions("w5 w6 w7"), **ASKED)
        place = f"/v1/evaluations/{identity}"
        changed = _change(client, place, note="still going", labels={"a": "b"})
        assert changed.json()["status"] in ("queued", "running")
    ended = until_ended(client, identity, 60)
    told = ended["status"], ended["note"], ended["labels"]
    assert told == ("succeeded", "still going", {"a": "b"})


def test_the_stream_of_an_ended_evaluation_is_over_after_a_change(client, place):
    """The version is then greater than the number of the last event."""
    with client.stream("GET", f"{place}/events") as events:
        told = [line for line in events.iter_lines() if line.startswith("id: ")]
    _change(client, place, note="read me")
    last = {"Last-Event-ID": told[-1].removeprefix("id: ")}
    assert client.get(f"{place}/events", headers=last).status_code == 204


def test_a_stream_of_the_team_may_begin_with_what_changed_a_moment_ago(client, place):
    wanted = client.get(place).json()["id"]
    with client.stream("GET", "/v1/events?recent=true&seconds=1") as events:
        told = [line for line in events.iter_lines() if wanted in line]
    assert len(told) == 1, "told once, and not again"
    assert '"status": "succeeded"' in told[0]


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"labels": {"a\x1b": "b"}}, "/labels/a\x1b"),
        ({"labels": {"": "b"}}, "/labels/"),
        ({"labels": {"a": "b" * 501}}, "/labels/a"),
        ({"labels": {"a": 1}}, "/labels/a"),
        ({"labels": {f"l{n}": "b" for n in range(49)}}, "/labels"),
        ({"labels": {f"l{n}": None for n in range(101)}}, "/labels"),
        ({"note": "n" * 2001}, "/note"),
        ({"note": "n\0"}, "/note"),
        ({"verdict": "passed"}, "/verdict"),
    ],
)
def test_what_could_not_be_submitted_cannot_be_set(client, place, wanted, pointer):
    before = client.get(place).json()
    answer = _change(client, place, 422, **wanted)
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert client.get(place).json() == before


def test_a_change_is_noted_with_what_was_there_before(client, place):
    identity = place.rsplit("/", 1)[1]
    _change(client, place, labels={"branch": "main", "new": "one"}, note="n")
    (entry,) = client.get("/v1/audit", params={"object": identity}).json()["items"]
    assert entry["action"] == "run.changed"
    assert entry["detail"] == {
        "labels": {"branch": "main", "new": "one"},
        "before": {"branch": "topic", "new": None},
        "note": "n",
    }


def test_labels_set_later_are_found_in_the_order_of_submission(client, service, place):
    """Their rows have the time of the run, and not that of the change."""
    identity = place.rsplit("/", 1)[1]
    _change(client, place, labels={"late": "yes"})
    with service.records.reading() as connection:
        times = sa.select(labels.c.created_at).where(labels.c.run_id == identity).distinct()
        assert len(connection.execute(times).all()) == 1


def test_a_new_version_of_a_dataset_is_noted_once(client):
    sent = bundle(7)
    version = client.put("/v1/datasets/noted", content=sent).json()
    client.put("/v1/datasets/noted", content=sent)
    (entry,) = client.get("/v1/audit?object=noted@v1").json()["items"]
    assert (entry["action"], entry["detail"]) == (
        "dataset.published",
        {"digest": version["digest"]},
    )
    assert (entry["team"], entry["key"], entry["address"]) == ("local", None, "127.0.0.1")
