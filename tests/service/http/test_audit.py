"""GET /v1/audit: what was published and changed, and by whom."""

from fleet import bundle


def _audit(client, **asked):
    answer = client.get("/v1/audit", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_new_version_of_a_dataset_is_noted_once(client):
    sent = bundle(7)
    version = client.put("/v1/datasets/noted", content=sent).json()
    client.put("/v1/datasets/noted", content=sent)
    (entry,) = _audit(client, object="noted@v1")["items"]
    assert entry["action"] == "dataset.published"
    assert entry["detail"] == {"digest": version["digest"]}
    assert (entry["team"], entry["key"], entry["address"]) == ("local", None, "127.0.0.1")


def test_pages_follow_one_another(client):
    for number in range(3):
        client.put(f"/v1/datasets/paged{number}", content=bundle(5 + number))
    whole = _audit(client, limit=3)
    first = _audit(client, limit=2)
    second = _audit(client, limit=2, cursor=first["next"])
    assert [*first["items"], *second["items"]][:3] == whole["items"]


def test_an_action_that_there_is_not_is_refused(client):
    answer = client.get("/v1/audit?action=run.eaten")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/query/action"


def test_a_cursor_of_another_list_is_refused(client):
    foreign = client.get("/v1/datasets?limit=1").json()["next"]
    assert client.get("/v1/audit", params={"cursor": foreign}).status_code == 400
