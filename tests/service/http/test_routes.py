"""Every route, by its answers (T02-T09).

In process: what is looked at is what the application says and what the record keeps, and both are
those of `prescore serve`; requests come through a socket, many at a time where that matters. Tasks
are done before a submission is answered, unless the service is held meanwhile.
"""

import itertools
import json
import re
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from helpers import interface, statements
from helpers.builders import model, tensors
from helpers.fleet import bundle, bundle_of, checkpoint, digest, until, until_ended, upload
from helpers.submissions import evaluate
from service.engine.tables import attempts, run_tasks, task_rows
from service.runs import run_lists
from workers.inference import checkpoints

SEEDS = itertools.count(100)


def _request(identity, **more):
    return {"checkpoint": identity, "dataset": "tiny@v1/test", "postgen": [], **more}


def _fresh(client):
    """A checkpoint that nobody has scored before."""
    return upload(client, checkpoint(seed=next(SEEDS)))


def test_a_checkpoint_is_uploaded_once_and_described(client):
    data = checkpoint(seed=1)
    address = f"/v1/checkpoints/{digest(data)}"
    assert client.head(address).status_code == 404
    assert client.put(address, content=data).status_code == 201
    assert client.put(address, content=data).status_code == 200
    assert client.head(address).status_code == 200
    found = client.get(address).json()
    assert (found["architecture"], found["vocabulary_size"]) == ("merge", 50)
    assert found["bytes"] == len(data)
    assert found["cached"] == []


@pytest.mark.parametrize("name", ["shapes.tar", "shapes.TAR.gz", "captions.json"])
def test_a_dataset_is_not_called_as_the_file_that_curl_sends(client, name):
    answer = client.put(f"/v1/datasets/{name}", content=bundle(3))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["detail"].startswith(f"{name} is the name of a file")
    assert client.get(f"/v1/datasets/{name}").status_code == 404


def test_a_dataset_is_judged_with_its_last_bytes(client):
    """The first ones are judged while the others are not there yet."""
    data = bundle(3, seed=77)
    parts = iter([data[:600], data[600:-300], data[-300:]])
    assert client.put("/v1/datasets/parts", content=parts).status_code == 201
    parts = iter([data[:600], data[600:700]])
    answer = client.put("/v1/datasets/parts", content=parts)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_dataset")
    assert "cut off" in answer.json()["detail"]


def test_datasets_come_in_pages(client):
    for number in range(3):
        client.put(f"/v1/datasets/page{number}", content=bundle(3, seed=number))
    whole = client.get("/v1/datasets").json()
    first = client.get("/v1/datasets", params={"limit": 2}).json()
    rest = client.get("/v1/datasets", params={"cursor": first["next"]}).json()
    assert (first["items"] + rest["items"], rest["next"]) == (whole["items"], None)
    assert client.get("/v1/datasets?cursor=abc").status_code == 400


@pytest.mark.long
def test_a_model_that_sees_no_images_is_warned_of(client, tmp_path):
    path = tmp_path / "blind.safetensors"
    arrays = tensors("merge", "gru")
    blind = {**arrays, "image.weight": np.zeros_like(arrays["image.weight"])}
    for weights, told in ((blind, ["few_distinct_captions"]), (arrays, [])):
        checkpoints.write_checkpoint(path, model("merge", "gru", weights))
        asked = _request(upload(client, path.read_bytes()), postgen=["bleu_1"])
        found = evaluate(client, **asked)
        assert [warning["code"] for warning in found["warnings"]] == told


@pytest.mark.long
def test_captions_that_are_decoded_without_blanks_are_warned_of(client, tmp_path):
    path = tmp_path / "chinese.safetensors"
    made = model("merge", "gru", tensors("merge", "gru"))
    edge, unknown, *words = made.description.vocabulary
    chinese = (edge, unknown, *(5 * chr(0x4E00 + at) for at in range(len(words))))
    made.description = replace(made.description, vocabulary=chinese)
    checkpoints.write_checkpoint(path, made)
    asked = _request(upload(client, path.read_bytes()), postgen=["bleu_1", "meteor"])
    found = evaluate(client, **asked)
    told = {warning["code"]: warning["detail"] for warning in found["warnings"]}
    assert told["no_words_found"].startswith("the tokenizer ")
    assert " captions of " in told["no_words_found"]
    assert "meteor is for English: most captions have no blanks" in told["unavailable"]


