"""A JSON answer ends with a newline, as a line in a shell does; see `interface.check`, too."""

import httpx
import pytest

from helpers.submissions import submit

SAID = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(40)]


@pytest.fixture(scope="module")
def evaluation(service):
    with service.client() as client:
        return submit(client, captions=SAID, postgen=["bleu"], tokenizer="none")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/openapi.json", "/readyz", "/v1/limits", "/v1/datasets/tiny", "/v1/evaluations"),
        *("/v1/evaluations/{id}", "/v1/evaluations/{id}/captions?format=coco", "/v1/nothing"),
    ],
)
def test_every_json_answer_ends_with_one_newline(service, evaluation, path):
    answer = httpx.get(service.url + path.format(id=evaluation))
    assert answer.content.endswith((b"}\n", b"]\n"))
    assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)


def test_a_kept_answer_is_the_same_each_time_and_so_is_its_tag(client, evaluation):
    first, second = (client.get(f"/v1/evaluations/{evaluation}") for _ in range(2))
    assert first.content == second.content
    tag = {"If-None-Match": first.headers["ETag"]}
    unchanged = client.get(f"/v1/evaluations/{evaluation}", headers=tag)
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_head_tells_the_length_of_what_get_sends(service):
    asked, sent = (httpx.request(by, f"{service.url}/openapi.json") for by in ("HEAD", "GET"))
    assert (asked.content, asked.headers["content-length"]) == (b"", str(len(sent.content)))


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/v1/evaluations/{id}/captions", "text/csv"), ("/v1/datasets/tiny", "application/x-ndjson")],
)
def test_what_is_no_json_gets_none(client, evaluation, path, accept):
    answer = client.get(path.format(id=evaluation), headers={"Accept": accept})
    assert not answer.content.endswith(b"\n\n")
