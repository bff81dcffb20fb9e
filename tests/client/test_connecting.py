"""The network, and what it does to a client: real sockets throughout."""

import pickle
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

import prescore
from prescore.http import answers, retries
from prescore.models import Evaluation, Pinned, Problem

SECRET = "sk-7f3a9c"


def test_the_environment_says_where_the_service_is_and_arguments_say_it_louder(monkeypatch):
    monkeypatch.setenv("PRESCORE_URL", "http://evaluator:80/prescore/")
    with prescore.Client() as client, prescore.Client("http://other") as other:
        assert client.url == "http://evaluator/prescore"
        assert other.url == "http://other"


def test_the_key_goes_with_every_request(service, monkeypatch):
    monkeypatch.setenv("PRESCORE_KEY", f"{SECRET}\n")
    with prescore.Client(service.url) as client:
        list(client.datasets())
    assert service.requests[0][2]["Authorization"] == f"Bearer {SECRET}"
    assert service.requests[0][2]["User-Agent"].startswith("prescore-client/")


@pytest.mark.parametrize(
    ("key", "hint"),
    [(None, "give a key by PRESCORE_KEY"), (SECRET, "may be mistyped, expired or revoked")],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_refusal_without_words_tells_what_may_be_wrong_with_the_key_and_not_the_key(
    service, quick, key, hint, method
):
    for each in ("GET", "HEAD"):  # which has no words, so that the client asks for some
        service.fault(each, "/v1/", status=401, body=b"")
    with (
        prescore.Client(service.url, key, patience=1) as client,
        pytest.raises(prescore.Refused, match=hint) as refused,
    ):
        list(client.datasets()) if method == "GET" else client.has_checkpoint("sha256:0")
    assert refused.value.status == 401
    assert service.seen("GET", "datasets" if method == "GET" else "/v1/me")
    for text in (repr(client), str(refused.value), repr(refused.value), repr(vars(client))):
        assert SECRET not in text


@pytest.mark.parametrize("key", [f"{SECRET}\nX-Other: 1", f"{SECRET} two", f"{SECRET}é"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key):
    with pytest.raises(prescore.InvalidArgument, match="visible ASCII") as error:
        prescore.Client("http://evaluator", key)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8000", "localhost:8000", "ftp://evaluator", "http://", "", "http://a:99999"),
        *(f"http://me:{SECRET}@evaluator", f"http://evaluator/?key={SECRET}", "http://a:b"),
        f"me:{SECRET}@evaluator",
    ],
)
def test_a_url_that_cannot_be_one_is_refused_at_once(url):
    with pytest.raises(prescore.InvalidArgument, match="expected a URL such as") as error:
        prescore.Client(url)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("url", ["http://evaluator:8000/v1", "https://evaluator/prescore/v1/"])
def test_a_url_with_the_version_in_it_is_told_to_leave_it_off(url):
    with pytest.raises(prescore.InvalidArgument, match="leave off /v1"):
        prescore.Client(url)


def test_where_nobody_listens_the_error_says_where_and_what_to_look_at():
    nowhere = "http://127.0.0.1:1"
    with (
        prescore.Client(nowhere, SECRET, patience=0) as client,
        pytest.raises(prescore.Unreachable) as error,
    ):
        client.evaluation("ev_1")
    for part in (nowhere, "refused", "prescore serve", "PRESCORE_URL", "proxy"):
        assert part in str(error.value)
    assert SECRET not in str(error.value) + repr(error.value)


@pytest.mark.parametrize(
    "how",
    [
        *({"status": status} for status in (429, 502, 503, 504)),
        *({"lose": "request"}, {"lose": "answer"}, {"cut_answer": True}),
    ],
    ids=str,
)
def test_an_answer_that_is_cut_off_or_may_be_another_in_a_moment_is_asked_for_again(
    service, client, how
):
    service.fault("GET", "/v1/datasets", times=3, **how)
    assert [str(each) for each in client.datasets()] == ["shapes@v1"]
    assert len(service.requests) == 4


def test_a_connection_that_was_closed_while_idle_is_no_error(service, client):
    list(client.datasets())
    assert "Authorization" not in service.requests[0][2]
    service.cut_all()
    assert [str(each) for each in client.datasets()] == ["shapes@v1"]


@pytest.mark.parametrize("status", [500, 501, 507])
def test_an_error_of_the_service_is_told_at_once(service, client, status):
    service.fault(
        "GET", "/v1/datasets", status=status, body={"title": "Broken", "request_id": "req_9"}
    )
    with pytest.raises(prescore.ServiceError, match=f"{status} Broken\n.*req_9"):
        list(client.datasets())
    assert len(service.requests) == 1


