"""The header fields of both protocols, read and written."""

import base64
import math
import re
import time
from collections.abc import Mapping
from email.utils import formatdate

from fastapi import Request
from pydantic import TypeAdapter, ValidationError

from service.contract import limits
from service.contract.api.texts import DatasetName, Digest
from service.contract.errors import InvalidRequest, OtherVersion, UnsupportedMedia
from service.http.entrance import bundles
from service.stored.unfinished.rows import Purpose, Unfinished

TUS = "1.0.0"
PART = "application/partial-upload"  # of the draft
TUS_PART = "application/offset+octet-stream"
KINDS = ("checkpoint", "columns", "dataset")
INTEROP = "8"  # the draft's version that has these fields: of drafts 08 to 12
_INTEGER = re.compile(r"\s*([0-9]{1,15})\s*(;.*)?")
_BOOLEAN = re.compile(r"\s*\?([01])\s*(;.*)?")
_LONGEST = 4096  # characters of Upload-Metadata


def speaks_tus(request: Request) -> bool:
    """OtherVersion for one that is not known here."""
    found = request.headers.get("tus-resumable")
    if found is None:
        return False
    if found.strip() != TUS:
        raise OtherVersion(f"expected Tus-Resumable: {TUS}, found {found!r:.60}")
    return True


def number(request: Request, name: str) -> int | None:
    """A whole number; None where there is none. As the draft wants it, what is no number counts as
    if it were not there.
    """
    found = _INTEGER.fullmatch(_single(request, name))
    return int(found[1]) if found else None


def flag(request: Request, name: str) -> bool | None:
    found = _BOOLEAN.fullmatch(_single(request, name))
    return found[1] == "1" if found else None


def _single(request: Request, name: str) -> str:
    found = request.headers.getlist(name)
    return found[0] if len(found) == 1 else ""


def announced(request: Request) -> int | None:
    """The bytes of this request's body, where it says so."""
    found = request.headers.get("content-length")
    return None if found is None else int(found)


def has_body(request: Request) -> bool:
    return bool(announced(request)) or "transfer-encoding" in request.headers


def check_type(request: Request, expected: str) -> None:
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != expected:
        raise UnsupportedMedia(
            f"expected a body of type {expected}, found {found or 'none'!r:.100}"
        )


def wrong(name: str, expected: str, found: object) -> InvalidRequest:
    detail = f"expected {expected}, found {found!r:.100}"
    return InvalidRequest(f"{name}: {detail}", [(f"/header/{name}", detail)])


def metadata(request: Request) -> dict[str, str]:
    """Upload-Metadata of tus: names, each with a text in base64."""
    text = request.headers.get("upload-metadata", "")
    if len(text) > _LONGEST:
        raise wrong("Upload-Metadata", f"at most {_LONGEST} characters", f"{len(text)} of them")
    found: dict[str, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            told = base64.b64decode(value.strip(), validate=True).decode()
        except ValueError:  # no base64, no UTF-8
            raise wrong("Upload-Metadata", f"UTF-8 in base64 as {name!r:.60}", value) from None
        if name in found:
            raise wrong("Upload-Metadata", "each name once", name)
        found[name] = told
    return found


def purpose(given: Mapping[str, str | None], place: str) -> Purpose:
    """What an upload becomes; `place`: where the request says so, for what is wrong."""
    kind = given.get("kind")
    if kind not in KINDS:
        raise _wrong(place, "kind", " or ".join(KINDS), kind)
    is_dataset = kind == "dataset"
    needed, other = ("name", None) if is_dataset else ("digest", "name")
    if not given.get(needed):
        raise _wrong(place, needed, f"one, since the upload is a {kind}", given.get(needed))
    if other is not None and given.get(other) is not None:
        raise _wrong(place, other, f"none, since the upload is a {kind}", given.get(other))
    digest = _checked(place, "digest", _DIGEST, given.get("digest"))
    name = _checked(place, "name", _NAME, given.get("name"))
    if name is not None:
        bundles.check_name(name)
    return Purpose(kind, digest, name)


_DIGEST: TypeAdapter[str] = TypeAdapter(Digest)
_NAME: TypeAdapter[str] = TypeAdapter(DatasetName)


def _checked(place: str, what: str, kind: TypeAdapter[str], value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        said = str(error.errors()[0]["ctx"]["error"]).partition(", found")[0]
        raise _wrong(place, what, said.removeprefix("expected "), value) from None


def _wrong(place: str, what: str, expected: str, found: object) -> InvalidRequest:
    said = "none" if found is None else repr(found)[:100]
    detail = f"expected {expected}, found {said}"
    return InvalidRequest(f"{what}: {detail}", [(f"{place}/{what}", detail)])


def state(upload: Unfinished, *, tus: bool) -> dict[str, str]:
    """How an answer to HEAD says where an upload stands."""
    found = {"Upload-Offset": str(upload.received), "Cache-Control": "no-store"}
    if upload.length is not None:
        found["Upload-Length"] = str(upload.length)
    if not tus:
        return {**found, "Upload-Complete": written(upload.complete), **limit(upload)}
    if upload.told:
        found["Upload-Metadata"] = upload.told
    return {**found, **expires(upload)}


def written(value: bool) -> str:  # noqa: FBT001  it is the field's value
    return "?1" if value else "?0"


def limit(upload: Unfinished | None = None) -> dict[str, str]:
    """What an upload may hold, and how long it is kept if nothing comes."""
    seconds = limits.UNFINISHED_SECONDS
    if upload is not None:
        seconds = max(0, math.floor(upload.expires_at - time.time()))
    return {"Upload-Limit": f"max-size={limits.UPLOAD_BYTES}, max-age={seconds}"}


def expires(upload: Unfinished) -> dict[str, str]:
    return {"Upload-Expires": formatdate(upload.expires_at, usegmt=True)}


def discovery() -> dict[str, str]:
    """What is spoken here, for OPTIONS."""
    return {
        "Accept-Patch": f"{PART}, {TUS_PART}",
        **limit(),
        "Upload-Draft-Interop-Version": INTEROP,
        "Tus-Resumable": TUS,
        "Tus-Version": TUS,
        "Tus-Extension": "creation,creation-with-upload,termination,expiration",
        "Tus-Max-Size": str(limits.UPLOAD_BYTES),
    }
