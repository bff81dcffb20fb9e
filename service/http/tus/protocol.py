"""tus 1.0: the header fields of its requests and answers."""

import base64
from email.utils import formatdate
from typing import Annotated

from fastapi import Header, Request
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.contract import limits
from service.contract.api.field_types import DatasetName, Digest
from service.contract.errors import InvalidRequest, UnsupportedVersion
from service.http import uploads
from service.stored.resumable_uploads import UnfinishedUpload, UploadPurpose

VERSION = "1.0.0"
PART = "application/offset+octet-stream"
PLACE = "/v1/uploads"
_KINDS = ("checkpoint", "columns", "dataset")
_STORING = ("create_upload", "append_upload")  # other requests may be made by hand
_OVERRIDDEN = ("PATCH", "HEAD", "DELETE")
_LARGEST = 10**15 - 1  # of numbers; what an upload may hold is refused as too large

SpokenVersion = Annotated[
    str | None,
    Header(alias="Tus-Resumable", description=f"`{VERSION}`; needed to begin and to append."),
]
UploadLength = Annotated[
    int, Header(alias="Upload-Length", ge=0, le=_LARGEST, description="Bytes of the whole file.")
]
UploadOffset = Annotated[
    int,
    Header(
        alias="Upload-Offset",
        ge=0,
        le=_LARGEST,
        description="Where the bytes belong: at the upload's end.",
    ),
]
UploadMetadata = Annotated[
    str,
    Header(
        alias="Upload-Metadata",
        max_length=4096,
        description="`kind` (`checkpoint`, `columns` or `dataset`), `digest` (`sha256:…`; where it "
        "is not known beforehand, left out) and, of a dataset, `name`, each with its value in "
        "base64.",
    ),
]


class TusRequests:
    """Middleware of requests for uploads: answers say the version, and a client that can send
    nothing but GET and POST names the method in `X-HTTP-Method-Override`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PLACE):
            await self._app(scope, receive, send)
            return

        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers["Tus-Resumable"] = VERSION
                if message["status"] == 412:
                    headers["Tus-Version"] = VERSION
            await send(message)

        method = Headers(scope=scope).get("x-http-method-override", "").upper()
        if scope["method"] == "POST" and method in _OVERRIDDEN:
            scope["method"] = method
        await self._app(scope, receive, send_with_version)


async def check_version(request: Request, version: SpokenVersion = None) -> None:
    """Refuse another version of tus, and its absence where bytes would be stored."""
    may_be_absent = version is None and request.scope["route"].operation_id not in _STORING
    if may_be_absent or request.method == "OPTIONS":  # which is for who does not know the version
        return
    if version is None or version.strip() != VERSION:
        found = "none" if version is None else repr(version)[:60]
        raise UnsupportedVersion(f"expected Tus-Resumable: {VERSION}, found {found}")


def has_body(request: Request) -> bool:
    return bool(read_length(request)) or "transfer-encoding" in request.headers


def read_length(request: Request) -> int | None:
    """The bytes of this request's body, where it says so."""
    found = request.headers.get("content-length")
    return None if found is None else int(found)


def read_metadata(text: str) -> dict[str, str]:
    """The texts of Upload-Metadata by their names."""
    texts: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            decoded = base64.b64decode(value.strip(), validate=True).decode()
        except ValueError:  # no base64, no UTF-8
            raise _make_refusal("", f"UTF-8 in base64 as {name!r:.60}", value) from None
        if name in texts:
            raise _make_refusal("", "each name once", name)
        texts[name] = decoded
    return texts


def read_purpose(metadata: str) -> UploadPurpose:
    """The purpose of an upload, as Upload-Metadata says it; other names in it mean nothing here."""
    texts = read_metadata(metadata)
    kind, digest, name = (texts.get(each) for each in ("kind", "digest", "name"))
    if kind not in _KINDS:
        raise _make_refusal("/kind", " or ".join(_KINDS), kind)
    if kind == "dataset" and not name:
        raise _make_refusal("/name", "one, since the upload is a dataset", name)
    if kind != "dataset" and name is not None:
        raise _make_refusal("/name", f"none, since the upload is a {kind}", name)
    if digest is not None:
        _check_value("/digest", _DIGEST, digest)
    if name is not None:
        _check_value("/name", _NAME, name)
        uploads.check_dataset_name(name)
    return UploadPurpose(kind, digest, name)


_DIGEST: TypeAdapter[str] = TypeAdapter(Digest)
_NAME: TypeAdapter[str] = TypeAdapter(DatasetName)


def _check_value(place: str, kind: TypeAdapter[str], value: str) -> None:
    try:
        kind.validate_python(value)
    except ValidationError as error:
        said = str(error.errors()[0]["ctx"]["error"]).partition(", found")[0]
        raise _make_refusal(place, said.removeprefix("expected "), value) from None


def _make_refusal(place: str, expected: str, found: str | None) -> InvalidRequest:
    """`place`: in Upload-Metadata, as a JSON pointer."""
    detail = f"expected {expected}, found {'none' if found is None else repr(found)[:100]}"
    field = f"Upload-Metadata{place}"
    return InvalidRequest(f"{field}: {detail}", [(f"/header/{field}", detail)])


def describe_state(upload: UnfinishedUpload) -> dict[str, str]:
    """The fields that say where an upload stands, and what it became."""
    until = formatdate(upload.expires_at, usegmt=True)
    place = {} if upload.location is None else {"Content-Location": upload.location}
    return {"Upload-Offset": str(upload.offset), "Upload-Expires": until, **place}


def describe_protocol() -> dict[str, str]:
    """The fields that say what is spoken here."""
    return {
        "Accept-Patch": PART,
        "Tus-Version": VERSION,
        "Tus-Extension": "creation,creation-with-upload,termination,expiration",
        "Tus-Max-Size": str(limits.UPLOAD_BYTES),
    }
