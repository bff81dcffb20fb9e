"""Every route, by its answers (T02-T09).

In process: what is looked at is what the application says and what the record keeps, and both are
those of `prescore serve`; requests come through a socket, many at a time where that matters. Tasks
are done before a submission is answered, unless the service is held meanwhile.
"""

import itertools
import json
import re
import time
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest
import sqlalchemy as sa

from helpers import interface, statements
from helpers.builders import model, tensors
from helpers.fleet import bundle, bundle_of, checkpoint, digest, until, until_ended, upload
from helpers.service_here import service_here
from helpers.submissions import evaluate, submit
from service.engine.tables import attempts, run_tasks, task_rows
from service.http.routers.request_parameters import matches_etag, read_wait_seconds
from service.runs import run_lists
from workers.inference import checkpoints

SEEDS = itertools.count(100)


def _request(identity, **more):
    return {"checkpoint": identity, "dataset": "tiny@v1/test", "postgen": [], **more}


def _fresh(client):
    """A checkpoint that nobody has scored before."""
    return upload(client, checkpoint(seed=next(SEEDS)))


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
        submitted = list(pool.map(post, range(20)))
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
    ("GET", "/v1/evaluations/ev_absent", None, {}, 404),
    ("GET", "/v1/evaluations?status=finished", None, {}, 422),
    ("GET", "/v1/evaluations?limit=%205", None, {}, 422),
    ("GET", "/v1/evaluations?limit=1_0", None, {}, 422),
    ("GET", "/v1/checkpoints/md5:1", None, {}, 422),
    ("DELETE", "/v1/metrics", None, {}, 405),
    ("POST", "/v1/evaluations", b"\xff\xfe", {}, 400),
    ("POST", "/v1/evaluations", b"", {}, 400),
    ("POST", "/v1/evaluations", b"NaN", {}, 400),
    ("POST", "/v1/evaluations", b'{"labels": {"\\ud800": ""}}', {}, 400),
    ("POST", "/v1/evaluations", b"{}", {"Content-Type": "application/json; charset=utf-16"}, 415),
    ("POST", "/v1/evaluations", b"null", {}, 422),
    ("POST", "/v1/evaluations", b'{"dataset": "tiny/test", "labels": {"": [1]}}', {}, 422),
    ("POST", "/v1/evaluations", b"{}", {}, 422),
    ("POST", "/v1/evaluations", b'{"dataset": "tiny/test"}', {"Idempotency-Key": ""}, 422),
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


@pytest.fixture
def evaluation(client):
    said = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(40)]
    return submit(client, captions=said, postgen=["bleu"], tokenizer="none")


def test_a_kept_answer_is_the_same_each_time_and_so_is_its_tag(client, evaluation):
    first, second = (client.get(f"/v1/evaluations/{evaluation}") for _ in range(2))
    assert first.content == second.content
    tag = {"If-None-Match": first.headers["ETag"]}
    unchanged = client.get(f"/v1/evaluations/{evaluation}", headers=tag)
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_head_tells_the_length_of_what_get_sends(service):
    for coding in ("identity", "gzip"):
        asked, sent = (
            httpx.request(by, f"{service.url}/openapi.json", headers={"Accept-Encoding": coding})
            for by in ("HEAD", "GET")
        )
        assert asked.content == b""
        assert asked.headers["content-length"] == sent.headers["content-length"]


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/v1/evaluations/{id}/captions", "text/csv"), ("/v1/datasets/tiny", "application/x-ndjson")],
)
def test_what_is_no_json_gets_none(client, evaluation, path, accept):
    answer = client.get(path.format(id=evaluation), headers={"Accept": accept})
    assert not answer.content.endswith(b"\n\n")


def test_answers_tell_the_page_where_there_is_one(service, tmp_path):
    pages = "https://scores.example.org"
    with service_here(tmp_path, pages=pages) as other:
        link = f'<{pages}/ui/>; rel="alternate"; type="text/html"'
        for path in ("/v1/evaluations", "/v1/limits", "/v1/nothing"):
            assert httpx.get(other.url + path).headers.get("Link") == link, path
            assert "Link" not in httpx.get(service.url + path).headers, path


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("wait=10", 10),
        ("respond-async, wait=5", 5),
        ("wait = 7; foo", 7),
        ('wait="3"', 3),
        ("wait=99999", 60),
        ("waiting=3", None),
        ("wait=-1", None),
        ("wait=", None),
    ],
)
def test_prefer_wait(header, seconds):
    assert read_wait_seconds(header) == seconds


@pytest.mark.parametrize(
    ("header", "same"),
    [
        (None, False),
        ('"a"', True),
        ('W/"a"', True),
        ('"b", "a"', True),
        ("*", True),
        ('"b"', False),
    ],
)
def test_if_none_match(header, same):
    assert matches_etag(header, '"a"') is same


def _read_raw(client, place, **headers):
    """The answer, and its bytes as they were sent."""
    with httpx.stream("GET", client.base_url.join(place), headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


def test_long_answers_are_compressed_for_those_that_ask(client):
    packed, sent = _read_raw(client, "/v1/metrics", **{"Accept-Encoding": "gzip"})
    plain, whole = _read_raw(client, "/v1/metrics", **{"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"].lower() == packed.headers["vary"].lower() == "accept-encoding"
    assert int(packed.headers["content-length"]) == len(sent) < len(whole) / 5
    assert zlib.decompress(sent, wbits=31) == whole


def test_short_answers_files_and_events_are_sent_as_they_are(client):
    run = submit(client, **_request(_fresh(client), postgen=["bleu"]))
    until_ended(client, run, 60)
    place = f"/v1/evaluations/{run}"
    for each in ("/livez", f"{place}/captions?format=columns", f"{place}/events"):
        answer, sent = _read_raw(client, each, **{"Accept-Encoding": "gzip"})
        assert answer.status_code == 200, each
        assert "content-encoding" not in answer.headers, each
        assert sent
