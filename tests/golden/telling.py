"""Tells the story to a service, and keeps what it answers."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from golden.story import LEFT, READINGS, STEPS, Step
from helpers.fleet import CERTIFICATES, Fleet, Served, until

Exchange = dict[str, Any]  # a request and its answer: what the golden files hold
HEADERS = (
    *("content-type", "etag", "location", "retry-after", "preference-applied"),
    *("cache-control", "allow"),
)
END_SECONDS = 180
_ENDED = ("succeeded", "failed", "canceled")
_NAME = re.compile(r"<([^<>]+)\.(\w+)>")
_COUNTED = re.compile(r"prescore_(tasks|evaluations|attempts)")


def tell(
    fleet: Fleet, other: Fleet, files: Mapping[str, bytes]
) -> tuple[list[Exchange], list[Exchange]]:
    """What is posted, to `fleet`, and what is read at the end, from `other` on the same home."""
    story = _Story(files)
    with _started(fleet) as client:
        posts = [story.perform(client, step) for step in STEPS]
    with _started(other) as client:
        return posts, [story.perform(client, step) for step in READINGS]


@contextmanager
def _started(fleet: Fleet) -> Iterator[httpx.Client]:
    with fleet, client_of(fleet) as client:
        yield client


def client_of(service: Served) -> httpx.Client:
    return httpx.Client(base_url=service.url, timeout=60, verify=CERTIFICATES)


def request_of(exchange: Mapping[str, Any]) -> dict[str, Any]:
    """What a step asks, or what was asked: as httpx sends it, less a file's bytes."""
    request = {name: exchange[name] for name in ("method", "headers")}
    request["url"] = exchange["path"]
    if exchange.get("body") is not None:
        request["json"] = exchange["body"]
    if exchange.get("text") is not None:
        request["content"] = exchange["text"].encode()
    return request


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """Status, headers and body, as they are kept."""
    headers = {name: response.headers[name] for name in HEADERS if name in response.headers}
    return {"status": response.status_code, "headers": headers, "body": _body(response)}


def _body(response: httpx.Response) -> Any:
    kind = response.headers.get("content-type", "").split(";")[0]
    if not response.content:
        return None
    if kind.endswith(("/json", "+json")):
        return _without_request(response.json())
    if kind == "application/octet-stream":
        digest = hashlib.sha256(response.content).hexdigest()
        return {"bytes": len(response.content), "digest": f"sha256:{digest}"}
    if response.request.url.path == "/metrics":
        lines = sorted(line for line in response.text.splitlines() if _COUNTED.search(line))
        return "\n".join(lines)
    return response.text


def _without_request(body: Any) -> Any:
    """A problem names its request, each of which has another id."""
    if isinstance(body, dict) and "request_id" in body:
        return {**body, "request_id": "…"}
    return body


class _Story:
    """What the answers said, by the names of the steps."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._said: dict[str, dict[str, Any]] = {
            name: {"digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}
            for name, data in files.items()
        }

    def perform(self, client: httpx.Client, step: Step) -> Exchange:
        """An exchange; of a run's begin, no body: it is read at its end."""
        asked: Exchange = {
            "name": step.name,
            "method": step.method,
            "path": self._real(step.path),
            "headers": self._real(dict(step.headers)),
            "body": self._real(step.body),
            "text": step.text,
            "file": step.file,
        }
        asked = {name: value for name, value in asked.items() if value is not None}
        request = request_of(asked)
        if step.file is not None:
            request["content"] = self._files[step.file]
        response = client.request(**request)
        if step.settles:
            response = until(lambda: _settled(client, request), END_SECONDS, step.name)
        answer = answer_of(response)
        if step.method == "POST" and "location" in response.headers:
            place = response.headers["location"]
            self._said[step.name] = self._followed(client, step.name, place)
            del answer["body"]
        elif isinstance(answer["body"], dict):
            self._said[step.name] = answer["body"]
        return {**asked, "answer": answer}

    def _followed(self, client: httpx.Client, name: str, place: str) -> dict[str, Any]:
        if name == LEFT:
            until(lambda: _is_running(client.get(place).json(), "captions"), 60, "its beginning")
            assert client.post(f"{place}/cancel").status_code == httpx.codes.ACCEPTED
        response = until(lambda: _ended(client.get(place)), END_SECONDS, f"the end of {name}")
        tag = response.headers["etag"]
        last = int(tag.strip('"').rpartition(".")[2])
        return {**response.json(), "etag": tag, "last": str(last), "before": str(last - 1)}

    def _real(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NAME.sub(lambda found: self._said[found[1]][found[2]], value)
        if isinstance(value, dict):
            return {name: self._real(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._real(each) for each in value]
        return value


def _settled(client: httpx.Client, request: Mapping[str, Any]) -> httpx.Response | None:
    response = client.request(**request)
    return None if response.json()["under_way"] else response


def _ended(response: httpx.Response) -> httpx.Response | None:
    return response if response.json()["status"] in _ENDED else None


def _is_running(run: Mapping[str, Any], name: str) -> bool:
    return any(task["name"] == name and task["status"] == "running" for task in run["tasks"])
