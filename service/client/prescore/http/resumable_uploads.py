"""Resumable uploads of large files: in parts to the object store itself, where the service offers
that, else by tus 1.0 to the service.

The service says which bytes it keeps for certain, and gets those after them. An upload that an
earlier process has begun is found by the file's digest, from another machine too.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prescore.errors import InvalidArgument, PrescoreClientError, Refused
from prescore.files.bodies import Body
from prescore.http import answers, retries, upload_parts
from prescore.http.answers import Reply
from prescore.http.transport import HttpRequest, Transport, quote_segment
from prescore.models import Problem
from prescore.models.uploads import Upload, UploadPage

LARGE_BYTES = 64 << 20  # smaller files are sent again from the start: that costs seconds
ATTEMPTS = 200  # of one upload, however far each has come
STORE_SECONDS = 120.0  # the service checks and stores the file before it answers
_LOOKS = 8  # at an upload that another process may be sending, or may have left a moment ago
_LOOK_SECONDS = 2.0
_STORING_LOOKS = 700
_PLACE = "/v1/uploads"
_TUS = {"Tus-Resumable": "1.0.0"}
_OF_UPLOAD = re.compile(r"/v1/uploads/([A-Za-z0-9_-]{1,100})")
_OF_RESULT = re.compile(r"/v1/(checkpoints|columns|datasets)/[A-Za-z0-9._@:-]{1,200}")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class UploadTarget:
    """The object that a file becomes: a checkpoint, columns, or a version of the dataset `name`."""

    kind: str
    digest: str
    name: str | None = None

    @property
    def metadata(self) -> str:
        """The field Upload-Metadata: names, each with a text in base64."""
        texts = {"kind": self.kind, "digest": self.digest}
        if self.name is not None:
            texts["name"] = self.name
        coded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        return ",".join(f"{name} {code}" for name, code in coded.items())


def store_file(
    transport: Transport,
    target: UploadTarget,
    body: Body,
    progress: Progress | None,
    whole: HttpRequest,
) -> Reply:
    """The answer that describes what the file became. `whole`: sends it to a service of a version
    that cannot resume.
    """
    try:
        place = _find_upload(transport, target, body)
        place = place or _begin_upload(transport, target, body)
    except Refused as error:
        if error.status in (404, 405):
            return transport.send(whole)
        raise
    way = _ResumeAttempts(transport.address.patience)
    while True:
        try:
            if not upload_parts.send_parts(transport, place, body, progress or _ignore_progress):
                _send_rest(transport, place, body, progress, way)
            return _await_result(transport, place)
        except PrescoreClientError as error:
            if not (retries.may_pass(error) or _may_be_resumed(error)):
                raise
            wait = way.after(error)
            is_gone = isinstance(error, Refused) and error.status == 404
        transport.sleep(wait)
        if is_gone:
            place = _begin_upload(transport, target, body)


def _may_be_resumed(error: PrescoreClientError) -> bool:
    """Tell if an upload may go on. 409: bytes lack, or another took over; 404: it was deleted."""
    return isinstance(error, Refused) and error.status in (404, 408, 409)


class _ResumeAttempts:
    """Attempts to resume an upload. Patience begins anew whenever it has more bytes."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._backoff = retries.Backoff(self._patience)
        self._left = ATTEMPTS
        self._offset = -1

    def at(self, offset: int) -> None:
        if offset > self._offset:
            self._backoff = retries.Backoff(self._patience)
        self._offset = offset

    def after(self, error: PrescoreClientError) -> float:
        self._left -= 1
        if self._left <= 0:
            raise error
        return self._backoff.after(error)


def _find_upload(transport: Transport, target: UploadTarget, body: Body) -> str | None:
    """The place of an unfinished upload of these bytes that nobody sends just now."""
    offsets: dict[str, int] = {}
    for _ in range(_LOOKS):
        request = HttpRequest("GET", _PLACE, params={"digest": target.digest})
        page = transport.send(request).parsed(UploadPage)
        same = [each for each in page.items if _is_same(each, target, body)]
        idle = next((each for each in same if not each.active), None)
        if idle is not None:
            return f"{_PLACE}/{quote_segment(idle.id)}"
        # A process that has just ended may look as if it were still sending.
        if all(each.offset > offsets.get(each.id, each.offset) for each in same):
            return None
        offsets = {each.id: each.offset for each in same}
        transport.sleep(_LOOK_SECONDS)
    return None


def _is_same(upload: Upload, target: UploadTarget, body: Body) -> bool:
    is_alike = (upload.kind, upload.name) == (target.kind, target.name)
    return is_alike and upload.length == body.size and not upload.complete


def _begin_upload(transport: Transport, target: UploadTarget, body: Body) -> str:
    headers = {**_TUS, "Upload-Length": str(body.size), "Upload-Metadata": target.metadata}
    request = HttpRequest("POST", _PLACE, headers=headers)
    answer = transport.send(request)
    location = _OF_UPLOAD.search(answer.headers.get("Location", ""))
    if location is None:
        raise answers.build_foreign_error(transport.url, "expected the Location of an upload")
    return f"{_PLACE}/{location[1]}"


def _send_rest(
    transport: Transport, place: str, body: Body, progress: Progress | None, way: _ResumeAttempts
) -> None:
    """Send what the service does not have yet."""
    try:
        state = transport.send_once(HttpRequest("HEAD", place, headers=_TUS))
    except Refused as error:
        if error.status == 410:
            _await_result(transport, place)
        raise
    offset = _read_offset(transport, state, body)
    way.at(offset)
    headers = {
        **_TUS,
        "Content-Type": "application/offset+octet-stream",
        "Content-Length": str(body.size - offset),
        "Upload-Offset": str(offset),
    }
    rest = HttpRequest(
        "PATCH",
        place,
        headers=headers,
        body=lambda: report_chunks(body, progress, offset),
        hold=STORE_SECONDS,
    )
    transport.send_once(rest)


def _read_offset(transport: Transport, state: Reply, body: Body) -> int:
    text = state.headers.get("Upload-Offset", "")
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) > body.size:
        raise answers.build_foreign_error(
            transport.url, f"expected an Upload-Offset, found {text!r:.60}"
        )
    return int(text)


def _await_result(transport: Transport, place: str) -> Reply:
    """The answer about what an upload became, once that is stored; raises why it was refused."""
    for _ in range(_STORING_LOOKS):
        answer = transport.send(HttpRequest("GET", place))
        state = answer.parsed(Upload)
        if state.problem is not None:
            raise Refused(Problem(**state.problem.model_dump()))
        if state.location is not None:
            break
        transport.sleep(1.0)
    if state.location is None or not _OF_RESULT.fullmatch(state.location):
        raise answers.build_foreign_error(transport.url, "expected to hear what the upload became")
    return transport.send(HttpRequest("GET", state.location))


def report_chunks(body: Body, progress: Progress | None, offset: int = 0) -> Iterator[bytes]:
    """The bytes of a body from an offset on; `progress` hears of each chunk that was sent."""
    report = progress or _ignore_progress
    sent = offset
    report(sent, body.size)
    for chunk in body.chunks(offset):
        yield chunk
        sent += len(chunk)
        report(sent, body.size)
    if sent != body.size:
        raise InvalidArgument("the file changed while it was sent")


def _ignore_progress(done: int, total: int) -> None:
    pass
