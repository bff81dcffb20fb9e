"""DELETE of runs and uploads: nobody sees them again, and what others need stays."""

import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, until_ended, upload
from helpers.submissions import submit
from service.engine import tables


def _evaluate(client, text="w2 w3", images=40, **more):
    if "checkpoint" in more:
        return submit(client, postgen=[], **more)
    captions = [{"image": str(900 + n), "caption": text} for n in range(images)]
    asked = {"captions": captions, "postgen": ["bleu_1"], "tokenizer": "none", **more}
    return submit(client, **asked)


def _ended(client, *asked, **more):
    identity = _evaluate(client, *asked, **more)
    assert until_ended(client, identity, 60)["status"] == "succeeded"
    return identity


def _delete(client, path, status=204):
    answer = client.delete(f"/v1/{path}")
    assert answer.status_code == status, answer.text
    return answer


def _board(client):
    place = "/v1/datasets/tiny/leaderboard?metric=bleu_1&split=test"
    return [each["evaluation"] for each in client.get(place).json()["items"]]


def _rows(service, identity):
    """How many rows name a run, by table."""
    found = {}
    with service.records.reading() as connection:
        for table in tables.metadata.sorted_tables:
            column = "id" if table.name == "runs" else "run_id"
            if column in table.c and "run" in (table.name + column):
                own = sa.select(sa.func.count()).where(table.c[column] == identity)
                found[table.name] = connection.execute(own.select_from(table)).scalar_one()
    return {name: many for name, many in found.items() if many}


def test_a_deleted_evaluation_is_nowhere_and_a_second_time_it_is_not_found(client, service):
    identity = _ended(client, "w4 w5", labels={"mark": "gone"})
    client.get("/v1/evaluations?label.mark=gone")
    client.get(f"/v1/evaluations/{identity}")
    assert _rows(service, identity).keys() >= {"runs", "scores", "labels", "run_tasks"}
    _delete(client, f"evaluations/{identity}")
    for path in ("", "/pregen", "/captions", "/events"):
        assert client.get(f"/v1/evaluations/{identity}{path}").status_code == 404
    assert client.get("/v1/evaluations?label.mark=gone").json()["items"] == []
    assert identity not in _board(client)
    assert _rows(service, identity) == {}
    _delete(client, f"evaluations/{identity}", 404)


def test_the_next_of_equal_scores_takes_the_place_on_the_board(client):
    first, second, third = (_ended(client, "w6 w7 w8") for _ in range(3))
    before = _board(client)
    assert first in before
    assert {second, third} & set(before) == set()
    _delete(client, f"evaluations/{first}")
    assert [each if each != first else second for each in before] == _board(client)
    _delete(client, f"evaluations/{third}")
    assert second in _board(client)


def test_a_board_counts_the_scores_that_it_has(client):
    identity = _ended(client, "w9 w8", tokenizer="ptb")
    place = "/v1/datasets/tiny/history?metric=bleu_1&split=test"
    signature = client.get(f"/v1/evaluations/{identity}").json()["scores"]["bleu_1"]["signature"]
    _ended(client, "w9 w8")
    assert signature in client.get(place).json()["others"]
    _delete(client, f"evaluations/{identity}")
    assert signature not in client.get(place).json()["others"]


def test_one_that_has_not_ended_is_stopped_first(client, service):
    with service.held():
        identity = _evaluate(client, "w2 w2 w2")
        told = _delete(client, f"evaluations/{identity}", 409).json()["detail"]
        assert f"POST /v1/evaluations/{identity}/cancel" in told
        client.post(f"/v1/evaluations/{identity}/cancel")
        _delete(client, f"evaluations/{identity}")


