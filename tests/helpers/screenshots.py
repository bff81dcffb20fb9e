"""Pictures of every view of the page, with figures of how it loads.

    PYTHONPATH=tests python -m helpers.screenshots --out FOLDER [--home HOME] [--data FOLDER]
        [--url URL] [--views home,leaderboard]

A service with the data of `helpers.gallery` is started in HOME, which is filled the first time;
with `--url`, a service that has the data already is used. Each view is taken wide and narrow, by
day and by night: NAME-wide-light.png. For each, printed: milliseconds until its content is there,
the sum of its layout shifts, kilobytes, requests, errors on the console.
"""

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

import prescore
from helpers import gallery, page_loads
from helpers.fleet import Fleet
from helpers.service_here import service_here

SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
TALLEST = 2400  # pixels of a picture
FILLED = "gallery"  # is there once a home has all its data


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of every view of the page.")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the pictures")
    parser.add_argument("--home", type=Path, help="a home that is kept; by default a new one")
    parser.add_argument("--data", type=Path, default=os.environ.get("PRESCORE_DATA"))
    parser.add_argument("--url", help="a service that has the data")
    parser.add_argument("--views", help="names with commas between; by default all")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if chosen.url is None:
            home = chosen.home or folder / "home"
            data = chosen.data and Path(chosen.data)
            client = stack.enter_context(serve_gallery(home, data))
        else:
            client = stack.enter_context(prescore.Client(chosen.url))
        empty = stack.enter_context(service_here(folder / "empty"))
        urls = {name: client.url + path for name, path in gallery.find_places(client).items()}
        urls |= {"docs": f"{client.url}/docs", "empty": empty.url}
        names = list(urls) if chosen.views is None else chosen.views.split(",")
        for name in names:
            if name not in urls:
                parser.error(f"--views: expected some of {', '.join(urls)}, found {name!r}")
        take_pictures({name: urls[name] for name in names}, chosen.out)


@contextlib.contextmanager
def serve_gallery(home: Path, data: Path | None) -> Iterator[prescore.Client]:
    """A service with the gallery's data, one evaluation running and one queued."""
    with Fleet(home) as fleet, prescore.Client(fleet.url) as client:
        if not (home / FILLED).exists():
            gallery.fill_service(client, data)
            (home / FILLED).touch()
        with gallery.pause_runs(fleet, client):
            yield client


def take_pictures(urls: Mapping[str, str], folder: Path) -> None:
    print(f"{'view':30}{'ms':>6}{'shift':>8}{'kB':>7}{'requests':>10}  errors")
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=os.environ.get("PRESCORE_TEST_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        for name, url in urls.items():
            for size in SIZES:
                _take_view(browser, url, folder, name, size)
        browser.close()


def _take_view(browser: Browser, url: str, folder: Path, name: str, size: str) -> None:
    width, height = SIZES[size]
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            errors.append(message.text)

    viewport = {"width": width, "height": height}
    with browser.new_context(viewport=viewport, color_scheme="light", locale="en-GB") as context:
        page = page_loads.open_watched(context)
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        figures = page_loads.await_content(page)
        told = f"{figures.milliseconds:6.0f}{figures.shifts:8.3f}{figures.bytes / 1000:7.0f}"
        told += f"{figures.requests:10}  {'; '.join(errors)[:300]}"
        print(f"{f'{name}-{size}':30}{told}", flush=True)
        _see_all(page)
        clip = {"x": 0, "y": 0, "width": width, "height": min(figures.height, TALLEST)}
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            path = folder / f"{name}-{size}-{scheme}.png"
            page.screenshot(path=path, full_page=True, clip=clip, animations="disabled")


def _see_all(page: Page) -> None:
    """Go through the view once, so that what is drawn only where it is seen is drawn."""
    page.evaluate(
        """async () => {
          for (let top = 0; top < document.documentElement.scrollHeight; top += innerHeight) {
            scrollTo(0, top);
            await new Promise((resolve) => setTimeout(resolve, 100));
          }
          scrollTo(0, 0);
        }"""
    )
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