def test_posting_answers_at_once_with_a_place_that_is_there(service, client):
    """T03: nobody has begun the tasks yet, so an answer that waits for them never comes."""
    request = _request(_fresh(client))
    with service.held():
        began = time.monotonic()
        answer = client.post("/v1/evaluations", json=request)
        assert time.monotonic() - began < 2
        assert answer.status_code == 202
        assert answer.headers["Retry-After"]
        found = client.get(answer.headers["Location"]).json()
        assert (found["id"], found["status"]) == (answer.json()["id"], "queued")
    assert until_ended(client, answer.json()["id"], 60)["status"] == "succeeded"


def test_waiting_holds_for_the_pregen_scores(client):
    """T04: inside N, 201 with scores."""
    answer = client.post(
        "/v1/evaluations", json=_request(_fresh(client)), headers={"Prefer": "wait=30"}
    )
    assert answer.status_code == 201
    assert answer.headers["Preference-Applied"] == "wait=30"
    scores = answer.json()["scores"]
    assert set(scores) == {
        "mean_max_normcount_prefix0",
        "perplexity",
        "mean_join_normcount_filter0",
    }
    assert scores["perplexity"]["family"] == "pregen"
    assert scores["perplexity"]["higher_is_better"] is False


@pytest.mark.long
def test_an_unchanged_evaluation_is_304_and_a_changed_one_has_a_new_tag(service, client):
    """T05: the tasks begin when somebody waits for them; who waits is told of the first change."""
    with ThreadPoolExecutor(1) as pool:
        with service.held():
            answer = client.post("/v1/evaluations", json=_request(_fresh(client)))
            address, tag = answer.headers["Location"], answer.headers["ETag"]
            assert not tag.startswith("W/")
            assert client.get(address, headers={"If-None-Match": tag}).status_code == 304
            waiting = pool.submit(_waited_for, service, address, tag)
            service.until_awaited(answer.json()["id"])
            began = time.monotonic()
        changed = waiting.result()
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    assert time.monotonic() - began < 25
    until_ended(client, answer.json()["id"], 60)
    last = client.get(address).headers["ETag"]
    same = client.get(address, headers={"If-None-Match": last})
    assert (same.status_code, same.content) == (304, b"")
    waited = client.get(address, headers={"If-None-Match": last, "Prefer": "wait=1"})
    assert waited.status_code == 304


def _waited_for(service, address, tag):
    with service.client() as client:
        return client.get(address, headers={"If-None-Match": tag, "Prefer": "wait=30"})


