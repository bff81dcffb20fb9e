"""What is on a view stays at its place while the rest of it arrives, on screens of two sizes."""

import pytest

from helpers import page_loads
from tests.service.web.test_page import PLACES

pytestmark = pytest.mark.processes
SIZES = {"wide": {"width": 1280, "height": 720}, "narrow": {"width": 390, "height": 800}}
MOST = 0.02  # of the window's area times the distance, as browsers count; .1 is "good"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", PLACES)
def test_nothing_moves_while_a_view_loads(chromium, service, evaluated, training, view, size):
    place, shown = PLACES[view]
    with chromium.new_context(viewport=SIZES[size]) as context:
        page = page_loads.open_watched(context)
        for _ in range(2):  # the files of the page are cached the second time
            page.goto(service.url + place.format(**evaluated))
            page.wait_for_selector(shown)
            figures = page_loads.await_content(page)
    print(f"{view} {size}: shift {figures.shifts:.3f}")
    assert figures.shifts < MOST


def test_the_skip_link_leads_to_the_content_and_moves_nothing(window):
    page = window.open("/ui/now")
    page.get_by_role("region", name="Workers").first.wait_for()
    top = page.locator("h1").bounding_box()["y"]
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the content")
    link.wait_for()
    assert link.evaluate("each => each === document.activeElement")
    assert link.bounding_box()["x"] >= 0
    assert page.locator("h1").bounding_box()["y"] == top
    page.keyboard.press("Enter")
    assert page.locator("main").evaluate("each => each === document.activeElement")


def test_a_stored_theme_that_is_none_is_not_used(window):
    page = window.page
    page.add_init_script("localStorage.setItem('theme', 'constructor')")
    window.open("/ui/now")
    page.get_by_role("button", name="Theme: auto").wait_for()
    assert page.locator("html").get_attribute("data-theme") == "auto"
