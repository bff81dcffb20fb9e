"""JSON bodies: type, size and text are checked before a route reads them."""

import asyncio
from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.contract.errors import MalformedJson, UnsupportedMedia
from service.contract.formats import strict_json
from service.http.uploads import chunks

MAX_BYTES = 32 << 20


class JsonRoute(APIRoute):
    """A route whose body, if it has one, must be strict JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def judged(request: Request) -> Response:
            _check_type(request.headers.get("content-type", ""))
            data = b"".join([chunk async for chunk in chunks(request, MAX_BYTES)])
            return await handle(
                _ParsedRequest(request, data, await asyncio.to_thread(_parse, data))
            )

        return judged


class _ParsedRequest(Request):
    """Starlette's request with its body already read and parsed."""

    def __init__(self, request: Request, data: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body = data
        self._json = value


def _check_type(header: str) -> None:
    message = Message()
    message["content-type"] = header
    charset = message.get_content_charset("utf-8")
    kind = message.get_content_type() if header else "nothing"
    if kind != "application/json" or charset != "utf-8":
        raise UnsupportedMedia(
            f"expected a body of type application/json in UTF-8, found {header or 'no type'!r:.100}"
        )


def _parse(data: bytes) -> Any:
    try:
        return strict_json.parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedJson(f"expected UTF-8, found another byte at {error.start}") from None
    except strict_json.NotJson as error:
        raise MalformedJson(str(error), pointer=error.where or None) from None