def _events(client, identity, **headers):
    with client.stream("GET", f"/v1/evaluations/{identity}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event, silences = {}, 0
        for line in answer.iter_lines():
            silences += line.startswith(":")
            assert silences < 4, "a minute of silence"
            if not line and event:
                interface.check_event(event)
                yield event
                event = {}
            elif line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value


@pytest.mark.long
def test_events_resume_without_gap_or_duplicate_and_end(client):
    """T06."""
    answer = client.post("/v1/evaluations", json=_request(_fresh(client)))
    identity = answer.json()["id"]
    first = list(itertools.islice(_events(client, identity), 2))
    rest = list(_events(client, identity, **{"Last-Event-ID": first[-1]["id"]}))
    numbers = [int(event["id"]) for event in first + rest]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert rest[-1]["event"] == "end"
    assert json.loads(rest[-1]["data"]) == {"status": "succeeded"}
    scores = [json.loads(event["data"]) for event in rest if event["event"] == "scores"]
    assert any("geomean_join_pplx_none" in found["scores"] for found in scores)


@pytest.mark.long
def test_who_has_heard_the_end_is_told_that_nothing_follows(service, client):
    """A browser comes back by itself until it is answered 204; an id of the future is no gap."""
    answer = client.post(
        "/v1/evaluations", json=_request(_fresh(client)), headers={"Prefer": "wait=30"}
    )
    identity = answer.json()["id"]
    until_ended(client, identity, 60)
    last = list(_events(client, identity))[-1]["id"]
    for heard in (last, "999999"):
        address = f"/v1/evaluations/{identity}/events"
        with client.stream("GET", address, headers={"Last-Event-ID": heard}) as stream:
            assert stream.status_code == 204
    for none_of_ours in ("x", "-1", "9" * 30):
        everything = _events(client, identity, **{"Last-Event-ID": none_of_ours})
        assert list(everything)[-1]["id"] == last
    with ThreadPoolExecutor(1) as pool:
        with service.held():
            fresh = client.post("/v1/evaluations", json=_request(_fresh(client))).json()["id"]
            heard = pool.submit(_all_after, service, fresh, "999999")
            service.until_awaited(fresh)
        assert heard.result()[-1]["event"] == "end"


def _all_after(service, identity, last):
    with service.client() as client:
        return list(_events(client, identity, **{"Last-Event-ID": last}))


@pytest.mark.long
def test_one_key_one_evaluation_however_often_it_is_sent(service, client):
    """T07: 100 parallel identical requests."""
    request, key = _request(_fresh(client)), {"Idempotency-Key": '"a key"'}

    def post(_):
        with service.client() as another:
            return another.post("/v1/evaluations", json=request, headers=key)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(post, range(100)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({a.json()["id"] for a in answers if a.status_code == 202}) == 1
    replayed = [a.headers.get("Idempotency-Replayed") for a in answers if a.status_code == 202]
    assert replayed.count(None) == 1  # the first
    assert set(replayed) == {None, "true"}
    other = client.post("/v1/evaluations", json={**request, "deadline": 99}, headers=key)
    assert other.status_code == 422


@pytest.mark.long
def test_different_requests_for_the_same_task_compute_it_once(service, client):
    """T08."""
    identity = _fresh(client)

    def post(number):
        with service.client() as another:
            request = _request(identity, labels={"number": str(number)})
            return another.post("/v1/evaluations", json=request).json()["id"]

    with ThreadPoolExecutor(10) as pool:
        submitted = list(pool.map(post, range(60)))
    ends = [until_ended(client, found, 60) for found in submitted]
    assert {end["status"] for end in ends} == {"succeeded"}
    assert len({json.dumps(end["scores"], sort_keys=True) for end in ends}) == 1
    with service.records.reading() as connection:
        counts = connection.execute(
            sa.select(attempts.c.task_key, sa.func.count()).group_by(attempts.c.task_key)
        ).all()
    assert all(count == 1 for _, count in counts), counts


@pytest.mark.long
def test_what_has_ended_keeps_its_scores_whatever_becomes_of_its_tasks(service, client):
    answer = client.post(
        "/v1/evaluations", json=_request(_fresh(client)), headers={"Prefer": "wait=30"}
    ).json()
    address = f"/v1/evaluations/{answer['id']}/pregen"
    before = client.get(address).json()
    assert len(before["scores"]) == 672
    with service.records.transaction() as connection:  # as when a damaged result runs again
        mine = sa.select(run_tasks.c.task_key).where(
            run_tasks.c.run_id == answer["id"], run_tasks.c.name == "pregen"
        )
        connection.execute(
            task_rows.update().where(task_rows.c.key.in_(mine)).values(status="failed")
        )
    assert client.get(address).json() == before


def _edited(token):
    for place in (0, len(token) // 2, len(token) - 1):
        yield token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]


@pytest.mark.long
def test_another_metric_costs_no_forward_pass(service, client):
    identity = _fresh(client)
    first = client.post("/v1/evaluations", json=_request(identity, postgen=["rouge_l"])).json()
    until_ended(client, first["id"], 60)
    before = _attempts(service)
    again = client.post("/v1/evaluations", json=_request(identity, postgen=["bleu"])).json()
    assert until_ended(client, again["id"], 60)["status"] == "succeeded"
    assert [task["name"] for task in again["tasks"] if not task["cached"]] == ["bleu"]
    assert _attempts(service) == before + 1


def _attempts(service):
    with service.records.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(attempts)).scalar_one()


@pytest.mark.long
def test_pages_neither_repeat_nor_skip_while_rows_arrive(client):
    """T09."""
    identity = _fresh(client)

    def post(number):
        labels = {"page": "yes", "number": str(number)}
        return client.post("/v1/evaluations", json=_request(identity, labels=labels)).json()["id"]

    before = [post(number) for number in range(7)]
    seen, cursor, page_token = [], None, None
    for number in itertools.count():
        query = {"label.page": "yes", "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/evaluations", params=query).json()
        seen += [item["id"] for item in page["items"]]
        post(100 + number)
        cursor = page["next"]
        page_token = cursor or page_token
        if cursor is None:
            break
    assert seen == before[::-1]
    for foreign in (
        "abc",
        "",
        "\0",
        run_lists.write_cursor("captions of ev_1", 1),
        *_edited(page_token),
    ):
        assert client.get("/v1/evaluations", params={"cursor": foreign}).status_code == 400
    query = {"label.number": "3", "label.page": "yes"}
    filtered = client.get("/v1/evaluations", params=query).json()["items"]
    assert [item["id"] for item in filtered] == [before[3]]


PROBLEMS = [
    ("GET", "/v1/nothing", None, {}, 404),
    ("GET", "/v1/evaluations/", None, {}, 404),
    ("GET", "/v1/evaluations/ev_absent", None, {}, 404),
    ("GET", "/v1/evaluations/%00", None, {}, 404),
    ("GET", "/v1/evaluations?status=finished", None, {}, 422),
    ("GET", "/v1/evaluations?lable.branch=main", None, {}, 422),
    ("GET", "/v1/evaluations?label.branch=%00", None, {}, 422),
    ("GET", "/v1/evaluations?limit=0", None, {}, 422),
    ("GET", "/v1/evaluations?limit=%205", None, {}, 422),
    ("GET", "/v1/evaluations?limit=1_0", None, {}, 422),
    ("GET", "/v1/datasets/%00", None, {}, 404),
    ("GET", "/v1/datasets/absent", None, {}, 404),
    ("GET", "/v1/datasets/tiny@v99", None, {}, 404),
    ("GET", f"/v1/checkpoints/sha256:{'0' * 64}", None, {}, 404),
    ("GET", "/v1/checkpoints/md5:1", None, {}, 422),
    ("DELETE", "/v1/metrics", None, {}, 405),
    ("POST", "/v1/evaluations", b"{", {}, 400),
    ("POST", "/v1/evaluations", b"\xff\xfe", {}, 400),
    ("POST", "/v1/evaluations", b"", {}, 400),
    ("POST", "/v1/evaluations", b"NaN", {}, 400),
    ("POST", "/v1/evaluations", b'{"dataset": "a/b", "dataset": "a/c"}', {}, 400),
    ("POST", "/v1/evaluations", b'{"labels": {"\\ud800": ""}}', {}, 400),
    ("POST", "/v1/evaluations", b"{}", {"Content-Type": "text/plain"}, 415),
    ("POST", "/v1/evaluations", b"{}", {"Content-Type": "application/json; charset=utf-16"}, 415),
    ("POST", "/v1/evaluations", b"null", {}, 422),
    ("POST", "/v1/evaluations", b'{"dataset": "tiny/test", "labels": {"": [1]}}', {}, 422),
    ("POST", "/v1/evaluations", b"{}", {}, 422),
    ("POST", "/v1/evaluations", b'{"dataset": "tiny/test", "surprise": 1}', {}, 422),
    ("POST", "/v1/evaluations", b'{"dataset": "tiny/test"}', {"Idempotency-Key": ""}, 422),
    ("PUT", f"/v1/checkpoints/sha256:{'0' * 64}", b"junk", {}, 422),
    ("PUT", "/v1/datasets/b%20ad", b"junk", {}, 422),
    ("PUT", "/v1/datasets/bad", b"junk", {}, 422),
]


def test_runs_are_listed_by_dataset_version_and_split(service, client):
    people = {f"{number}.jpg": ["w2 w3"] for number in range(3)}
    for name in ("two", "two", "twofold"):
        extra = ["w1"]
        content = bundle_of({**people, f"{next(SEEDS)}.jpg": ["w2"]}, training=extra)
        assert client.put(f"/v1/datasets/{name}", content=content).status_code == 201
    begun = {}
    for on in ("two@v1/test", "two@v1/train", "two@v2/test", "twofold@v1/test"):
        captions = [{"image": "seen0.jpg" if on.endswith("train") else "0.jpg", "caption": "w2"}]
        asked = {"dataset": on, "captions": captions, "postgen": ["bleu_1"], "subset": True}
        begun[client.post("/v1/evaluations", json=asked).json()["id"]] = on

    def listed(dataset):
        items = client.get("/v1/evaluations", params={"dataset": dataset}).json()["items"]
        return [begun[item["id"]] for item in items]

    assert listed("two") == ["two@v2/test", "two@v1/train", "two@v1/test"]
    assert listed("two@v1") == ["two@v1/train", "two@v1/test"]
    assert listed("two@v1/test") == ["two@v1/test"]
    assert listed("two/other") == []
    assert listed("two/test") == ["two@v2/test", "two@v1/test"]
    if service.records.engine.dialect.name == "sqlite":
        with statements.watched(service.records.engine) as found:
            listed("two/test")
        plans = [line for one in found for line in one.plan]
        assert any("ix_runs_split (team=? AND kind=? AND" in line for line in plans)
    answer = client.get("/v1/evaluations", params={"dataset": "two/"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/query/dataset")


@pytest.mark.long
@pytest.mark.parametrize(("method", "path", "body", "headers", "status"), PROBLEMS)
def test_every_error_is_a_problem_document(client, method, path, body, headers, status):
    """T02."""
    sent = {"Content-Type": "application/json", **headers}
    answer = client.request(method, path, content=body, headers=sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert {"type", "title", "status", "code", "request_id", "errors"} <= set(problem)
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    for leak in ("Traceback", "site-packages", "SELECT "):
        assert leak not in answer.text


@pytest.mark.parametrize("announced", [True, False])
def test_a_json_body_beyond_32_mb_is_refused(client, announced):
    blanks = [b" " * (1 << 20)] * 33
    sent = b"".join(blanks) if announced else iter(blanks)
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/evaluations", content=sent, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_json_that_is_nested_without_end_is_refused(client):
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/evaluations", content=b"[" * 100_000, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")


@pytest.mark.long
def test_a_method_that_is_not_allowed_names_all_that_are(client):
    """T01: on every path."""
    allowed = defaultdict(set)
    for method, path, _ in interface.operations():
        allowed[path].add(method)
    for path, methods in allowed.items():
        for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"} - methods:
            answer = client.request(method, re.sub(r"{\w+}", "a", path))
            assert answer.status_code == 405, (method, path)
            assert answer.headers["Allow"].split(", ") == sorted(methods)


def test_each_wrong_field_is_pointed_at_as_rfc_6901_says(client):
    request = {"captions": [{"image": 3}], "pregen": {}, "labels": {"a/~b": 3}, "decoding": "no"}
    errors = client.post("/v1/evaluations", json=request).json()["errors"]
    assert {error["pointer"] for error in errors} == {
        *("/captions/0/image", "/captions/0/caption", "/dataset", "/pregen"),
        *("/labels/a~1~0b", "/decoding"),
    }


def test_more_labels_than_an_evaluation_may_have_are_no_filter(client):
    """SQLite gives up at an expression a thousand deep."""
    query = {f"label.{number}": "x" for number in range(50)}
    assert client.get("/v1/evaluations", params=query).json()["items"] == []
    assert client.get("/v1/evaluations", params={**query, "label.x": ""}).status_code == 422


def test_captions_that_do_not_fit_are_pointed_at(client):
    """T46's requests: unknown, twice, missing."""
    captions = [{"image": name, "caption": "w2"} for name in ("0.jpg", "x.jpg", "0.jpg", "900")]
    request = {"captions": captions, "dataset": "tiny/test", "postgen": ["cider_d"]}
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 422
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert pointers == ["/captions/1/image", "/captions/2/image", "/captions/3/image"]
    missing = client.post("/v1/evaluations", json={**request, "captions": captions[:1]})
    assert "39 of 40 images have no caption" in missing.text


def test_nothing_of_a_refused_upload_is_stored(service, client):
    """T13: wrong digest, wrong length."""
    data = checkpoint(seed=77)
    wrong = client.put(f"/v1/checkpoints/sha256:{'1' * 64}", content=data)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "digest_mismatch")
    assert client.head(f"/v1/checkpoints/{digest(data)}").status_code == 404
    assert not service.leftovers()
    broken = data[: len(data) // 2]
    cut = client.put(f"/v1/checkpoints/{digest(broken)}", content=broken)
    assert (cut.status_code, cut.json()["code"]) == (422, "invalid_checkpoint")


@pytest.mark.parametrize("body", [checkpoint(seed=79), b""])
def test_another_body_is_refused_under_a_digest_that_is_stored(body, service, client):
    """As it is sent with an old $DIGEST in a shell: what is scored would be the old file."""
    data = checkpoint(seed=78)
    place = f"/v1/checkpoints/{upload(client, data)}"
    answer = client.put(place, content=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "digest_mismatch")
    assert answer.json()["detail"] == f"the body's SHA-256 is {digest(body)}, not {digest(data)}"
    assert client.put(place, content=data).status_code == 200
    assert client.head(f"/v1/checkpoints/{digest(body)}").status_code == 404
    assert not service.leftovers()


def test_a_client_that_hangs_up_leaves_nothing_behind(service):
    data = checkpoint(seed=78)

    def half():
        yield data[: len(data) // 2]
        raise ConnectionError

    with service.client() as client, pytest.raises(ConnectionError):
        client.put(f"/v1/checkpoints/{digest(data)}", content=half())
    until(lambda: not service.leftovers(), 5, "an empty uploads folder")


def test_requests_are_counted_by_route_and_not_by_path(client):
    client.get("/v1/evaluations/ev_absent")
    client.request("PROPFIND", "/v1/nothing")
    counts = client.get("/metrics").text
    about = 'method="GET",route="/v1/evaluations/{id}",status="404"'
    assert f"prescore_request_seconds_count{{{about}}}" in counts
    assert 'method="other",route="none"' in counts
    assert "ev_absent" not in counts


def test_at_debug_every_request_has_a_line_in_the_log_but_those_of_machines(service, client):
    """By its id; tests/trials/test_logs.py has what a process writes at its own level."""
    unlogged = [client.get(path).headers["X-Request-ID"] for path in ("/livez", "/metrics")]
    identity = client.get("/v1/datasets").headers["X-Request-ID"]

    def lines_of(name):
        return [line for line in service.log.read_text().splitlines() if name in line]

    (line,) = map(json.loads, until(lambda: lines_of(identity), 5, "a line about the request"))
    assert (line["level"], line["status"]) == ("debug", 200)
    assert not any(map(lines_of, unlogged))


def test_captions_that_were_sent_come_back_with_their_scores(client):
    captions = [{"image": f"{n}.jpg", "caption": f"w{n % 40 + 2} w3, w4"} for n in range(40)]
    request = {"captions": captions, "dataset": "tiny/test", "postgen": ["bleu", "cider_d"]}
    answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})
    assert answer.status_code == 201, answer.text
    assert set(answer.json()["scores"]) == {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"}
    address = f"/v1/evaluations/{answer.json()['id']}/captions"
    first = client.get(address, params={"limit": 25}).json()
    second = client.get(address, params={"limit": 25, "cursor": first["next"]}).json()
    items = first["items"] + second["items"]
    assert second["next"] is None
    assert [(item["image"], item["caption"]) for item in items] == [
        (sent["image"], sent["caption"]) for sent in captions
    ]
    mean = sum(item["scores"]["cider_d"] for item in items) / len(items)
    assert answer.json()["scores"]["cider_d"]["value"] == pytest.approx(mean)
    lines = client.get(address, headers={"Accept": "text/csv"}).text.splitlines()
    assert lines[0] == "image,caption,bleu_1,bleu_2,bleu_3,bleu_4,cider_d"
    assert len(lines) == 41
    coco = client.get(address, params={"format": "coco"}).json()
    assert coco[3] == {"image_id": 903, "caption": captions[3]["caption"]}
