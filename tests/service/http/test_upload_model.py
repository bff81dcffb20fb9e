"""Uploads against a model of them: whatever is asked in whatever order, in both protocols, the
service answers as a few lines of Python say, and knows what they know (T13).

UPLOAD_MODEL_SECONDS=3600 python -m pytest tests/service/http/test_upload_model.py -s --all
"""

import base64
import contextlib
import os
import time
from dataclasses import dataclass

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)
from starlette.requests import Request

from fleet import checkpoint, digest
from service.contract.errors import InvalidRequest
from service.http.resumable import fields

SECONDS = float(os.environ.get("UPLOAD_MODEL_SECONDS", "600"))
RIGHT = checkpoint(seed=6000)
WRONG = b"\x10" + bytes(7) + b"not a header of it" * 100
JUDGED_AT = 24  # bytes of WRONG: its first eight say that the header has 16 more
TUS = {"Tus-Resumable": "1.0.0"}


@dataclass
class Model:
    """What an upload is, as the two standards say."""

    url: str
    data: bytes
    length: int | None
    received: int = 0
    state: str = "open"  # "complete", "refused", "deleted"

    def appended(self, offset: int, size: int, last: bool | None) -> int:
        """The status of an answer, after the change that it tells. `last`: None in tus."""
        is_again = last is None and size == 0 and offset == self.received
        if self.state == "complete" and is_again:
            return 204  # for who has not heard the answer to the last bytes
        ended = {"deleted": 404, "refused": 410, "complete": 409}
        if self.state in ended:
            return ended[self.state]
        if offset != self.received:
            return 409
        told = {self.length} - {None} | ({offset + size} if last else set())
        if len(told) > 1:
            return 422
        self.length = next(iter(told), None)
        if self.length is not None and offset + size > self.length:
            return 413
        self.received += size
        is_last = self.received == self.length if last is None else last
        if self.data == WRONG and (self.received >= JUDGED_AT or is_last):
            self.state = "refused"
            return 422
        if not is_last:
            return 204
        if self.received < len(self.data):
            self.state = "refused"
            return 422
        self.state = "complete"
        return 204 if last is None else 200  # it is stored already


class Uploads(RuleBasedStateMachine):
    url: str  # of the service
    uploads = Bundle("uploads")

    def __init__(self) -> None:
        super().__init__()
        self.http = httpx.Client(base_url=self.url, timeout=30)

    def teardown(self) -> None:
        for each in self.http.get("/v1/uploads").json()["items"]:
            self.http.delete(f"/v1/uploads/{each['id']}")
        self.http.close()

    @initialize(target=uploads)
    def nothing(self):
        return multiple()

    @rule(target=uploads, right=st.booleans(), tus=st.booleans(), told=st.booleans())
    def begin(self, right: bool, tus: bool, told: bool):
        data = RIGHT if right else WRONG
        length = len(data) if told or tus else None
        headers = {} if length is None else {"Upload-Length": str(length)}
        query = {"kind": "checkpoint", "digest": digest(data)}
        if tus:
            pairs = (f"{n} {base64.b64encode(v.encode()).decode()}" for n, v in query.items())
            headers |= {**TUS, "Upload-Metadata": ",".join(pairs)}
            answer = self.http.post("/v1/uploads", headers=headers)
        else:
            headers["Upload-Complete"] = "?0"
            answer = self.http.post("/v1/uploads", params=query, headers=headers)
        assert answer.status_code == 201, answer.text
        return Model(answer.headers["Location"], data, length)

    @rule(
        upload=uploads,
        astray=st.sampled_from([0, 0, 0, 0, 1, -1, 10**12]),
        size=st.sampled_from([0, 1, 7, 23, 1000, 5000, 10**6]),
        last=st.sampled_from([None, None, False, False, True]),
    )
    def append(self, upload, astray, size, last):
        offset = max(0, upload.received + astray)
        content = upload.data[offset : offset + size]
        headers = {"Upload-Offset": str(offset)}
        if last is None:
            headers |= {**TUS, "Content-Type": "application/offset+octet-stream"}
        else:
            headers |= {"Content-Type": "application/partial-upload"}
            headers["Upload-Complete"] = "?1" if last else "?0"
        answer = self.http.patch(upload.url, content=content, headers=headers)
        was_open = upload.state == "open"
        expected = upload.appended(offset, len(content), last)
        assert answer.status_code == expected, (answer.text, upload.state, upload.received)
        if was_open and (expected == 204 or answer.json().get("code") == "upload_offset"):
            assert answer.headers["Upload-Offset"] == str(upload.received)

    @rule(upload=uploads, tus=st.booleans())
    def ask(self, upload, tus):
        answer = self.http.head(upload.url, headers=TUS if tus else {})
        expected = {"open": 204, "complete": 204, "refused": 410, "deleted": 404}[upload.state]
        assert answer.status_code == expected
        if expected == 204:
            assert answer.headers["Upload-Offset"] == str(upload.received)
        if expected == 204 and not tus:
            said = "?1" if upload.state == "complete" else "?0"
            assert answer.headers["Upload-Complete"] == said

    @rule(upload=uploads)
    def give_up(self, upload):
        answer = self.http.delete(upload.url)
        assert answer.status_code == (404 if upload.state == "deleted" else 204)
        upload.state = "deleted"

    @rule(upload=uploads)
    def look(self, upload):
        answer = self.http.get(upload.url)
        if upload.state == "deleted":
            assert answer.status_code == 404
            return
        found = answer.json()
        assert (found["problem"] is not None) == (upload.state == "refused")
        assert (found["location"] is not None) == (upload.state == "complete")
        if upload.state == "open":
            assert (found["offset"], found["length"]) == (upload.received, upload.length)


@pytest.fixture
def machine(service, client):
    client.put(f"/v1/checkpoints/{digest(RIGHT)}", content=RIGHT)
    return type("UploadsHere", (Uploads,), {"url": service.url})


def _tried(machine, examples, steps, **more):
    given = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    run_state_machine_as_test(machine, settings=given)


def test_the_service_answers_as_the_model(service, machine):
    _tried(machine, 4, 10)
    assert not service.leftovers()


@pytest.mark.slow
def test_the_service_answers_as_the_model_for_long(service, machine):
    """What fails is kept among the examples of hypothesis, and tried first the next time."""
    until, rounds = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        _tried(machine, 50, 40, derandomize=False)
        rounds += 1
    print(f"T13 {rounds} rounds of 50 stories of up to 40 requests")
    assert not service.leftovers()


def _request(name, value):
    headers = [(name.lower().encode(), value.encode("latin-1", "replace"))]
    return Request({"type": "http", "headers": headers})


@given(st.text(max_size=40) | st.from_regex(r"\s*\??-?[0-9]{1,20}(;.*)?", fullmatch=True))
def test_a_field_is_a_value_of_its_kind_or_absent(text):
    number = fields.number(_request("Upload-Offset", text), "Upload-Offset")
    assert number is None or 0 <= number < 10**15
    assert fields.flag(_request("Upload-Complete", text), "Upload-Complete") in (None, True, False)


@given(st.text(max_size=200) | st.binary(max_size=50).map(lambda b: base64.b64encode(b).decode()))
def test_metadata_are_texts_or_refused(text):
    with contextlib.suppress(InvalidRequest):
        found = fields.metadata(_request("Upload-Metadata", f"kind {text}"))
        assert all(isinstance(value, str) for value in found.values())
