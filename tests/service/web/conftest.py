"""A real browser: Debian's Chromium, driven by Playwright. What a page must never do is looked for
at the end of each test: errors on the console, breaches of its policy, requests to other hosts.
"""

import os
import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import page_runs
from fleet import bundle


@pytest.fixture(scope="module")
def chromium():
    """Of a module: as long as it is there, this thread has an event loop that others trip over."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright: the extra `browser` has it"
    )
    path = os.environ.get("PRESCORE_TEST_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium: Debian's package `chromium`, or PRESCORE_TEST_CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("page") / "home") as service:
        with service.client() as client:
            assert (
                client.put("/v1/datasets/tiny", content=bundle(page_runs.IMAGES)).status_code == 201
            )
        yield service


class Watched:
    """A browser's window, and what went wrong in it."""

    def __init__(self, context, url: str) -> None:
        self.url = url
        self.wrong: list[str] = []
        self.expected: set[str] = set()  # parts of messages
        self.page = context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} {message.location.get('url')}")

    def _asked(self, request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.wrong.append(f"a request to {request.url}")

    def open(self, place: str) -> None:
        self.page.goto(self.url + place)
        self.page.wait_for_selector("h1")

    def check(self) -> None:
        left = [each for each in self.wrong if not any(part in each for part in self.expected)]
        assert left == []


@pytest.fixture
def window(chromium, service) -> Iterator[Watched]:
    with chromium.new_context(locale="en-GB", timezone_id="UTC") as context:
        context.set_default_timeout(30_000)
        watched = Watched(context, service.url)
        yield watched
        watched.check()


@pytest.fixture(scope="module")
def evaluated(service) -> dict[str, str]:
    with service.client() as client:
        return page_runs.evaluations(client)


@pytest.fixture(scope="module")
def training(service) -> list[str]:
    with service.client() as client:
        return page_runs.training(client)
