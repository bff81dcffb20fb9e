"""A real browser: Debian's Chromium, driven by Playwright. What a page must never do is looked for
at the end of each test: errors on the console, breaches of its policy, requests to other hosts.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from helpers import page_runs
from helpers.fleet import bundle


class Browser:
    """Of all its windows it is noted what goes wrong in them."""

    def __init__(self, browser) -> None:
        self._browser = browser
        self.wrong: list[str] = []
        self.expected: set[str] = set()  # parts of what may go wrong in a test

    @contextmanager
    def new_context(self, **options):
        with self._browser.new_context(**options) as context:
            context.on("console", self._said)
            context.on("weberror", self._failed)
            context.on("request", self._asked)
            yield context

    @contextmanager
    def opened(self, url: str, **options):
        """A page of a window of its own, at this URL."""
        with self.new_context(**options) as context:
            page = context.new_page()
            page.goto(url)
            yield page

    def _said(self, message) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} {message.location.get('url')}")

    def _failed(self, error) -> None:
        self.wrong.append(f"error: {error.error}")

    def _asked(self, request) -> None:
        asked, shown = urlsplit(request.url), urlsplit(request.frame.url)
        if asked.scheme in ("http", "https") and shown.netloc not in ("", asked.netloc):
            self.wrong.append(f"a request to {request.url}")


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
        yield Browser(browser)
        browser.close()


@pytest.fixture(autouse=True)
def nothing_wrong(request):
    """No error on the console, no breach of the policy, no request to another host."""
    yield
    if "chromium" not in request.fixturenames:
        return
    browser = request.getfixturevalue("chromium")
    left = [each for each in browser.wrong if not any(part in each for part in browser.expected)]
    browser.wrong.clear()
    browser.expected.clear()
    assert left == []


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("page") / "home") as service:
        with service.client() as client:
            assert (
                client.put("/v1/datasets/tiny", content=bundle(page_runs.IMAGES)).status_code == 201
            )
        yield service


@pytest.fixture(scope="module")
def script(chromium, service):
    """A function that runs a script in which `load` gives the page's modules, by their names."""
    with chromium.new_context(locale="en-GB") as context:
        page = context.new_page()

        def run(own):
            page.goto(f"{service.url}/ui/nowhere")
            page.wait_for_selector("h1")
            return page.evaluate(f"""async () => {{
                const main = document.querySelector("script[type=module]").src;
                const load = (name) => import(main.replace("main.js", `${{name}}.js`));
                {own}
            }}""")

        yield run


class Window:
    def __init__(self, browser, context, url: str) -> None:
        self._url = url
        self.expected = browser.expected
        self.page = context.new_page()

    def open(self, place: str):
        """The page, at this place."""
        self.page.goto(self._url + place)
        self.page.wait_for_selector("h1")
        return self.page


@pytest.fixture
def window(chromium, service) -> Iterator[Window]:
    with chromium.new_context(locale="en-GB", timezone_id="UTC") as context:
        context.set_default_timeout(30_000)
        yield Window(chromium, context, service.url)


@pytest.fixture(scope="module")
def evaluated(service) -> dict[str, str]:
    with service.client() as client:
        return page_runs.evaluations(client)


@pytest.fixture(scope="module")
def training(service) -> list[str]:
    with service.client() as client:
        return page_runs.training(client)
