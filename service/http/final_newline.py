"""A newline at the end of every JSON answer, so that a shell's prompt does not stand behind it.

Outside the routes, since FastAPI, lists, kept answers and streams make JSON each in its own way.
Problems have theirs from `problems.document`: some are made outside of all that is added here.
"""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TYPE = "application/json"


class FinalNewline:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_json = False

        async def ended(message: Message) -> None:
            nonlocal is_json
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                is_json = headers.get("content-type") == _TYPE
                if is_json and "content-length" in headers:
                    headers["content-length"] = str(int(headers["content-length"]) + 1)
            elif is_json and not message.get("more_body", False):
                message["body"] = message.get("body", b"") + b"\n"
            await send(message)

        await self._app(scope, receive, ended)
