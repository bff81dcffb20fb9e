"""The page of Prescore: the files of `service/web`, for browsers.

Files have addresses with the digest of all of them, so that they are asked for once, and a new
version is another address. `/` answers programs with JSON, as it did before there was a page.
"""

import gzip
import json
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
_MAIN = "main.js"
_VIEW = re.compile(r'\["(/[^"]*)", .*import\("\./([^"]+)"\)')  # of main.js: a place, and its script
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

    async def _entrance(self, request: Request) -> Response:
        if _HTML.search(request.headers.get("accept", "")):
            return await self._page(request)
        about = {"name": self._app.title, "version": self._app.version, **_WHERE}
        return JSONResponse(about, headers={"Vary": "Accept"})

    async def _page(self, request: Request) -> Response:
        """Send the page: it asks /v1 for its content itself."""
        headers = {
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-cache",
            "Vary": "Accept",
        }
        place = request.url.path
        views = (name for pattern, name in self._patterns if pattern.fullmatch(place))
        return HTMLResponse(self._pages[next(views, _MAIN)], headers=headers)

    async def _file(self, request: Request) -> Response:
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
    def _views(self) -> dict[str, str]:
        """The script of the view at each place of the page."""
        return dict(_VIEW.findall(self._files[_MAIN][0].decode()))

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """Patterns of the places, each with the script of its view."""
        found = self._views.items()
        return [(re.compile(re.sub(r"{\w+}", "[^/]+", place)), view) for place, view in found]

    @cached_property
    def _pages(self) -> dict[str, str]:
        """The page by the script of its first view. At its head is all that this view needs: of
        that, nothing waits for another file.
        """
        text = (_FOLDER / "index.html").read_text(encoding="utf-8")
        text = text.replace("{needed}", json.dumps(self._needed)).replace("{files}", self.place)
        styles = [
            f'<link rel="stylesheet" href="{self.place}/{name}">'
            for name in self._files
            if name.endswith(".css")
        ]
        pages = {}
        for view in {_MAIN, *self._views.values()}:
            scripts = [
                f'<link rel="modulepreload" href="{self.place}/{name}">'
                for name in sorted(self._find_needed({_MAIN, view}))
            ]
            links = "\n".join([*styles, *scripts])
            pages[view] = text.replace("{links}", links)
        return pages

    @cached_property
    def _needed(self) -> dict[str, list[str]]:
        """The scripts of the view at each place, beside those of the frame."""
        frame = self._find_needed({_MAIN})
        return {
            place: sorted(self._find_needed({view}) - frame) for place, view in self._views.items()
        }

    def _find_needed(self, names: set[str]) -> set[str]:
        """Find the scripts that these import, also through others, and these."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                text = self._files[name][0].decode()
                waiting += [normpath(f"{name}/../{place}") for place in _IMPORT.findall(text)]
        return needed
