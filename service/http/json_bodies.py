"""JSON bodies: type, size, text and model are checked before a route reads them.

Bodies are parsed and validated in threads, and large ones one after another, so that a large body
neither delays other requests nor fills the memory of the process. Until then it waits in a file.
"""

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import nullcontext
from email.message import Message
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from prescore import foreign
from service.access.oidc.tokens import LONGEST_TOKEN
from service.contract import limits
from service.contract.errors import BodyTooLarge, InvalidRequest, MalformedJson, UnsupportedMedia
from service.contract.formats import strict_json
from service.http.loop_limits import LoopLimit
from service.http.uploads import read_chunks

_IN_MEMORY = 1 << 18  # bytes of a body that is not complete: there may be a thousand
_LARGE = 1 << 20  # bytes
# Large bodies wait for each other: one may take .3 GB until it is judged, and since Python runs one
# thread at a time, two at once are no quicker and keep all others waiting for twice as long.
_ONE = LoopLimit(1)


# of other bodies than those of `limits.BODY_BYTES`, by operation
_MOST_BYTES = {
    "make_job_key": 3 * LONGEST_TOKEN,  # JSON may write every character of a token as two
    "sign_in": 4096,
}


def make_reader(route: APIRoute) -> Callable[[Request], Awaitable[Request]]:
    """A function that reads the body of a request of this route. Its request has the model."""
    field = route.body_field
    assert field is not None
    fields = _captions_fields(field)
    most_bytes = _MOST_BYTES.get(route.operation_id or "", limits.BODY_BYTES)

    def judge(body: IO[bytes]) -> Any:
        body.seek(0)
        value = _read(body.read(), takes_captions=bool(fields))
        model, problems = field.validate(value, {}, loc=("body",))
        if problems and fields and (advice := recognize_caption_json(value, fields)):
            raise InvalidRequest(advice[1], [advice])
        if problems:
            raise RequestValidationError(problems, body=value)
        return model

    async def read(request: Request) -> Request:
        _check_type(request.headers.get("content-type", ""))
        _check_coding(request.headers.get("content-encoding", ""))
        with SpooledTemporaryFile(_IN_MEMORY) as body:
            async for chunk in read_chunks(request, most_bytes):
                await _write(body, chunk)
            async with _ONE if body.tell() > _LARGE else nullcontext():
                model = await asyncio.to_thread(judge, body)
        return _JudgedRequest(request, model)

    return read


def refuse_form(request: Request) -> None:
    """Refuse a body that is no JSON: a browser sends forms and plain text to any site without
    asking it.
    """
    if (kind := request.headers.get("content-type")) is not None:
        _check_type(kind)


async def _write(body: IO[bytes], chunk: bytes) -> None:
    if body.tell() + len(chunk) > _IN_MEMORY:
        await asyncio.to_thread(body.write, chunk)
    else:
        body.write(chunk)


class _JudgedRequest(Request):
    """Starlette's request with its body already read, parsed and validated.

    FastAPI validates the model that it is given once more: pydantic takes an instance as it is.
    """

    def __init__(self, request: Request, model: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body = b"{}"  # of which FastAPI asks only whether there is one
        self._json = model


def _check_type(header: str) -> None:
    message = Message()
    message["content-type"] = header
    charset = message.get_content_charset("utf-8")
    kind = message.get_content_type() if header else "nothing"
    if kind != "application/json" or charset != "utf-8":
        raise UnsupportedMedia(
            f"expected a body of type application/json in UTF-8, found {header or 'no type'!r:.100}"
        )


def _check_coding(header: str) -> None:
    """Refuse a coded body, for nothing is unpacked: a small body could become one of any size."""
    if header.strip().lower() not in ("", "identity"):
        raise UnsupportedMedia(
            f"expected a body as it is, found Content-Encoding {header!r:.100}: "
            "send the JSON unpacked, without this header"
        )


def _captions_fields(field: Any) -> Collection[str]:
    """The fields of a request that takes captions; none of any other."""
    fields = getattr(field.field_info.annotation, "model_fields", ())
    return [*fields] if "captions" in fields else []


def _read(data: bytes, *, takes_captions: bool) -> Any:
    try:
        return _parse(data)
    except MalformedJson:
        told = recognize_caption_text(data) if takes_captions else None
        if told is None:
            raise
        raise MalformedJson(told) from None


def _parse(data: bytes) -> Any:
    values = sum(map(data.count, (b",", b"[", b"{")))
    if values > limits.VALUES:
        raise BodyTooLarge(f"expected at most {limits.VALUES:,} values in a body, found {values:,}")
    try:
        return strict_json.parse_json(data.decode("utf-8"), most_keys=limits.KEYS)
    except UnicodeDecodeError as error:
        raise MalformedJson(f"expected UTF-8, found another byte at {error.start}") from None
    except strict_json.NotJson as error:
        raise MalformedJson(str(error), pointer=error.where or None) from None


_LIST = '"captions": [{"image": "1.jpg", "caption": "a dog"}, …]'
_REQUEST = f'{{"dataset": "NAME/SPLIT", {_LIST}}}'
_DO = "`prescore submit FILE --dataset NAME/SPLIT` reads such a file and sends the request"
_LINES = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"(image|image_id|caption)"\s*:')
_HEADING = re.compile(rb"(\xef\xbb\xbf)?[^\n]*\bcaption\b.*[,\t]|[^\n]*[,\t].*\bcaption\b")
_DICTIONARY = "captions by image, as pycocoevalcap has them"
_SEEN = 20  # entries that are looked at
_DATASET = {"annotations", "images"}


def recognize_caption_text(body: bytes) -> str | None:
    """The sentence for a body that is not JSON; None where it is no file with captions."""
    if _LINES.match(body):
        return _file_advice(_REQUEST, "captions in JSON Lines")
    head = body[: foreign.HEAD_BYTES]
    if _HEADING.match(head) and foreign.of_file(io.BytesIO(head), len(head)) is foreign.TEXT:
        return _file_advice(_REQUEST, "a table of captions (CSV)")
    return None


def recognize_caption_json(body: Any, fields: Collection[str]) -> tuple[str, str] | None:
    """The JSON pointer and the sentence for a body, or for what stands at its `captions`."""
    match body:
        case {"captions": {**given}} if _is_dictionary(given):
            return "/captions", _file_advice(_LIST, _DICTIONARY)
        case [{"caption": _}, *_]:
            return "", _file_advice(_REQUEST, "the list alone")
        case {"caption": _}:
            return "", _file_advice(_REQUEST, "a caption alone")
        case {**given} if not given.keys() & fields and _is_dictionary(given):
            return "", _file_advice(_REQUEST, _DICTIONARY)
    return None


def _is_dictionary(given: Mapping[Any, Any]) -> bool:
    """Tell whether the values are lists of captions, as texts or objects."""
    if not given or given.keys() & _DATASET:
        return False
    for _, said in zip(range(_SEEN), given.values(), strict=False):
        match said:
            case [str() | {"caption": _}, *_]:
                continue
        return False
    return True


def _file_advice(expected: str, found: str) -> str:
    return f"expected {expected}, found {found}: {_DO}"