def test_patience_ends(service, quick):
    service.fault("GET", "/v1/datasets", status=503, times=10**6)
    begun = time.monotonic()
    with (
        prescore.Client(service.url, patience=0.3) as client,
        pytest.raises(prescore.ServiceError) as error,
    ):
        list(client.datasets())
    assert error.value.status == 503
    assert time.monotonic() - begun < 1
    assert 4 < len(service.requests) < 40


def test_pauses_grow_and_differ_from_client_to_client_and_are_as_long_as_the_service_says():
    pauses = []
    for _ in range(20):
        backoff = retries.Backoff(1000)
        error = prescore.Unreachable("http://a", "gone")
        pauses += [backoff.after(error) for _ in range(8)]
    firsts, lasts = pauses[::8], pauses[7::8]
    assert 0.1 <= min(firsts) <= max(firsts) <= 0.2
    assert 4 <= min(lasts) <= max(lasts) <= 8
    assert len(set(firsts)) > 10
    busy = prescore.ServiceError(Problem(status=503), 3.0)
    assert 3 <= retries.Backoff(1000).after(busy) < 4


def test_retry_after_beyond_our_patience_is_told_at_once(service, client):
    service.fault("GET", "/v1/datasets", status=429, headers={"Retry-After": "60"})
    begun = time.monotonic()
    with pytest.raises(prescore.Refused) as refused:
        list(client.datasets())
    assert time.monotonic() - begun < 1
    assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", None),
        ("soon", None),
        ("-1", None),
        ("7", 7),
        ("Thu, 01 Jan 1970 00:00:00 -0000", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(text, seconds):
    assert answers.read_retry_after(httpx.Response(503, headers={"Retry-After": text})) == seconds


def test_retry_after_a_date_is_the_time_until_then():
    text = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    found = answers.read_retry_after(httpx.Response(503, headers={"Retry-After": text}))
    assert found == pytest.approx(3600, abs=120)


def test_a_refusal_says_what_is_wrong_and_where(service, client):
    errors = [{"pointer": f"/captions/{n}/image", "detail": "unknown"} for n in range(25)]
    problem = {
        "type": "https://prescore/unknown-image",
        "title": "Unknown images",
        "status": 422,
        "code": "unknown_image",
        "detail": "25 of them",
        "request_id": "req_5",
        "errors": errors,
        "new_in_2027": True,
    }
    service.fault("GET", "/v1/datasets", status=422, body=problem)
    with pytest.raises(prescore.Refused) as caught:
        list(client.datasets())
    refused = caught.value
    assert (refused.status, refused.code, refused.title) == (422, "unknown_image", "Unknown images")
    assert (refused.type, refused.detail) == ("https://prescore/unknown-image", "25 of them")
    assert [one.pointer for one in refused.errors] == [one["pointer"] for one in errors]
    assert str(refused).startswith("422 Unknown images: 25 of them\n  /captions/0/image: unknown\n")
    assert str(refused).endswith("/captions/19/image: unknown\n  and 5 more\n  (request req_5)")
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((404, body) for body in (b"<html>Not here</html>", b"[1]", b"", b'{"status": "odd"}')),
        *((200, body) for body in (b"<html>Welcome</html>", b"", b"[]", b'{"items": [{}]}')),
    ],
)
def test_an_answer_of_something_else_is_not_taken_for_ours(service, client, status, body):
    service.fault("GET", "/v1/datasets", status=status, body=body)
    error = prescore.Refused if status == 404 else prescore.ServiceError
    with pytest.raises(error, match="a Prescore service"):
        list(client.datasets())


def test_a_redirect_is_not_followed_so_that_no_key_leaves(service):
    service.fault("GET", "/v1/datasets", status=307, headers={"Location": service.url + "/else"})
    with (
        prescore.Client(service.url, SECRET) as client,
        pytest.raises(prescore.ServiceError, match="redirect"),
    ):
        list(client.datasets())
    assert len(service.requests) == 1


@pytest.mark.parametrize("id_", ["", ".", ".."])
def test_an_id_that_is_none_is_refused(service, client, id_):
    with pytest.raises(prescore.InvalidArgument, match="expected a name or an id"):
        client.evaluation(id_)
    assert service.requests == []


@pytest.mark.parametrize("id_", ["../datasets", "a/b", "a?b=c", "a#b", "%2e%2e/x", "é"])
def test_an_id_leads_to_no_other_route(service, client, id_):
    with pytest.raises(prescore.Refused, match="no evaluation"):
        client.evaluation(id_)


EVALUATION = Evaluation(id="ev_1", status="running", dataset=Pinned(name="shapes"))


@pytest.mark.parametrize(
    "error",
    [
        prescore.InvalidArgument("no"),
        prescore.Unreachable("http://a", "gone"),
        prescore.Refused(Problem(status=404, title="Not Found"), 3.0),
        prescore.ServiceError(Problem(status=500)),
        prescore.TimedOut(EVALUATION, 5.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_survives_the_way_to_another_process(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert isinstance(copy, prescore.PrescoreClientError)