def test_what_an_unfinished_run_needs_is_named_and_stays(client, service):
    a, b = _ended(client, "w2 w5"), _ended(client, "w3 w5")
    with service.held():
        comparison = client.post("/v1/comparisons", json={"a": a, "b": b}).json()["id"]
        gated = _evaluate(client, "w5", gates=["bleu_1 >= baseline"], baseline=a)
        told = _delete(client, f"evaluations/{a}", 409).json()
        assert told["code"] == "conflict"
        assert "2 unfinished runs" in told["detail"]
        assert comparison in told["detail"]
        assert gated in told["detail"]
        told = _delete(client, f"evaluations/{b}", 409).json()["detail"]
        assert "1 unfinished run:" in told
    until_ended(client, gated, 60)
    shown = client.get(f"/v1/comparisons/{comparison}").json()
    assert shown["images"]
    _delete(client, f"evaluations/{a}")
    after = client.get(f"/v1/comparisons/{comparison}")
    assert after.json() == {**shown, "images": []}
    assert client.get("/v1/comparisons").status_code == 200
    baseline = client.get(f"/v1/evaluations/{gated}").json()["gates"][0]["scores"]["bleu_1"]
    assert baseline["evaluation"] == a  # it was


def test_a_label_that_says_an_id_keeps_nothing(client, service):
    identity = _ended(client, "w8 w5")
    with service.held():
        _evaluate(client, "w8 w2 w5", labels={"like": identity})
        _delete(client, f"evaluations/{identity}")


def test_a_key_of_a_deleted_run_begins_another_one(client):
    request = {
        "captions": [{"image": str(900 + n), "caption": "w4"} for n in range(40)],
        "dataset": "tiny/test",
        "postgen": ["bleu_1"],
    }
    headers = {"Idempotency-Key": "once-and-again"}
    first = client.post("/v1/evaluations", json=request, headers=headers).json()["id"]
    until_ended(client, first, 60)
    _delete(client, f"evaluations/{first}")
    again = client.post("/v1/evaluations", json=request, headers=headers)
    assert again.status_code == 202
    assert again.json()["id"] != first


def test_a_checkpoint_goes_when_its_runs_have_ended_and_their_scores_stay(client, service):
    digest = upload(client, checkpoint(seed=4711))
    with service.held():
        identity = _evaluate(client, checkpoint=digest)
        told = _delete(client, f"checkpoints/{digest}", 409).json()["detail"]
        assert identity in told
    ended = until_ended(client, identity, 60)
    _delete(client, f"checkpoints/{digest}")
    _delete(client, f"checkpoints/{digest}", 404)
    assert client.head(f"/v1/checkpoints/{digest}").status_code == 404
    assert client.get(f"/v1/evaluations/{identity}").json() == ended
    refused = client.post(
        "/v1/evaluations", json={"dataset": "tiny/test", "checkpoint": digest, "postgen": []}
    )
    assert refused.status_code == 404
    assert client.put(f"/v1/checkpoints/{digest}", content=checkpoint(seed=4711)).status_code == 201
    again = until_ended(client, _evaluate(client, checkpoint=digest), 60)
    assert all(task["cached"] for task in again["tasks"])


def test_all_versions_of_a_name_go_and_their_numbers_do_not_come_again(client):
    for seed in (1, 2):
        client.put("/v1/datasets/numbered", content=bundle(42, seed=seed))
    _delete(client, "datasets/numbered@v2")
    assert client.get("/v1/datasets/numbered").json()["version"] == "v1"
    third = client.put("/v1/datasets/numbered", content=bundle(42, seed=2)).json()
    assert third["version"] == "v3"
    _delete(client, "datasets/numbered")
    assert client.get("/v1/datasets/numbered").status_code == 404
    fourth = client.put("/v1/datasets/numbered", content=bundle(42, seed=3)).json()
    assert fourth["version"] == "v4"
    noted = client.get("/v1/audit?action=dataset.deleted").json()["items"]
    told = [each["object"] for each in noted[:3]]
    assert told == ["numbered@v3", "numbered@v1", "numbered@v2"]


def test_if_match_lets_nobody_delete_what_he_has_not_seen(client):
    identity = _ended(client, "w3 w3 w3")
    place = f"/v1/evaluations/{identity}"
    seen = {"If-Match": client.get(place).headers["ETag"]}
    client.patch(place, json={"note": "keep this one"})
    assert client.delete(place, headers=seen).status_code == 412
    assert client.delete(place).status_code == 204
