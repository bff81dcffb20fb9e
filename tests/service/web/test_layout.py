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
