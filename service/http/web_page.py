"""The page of Prescore: the files of `service/web`, for browsers.

Files have addresses with the digest of all of them, so that they are asked for once, and a new
version is another address. `/` answers programs with JSON, as it did before there was a page.
"""

import gzip
import re
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from posixpath import normpath

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

_FOLDER = Path(__file__).resolve().parents[1] / "web"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_WHERE = {"docs": "/docs", "openapi": "/openapi.json", "ready": "/readyz"}
_FIRST = ("main.js", "views/home.js")  # files whose imports are sent for at once
_LATER = ("plots/", "views/")  # but for these, which views ask for themselves
_IMPORT = re.compile(r'^(?:import|\} from)\b[^"\n]*"([./][^"]+)";', re.MULTILINE)
_KEPT = "public, max-age=31536000, immutable"
_HTML = re.compile(r"\btext/html\b")
_GZIP = re.compile(r"\bgzip\b")


class WebPage:
    """Routes of the page; its files are read once."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        app.add_route("/", self._entrance, include_in_schema=False)
        app.add_route("/ui/files/{digest}/{name:path}", self._file, include_in_schema=False)
        app.add_route("/ui/{place:path}", self._page, include_in_schema=False)
        app.add_route("/ui", self._page, include_in_schema=False)

    def _entrance(self, request: Request) -> Response:
        if _HTML.search(request.headers.get("accept", "")):
            return self._page(request)
        about = {"name": self._app.title, "version": self._app.version, **_WHERE}
        return JSONResponse(about, headers={"Vary": "Accept"})

    def _page(self, _: Request) -> Response:
        """Send the page, the same for every place: the page itself asks /v1 for its content."""
        headers = {
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-cache",
            "Vary": "Accept",
        }
        return HTMLResponse(self._html, headers=headers)

    def _file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None or request.path_params["digest"] != self._digest:
            return PlainTextResponse(
                "Not there: the page is of another version; load it anew.", 404
            )
        plain, packed, media_type = found
        headers = {"Cache-Control": _KEPT, "Vary": "Accept-Encoding"}
        if _GZIP.search(request.headers.get("accept-encoding", "")):
            return Response(
                packed, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"}
            )
        return Response(plain, media_type=media_type, headers=headers)

    @cached_property
    def _files(self) -> dict[str, tuple[bytes, bytes, str]]:
        """Each file's bytes, the same packed, and its type."""
        found = {}
        for path in sorted(_FOLDER.rglob("*")):
            if path.suffix in _TYPES:
                content = path.read_bytes()
                packed = gzip.compress(content, 9, mtime=0)
                found[path.relative_to(_FOLDER).as_posix()] = content, packed, _TYPES[path.suffix]
        return found

    @cached_property
    def _digest(self) -> str:
        whole = sha256()
        for name, (content, *_) in self._files.items():
            whole.update(f"{name} {len(content)} ".encode() + content)
        return whole.hexdigest()[:16]

    @property
    def place(self) -> str:
        """The address of the page's files, which changes with them."""
        return f"/ui/files/{self._digest}"

    @cached_property
    def _needed(self) -> set[str]:
        """Names of the scripts that the first view imports, also through others."""
        needed: set[str] = set()
        waiting = list(_FIRST)
        while waiting:
            name = waiting.pop()
            if name in needed:
                continue
            needed.add(name)
            text = self._files[name][0].decode()
            waiting += [normpath(f"{name}/../{place}") for place in _IMPORT.findall(text)]
        return needed

    @cached_property
    def _html(self) -> str:
        """With all that the first view needs at its head: of that nothing waits for a file."""
        files = self.place
        links = [
            f'<link rel="stylesheet" href="{files}/{name}">'
            if name.endswith(".css")
            else f'<link rel="modulepreload" href="{files}/{name}">'
            for name in self._files
            if name.endswith(".css") or (name in self._needed and not name.startswith(_LATER))
        ]
        text = (_FOLDER / "index.html").read_text(encoding="utf-8")
        return text.replace("{links}", "\n".join(links)).replace("{files}", files)
