"""Requests of uploads in whatever order, right, wrong and cut off: the service answers as the model
says, and knows what it knows (T13).
"""

import contextlib
import itertools
import json
import socket
from collections import Counter
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
)

from fuzz.upload_model import WRONG, File, Model
from helpers import contract_files
from helpers.fleet import TUS, bundle_of, digest, tus_creation, tus_part, until
from helpers.service_here import ServiceHere

SIZES = (0, 1, 7, 23, 1000, 5000, 10**6)
_NUMBERS = itertools.count()
# Header fields that make a right request wrong, and the status that tells it.
SPOILED: dict[str, tuple[dict[str, str | None], int]] = {
    "no offset": ({"Upload-Offset": None}, 422),
    "a negative offset": ({"Upload-Offset": "-1"}, 422),
    "an offset that is no number": ({"Upload-Offset": "0x10"}, 422),
    "an offset of twenty digits": ({"Upload-Offset": "9" * 20}, 422),
    "an offset far behind": ({"Upload-Offset": "9" * 14}, 409),
    "another type": ({"Content-Type": "application/octet-stream"}, 415),
    "no type": ({"Content-Type": None}, 415),
    "another version": ({"Tus-Resumable": "0.2.2"}, 412),
    "no version": ({"Tus-Resumable": None}, 412),
}


def right() -> bytes:
    """A checkpoint that nobody has sent before."""
    return contract_files.checkpoint(metadata={"note": f"number {next(_NUMBERS)}"})


