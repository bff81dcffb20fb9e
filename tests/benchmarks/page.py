"""How fast the page is in a browser, on a service with 10,000 evaluations. Prints; judges nothing.

    python tests/benchmarks/page.py [--evaluations 10000]

The service runs in its own processes; the evaluations are copies (`tests/helpers/seeding.py`).
Promised on two cores that do nothing else: the first view within 300 ms with nothing kept, the next
within 150; a board of 10,000 open within 400; an event on the screen within 300; scripts and
styles of at most 60 kB, packed, in at most 30 requests.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from playwright.sync_api import sync_playwright

from helpers import page_runs, seeding
from helpers.fleet import Fleet, bundle, until_ended

TURNS = 7
QUIET = 1_500  # milliseconds in which a new window of the browser loads what is its own
BOARD = "/ui/datasets/tiny/test"
# What the page has painted, asked of the browser itself: Playwright's own waiting takes part of it.
WATCH = """(selector) => new Promise((resolve) => {
  const look = () => document.querySelector(selector) ? resolve(performance.now())
    : requestAnimationFrame(look);
  look();
})"""
FOLLOW = """([place, selector]) => new Promise((resolve) => {
  const began = performance.now();
  document.querySelector(`a[href="${place}"]`).click();
  const look = () => document.querySelector(selector) ? resolve(performance.now() - began)
    : requestAnimationFrame(look);
  look();
})"""
TASKS = """() => {
  window.tasks = [];
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((e) => e.duration)))
    .observe({ type: "longtask" });
}"""
SCROLL = """() => new Promise((resolve) => {
  const frame = document.querySelector(".windowed");
  const rows = () => Number(frame.querySelector("table").getAttribute("aria-rowcount"));
  const step = () => {
    scrollBy(0, 900);
    const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    if (isEnd && rows() > 0) resolve(rows() - 1);
    else requestAnimationFrame(step);
  };
  step();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=10_000)
    many = parser.parse_args().evaluations
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder) / "home").start()
        try:
            _fill(fleet, many)
            with sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=shutil.which("chromium"),
                    args=["--no-sandbox", "--disable-dev-shm-usage"],
                )
                _measure(browser, fleet)
        finally:
            fleet.stop()


def _fill(fleet: Fleet, many: int) -> None:
    with fleet.client() as client:
        assert client.put("/v1/datasets/tiny", content=bundle(page_runs.IMAGES)).status_code == 201
        for each in page_runs.training(client):
            assert until_ended(client, each, 120)["status"] == "succeeded"
    seeding.multiply(fleet.records, many // 3 + 1, at=61)  # of three evaluations


def _measure(browser, fleet: Fleet) -> None:
    first, following, board, sizes = [], [], [], []
    for _ in range(TURNS):
        with browser.new_context() as context:
            page, files = _open_quiet(context), _Files()
            page.on("response", files.heard)
            page.goto(fleet.url)
            first.append(page.evaluate(WATCH, "main tbody a.main"))
            page.wait_for_selector("[data-live=true]")
            sizes.append((len(files.all), files.packed))
            following.append(
                page.evaluate(FOLLOW, ["/ui/now", "[aria-label='Task queues'] tbody tr"])
            )
        with browser.new_context() as context:
            page = _open_quiet(context)
            page.goto(fleet.url + BOARD)
            board.append(page.evaluate(WATCH, ".windowed a.main"))
    _print("the first view, nothing kept", first)
    _print("the next view", following)
    _print("a board, nothing kept", board)
    print(f"{max(sizes)[0]} requests at most; scripts and styles {max(sizes)[1] / 1000:.1f} kB")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(fleet.url + BOARD)
        page.wait_for_selector(".windowed a.main")
        page.evaluate(TASKS)
        began = time.perf_counter()
        rows = page.evaluate(SCROLL)
        seconds = time.perf_counter() - began
        tasks = page.evaluate("window.tasks")
        shown = page.locator(".windowed tbody tr").count()
    print(f"scrolled through {rows} rows in {seconds:.1f} s; {shown} rows exist at the end")
    print(f"tasks over 50 ms: {len(tasks)}; the longest {max(tasks, default=0):.0f} ms")
    _print("an event until it is on the screen", _events(browser, fleet))


class _Files:
    """What a page was answered with."""

    def __init__(self) -> None:
        self.all = []

    def heard(self, answer) -> None:
        self.all.append(answer)

    @property
    def packed(self) -> int:
        own = [each for each in self.all if "/ui/files/" in each.url]
        return sum(int(each.headers.get("content-length", 0)) for each in own)


def _events(browser, fleet: Fleet) -> list[float]:
    """From the answer to a change until the page shows it, of an evaluation that has just ended."""
    found = []
    with browser.new_context() as context, fleet.client() as client:
        page = context.new_page()
        shown = page_runs.submitted(client)
        until_ended(client, shown, 60)
        page.goto(f"{fleet.url}/ui/evaluations/{shown}")
        page.wait_for_selector("[data-live=true]")
        for turn in range(TURNS):
            told = {"note": f"turn {turn}"}
            assert client.patch(f"/v1/evaluations/{shown}", json=told).status_code == 200
            found.append(_until(page, f"dd:text-is('turn {turn}')"))
    return found


def _until(page, selector: str) -> float:
    began = time.perf_counter()
    page.wait_for_selector(selector)
    return (time.perf_counter() - began) * 1000


def _open_quiet(context):
    page = context.new_page()
    page.wait_for_timeout(QUIET)
    return page


def _print(name: str, found: list[float]) -> None:
    print(f"{name}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")


if __name__ == "__main__":
    main()
