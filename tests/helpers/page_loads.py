"""Figures of how a page loads in a browser: when its content is there, and how far it moved."""

from dataclasses import dataclass

from playwright.sync_api import BrowserContext, Page

# From a page's beginning: its layout shifts, and since when nothing is missing.
_WATCH = """
performance.setResourceTimingBufferSize(1000);
window.shifts = 0;
window.complete = null;
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifts += each.value;
}).observe({ type: "layout-shift", buffered: true });
const look = () => {
  const isThere = document.querySelector("h1, h2") && !document.querySelector("[aria-busy=true]")
    && [...document.images].every((each) => each.complete || each.loading === "lazy")
    && document.fonts.status === "loaded";
  window.complete = isThere ? (window.complete ?? performance.now()) : null;
  requestAnimationFrame(look);
};
look();
"""
_QUIET = 500  # milliseconds: what is complete for so long stays so
_IS_QUIET = f"() => window.complete && performance.now() - window.complete > {_QUIET}"
_FIGURES = """() => {
  const entries = [...performance.getEntriesByType("navigation"),
                   ...performance.getEntriesByType("resource")];
  const bytes = entries.reduce((sum, each) => sum + each.transferSize, 0);
  const height = document.documentElement.scrollHeight;
  return [window.complete, window.shifts, bytes, entries.length, height];
}"""


@dataclass(frozen=True)
class PageFigures:
    milliseconds: float  # from the navigation to the content
    shifts: float  # the sum of the layout shifts that no input caused
    bytes: int
    requests: int
    height: int  # pixels


def open_watched(context: BrowserContext) -> Page:
    """A page that is watched from each navigation on."""
    page = context.new_page()
    page.add_init_script(_WATCH)
    return page


def await_content(page: Page, seconds: float = 30) -> PageFigures:
    """The figures of a watched page, once it is not busy, and has its fonts and pictures."""
    page.wait_for_function(_IS_QUIET, timeout=seconds * 1000)
    return PageFigures(*page.evaluate(_FIGURES))