class Uploads(RuleBasedStateMachine):
    service: ServiceHere
    known: bytes  # a checkpoint that the service has
    uploads = Bundle("uploads")

    def __init__(self) -> None:
        super().__init__()
        self.http = httpx.Client(base_url=self.service.url, timeout=30)
        self.log_read, self.ended = 0, Counter[tuple[str, str]]()

    def teardown(self) -> None:
        for each in self.http.get("/v1/uploads").json()["items"]:
            self.http.delete(f"/v1/uploads/{each['id']}")
        self.http.close()
        assert not self.service.leftovers()

    @initialize(target=uploads)
    def nothing(self):
        return multiple()

    @rule(target=uploads, what=st.sampled_from(["known", "new", "wrong", "misnamed", "dataset"]))
    def begin(self, what: str):
        file, told = self._file(what)
        answer = self.http.post("/v1/uploads", headers=tus_creation(len(file.data), **told))
        assert answer.status_code == 201, answer.text
        return Model(answer.headers["Location"], file)

    def _file(self, what: str) -> tuple[File, dict[str, str]]:
        if what == "dataset":
            tar = bundle_of({f"{next(_NUMBERS)}.jpg": ["a dog", "two dogs"]})
            name = f"set-{next(_NUMBERS)}"
            return File(tar), {"kind": "dataset", "name": name, "digest": digest(tar)}
        data = {"known": self.known, "wrong": WRONG}.get(what) or right()
        named = digest(right() if what == "misnamed" else data)
        file = File(data, what != "misnamed", what == "known", f"/v1/checkpoints/{named}")
        return file, {"kind": "checkpoint", "digest": named}

    @rule(
        upload=uploads,
        astray=st.sampled_from([0, 0, 0, 0, 1, -1, 10**12]),
        size=st.sampled_from(SIZES),
        by_post=st.booleans(),
        chunked=st.booleans(),
    )
    def append(self, upload, astray, size, by_post, chunked):
        offset = max(0, upload.received + astray)
        content = upload.data[offset : offset + size]
        answer = self._sent(upload, content, tus_part(offset), by_post, chunked)
        was_open = upload.state == "open"
        expected = upload.appended(offset, len(content))
        assert answer.status_code == expected, (answer.text, upload.state, upload.received)
        if was_open and (expected == 204 or _code(answer) == "upload_offset"):
            assert answer.headers["Upload-Offset"] == str(upload.received)

    def _sent(
        self,
        upload: Model,
        content: bytes,
        headers: dict[str, str],
        by_post: bool = False,
        chunked: bool = False,
    ) -> httpx.Response:
        method = "POST" if by_post else "PATCH"
        if by_post:
            headers = {**headers, "X-HTTP-Method-Override": "PATCH"}
        body: Any = iter([content]) if chunked and content else content
        return self.http.request(method, upload.url, content=body, headers=headers)

    @rule(upload=uploads, size=st.sampled_from(SIZES[2:]), sent=st.integers(0, 5000))
    def be_cut_off(self, upload, size, sent):
        """What has come stays, in order and without gap; how much of it, HEAD tells."""
        offset = upload.received
        content = upload.data[offset : offset + size]
        if not content:
            return
        came = content[: sent % len(content)]
        self._cut("PATCH", upload.url, tus_part(offset), len(content), came)
        upload.cut += 1
        if upload.refusal(offset, len(content)) is None:
            answer = self.http.head(upload.url)
            if answer.status_code == 204:
                arrived = int(answer.headers["Upload-Offset"]) - offset
                assert 0 <= arrived <= len(came)
                assert not upload.arrived(arrived), "what is wrong was taken"
            else:
                assert answer.status_code == 410
                assert upload.arrived(len(came)), "what is right was refused"
        self.ask(upload, says_version=False)

    def _cut(self, method: str, url: str, headers: dict[str, str], size: int, came: bytes) -> None:
        """Announce a body of `size` bytes, send fewer, and close; returns when it was noticed."""
        before = self._ended(method, url)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"{method} {url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{lines}\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.service.port)) as connection:
            connection.sendall(head.encode() + came)
        until(lambda: self._ended(method, url) > before, 10, f"the end of {method} {url}")

    def _ended(self, method: str, path: str) -> int:
        """How many such requests have ended, by the log, of which only new lines are read."""
        with self.service.log.open(encoding="utf-8") as log:
            log.seek(self.log_read)
            for line in iter(log.readline, ""):
                if line.endswith("\n"):
                    self.log_read += len(line.encode())
                    found = json.loads(line)
                    self.ended[found.get("method"), found.get("path")] += 1
        return self.ended[method, path]

    @rule(upload=uploads, how=st.sampled_from(sorted(SPOILED)))
    def spoil(self, upload, how):
        """Whatever its header says, a wrong request changes nothing."""
        changed, expected = SPOILED[how]
        headers = {**tus_part(upload.received), **changed}
        headers = {name: value for name, value in headers.items() if value is not None}
        answer = self._sent(upload, b"x" * 9, headers)
        if upload.state == "open":
            assert answer.status_code == expected, answer.text
        assert 400 <= answer.status_code < 500
        self.ask(upload, says_version=True)

    @rule(
        what=st.sampled_from(["known", "new", "wrong", "misnamed"]),
        cut=st.none() | st.integers(0, 800),
        chunked=st.booleans(),
    )
    def put(self, what, cut, chunked):
        """In one request, by digest: all of it is stored, or nothing."""
        file, _ = self._file(what)
        assert file.place is not None
        if cut is not None:
            self._cut("PUT", file.place, {}, len(file.data), file.data[:cut])
            assert self.http.head(file.place).status_code == (200 if file.is_known else 404)
            return
        body: Any = iter([file.data[:100], file.data[100:]]) if chunked else file.data
        answer = self.http.put(file.place, content=body)
        is_right = file.is_right and file.data != WRONG
        expected = (200 if file.is_known else 201) if is_right else 422
        assert answer.status_code == expected, answer.text
        assert self.http.head(file.place).status_code == (200 if is_right else 404)

    @rule(upload=uploads, says_version=st.booleans())
    def ask(self, upload, says_version):
        answer = self.http.head(upload.url, headers=TUS if says_version else {})
        expected = {"open": 204, "complete": 204, "refused": 410, "deleted": 404}[upload.state]
        assert answer.status_code == expected
        if expected == 204:
            found = [answer.headers[name] for name in ("Upload-Offset", "Upload-Length")]
            assert found == [str(upload.received), str(upload.length)]

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
        if upload.state == "complete":
            self._check_stored(upload, found["location"])

    def _check_stored(self, upload: Model, location: str) -> None:
        assert upload.file.place in (None, location)
        assert self.http.get(location).status_code == 200
        for file in self.service.blob_files(digest(upload.data)):
            assert file.read_bytes() == upload.data


def _code(answer: httpx.Response) -> str | None:
    with contextlib.suppress(ValueError):
        return answer.json().get("code")
    return None
