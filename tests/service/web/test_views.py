"""Each view against what the interface itself tells, by pointer and by keys."""

from statistics import median

import pytest

from helpers import page_runs
from helpers.fleet import bundle
from helpers.networks import Cut, Network
from helpers.page_runs import IMAGES, submitted

pytestmark = pytest.mark.processes


def _told(service, place):
    with service.client() as client:
        return client.get(place).json()


def _compared(service, a, b):
    """The comparisons of these two."""
    items = _told(service, "/v1/comparisons?limit=100")["items"]
    return [one["id"] for one in items if (one["a"], one["b"]) == (a, b)]


def _board_rows(page):
    return page.locator(".windowed tbody tr:not(.space)")


def _brush(page, *corners):
    """Draws a rectangle on a plot, between these shares of its width and height."""
    plot = page.locator("svg.brushed")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    start, end = ((box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def test_two_are_chosen_on_a_board_and_compared_by_keys_alone(window, evaluated):
    page = window.open("/ui/datasets/tiny/test")
    _board_rows(page).nth(2).wait_for()
    for key in ("j", "c", "j", "c"):
        page.keyboard.press(key)
    link = page.locator("a[href^='/ui/compare?a=ev_']")
    link.wait_for()
    assert page.url.count("ev_") == 2
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Compare two evaluations')")
    page.wait_for_selector("table.forest tbody tr")


def test_an_evaluation_is_called_by_its_file_before_its_id(window, service):
    # Of equal scores a board shows the first alone.
    own = [{**each, "caption": "w7 w5 w3 w1"} for each in page_runs.CAPTIONS]
    with service.client() as client:
        one = submitted(client, labels={"file": "first.json"}, captions=own)
        other = submitted(
            client, labels={"file": "second.json"}, gates=["cider_d >= baseline"], baseline=one
        )
    page = window.page
    for place in ("/", "/ui/datasets/tiny/test"):
        window.open(place)
        page.wait_for_selector(f"th a.main[href$='/{one}']:text-is('first.json')")
    window.open(f"/ui/evaluations/{other}")
    page.wait_for_selector("h1:has-text('second.json')")
    page.wait_for_selector(f"nav a[href*='b={one}']:has-text('the baseline first.json')")
    window.open(f"/ui/evaluations/{one}/captions")
    page.wait_for_selector("h1 a:text-is('first.json')")
    window.open(f"/ui/compare?a={one}&b={other}")
    page.wait_for_selector("dd a:text-is('second.json')")


def test_people_among_systems_do_not_crush_a_board(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/odd", content=bundle(IMAGES)).status_code == 201
        place = "/v1/datasets/odd/images/{}.jpg/references"
        said = [client.get(place.format(at)).json()["references"][0] for at in range(IMAGES)]
        for name, share in {"people": 1, "a": 11, "b": 9, "c": 8}.items():
            captions = [
                {"image": f"{at}.jpg", "caption": text if at % share == 0 else "w3 w4 w5"}
                for at, text in enumerate(said)
            ]
            submitted(client, dataset="odd/test", captions=captions, labels={"file": name})
    window.open("/ui/datasets/odd/test")
    row = window.page.locator(".windowed tr", has=window.page.locator("a:text-is('b')"))
    row.wait_for()
    assert window.page.locator("circle.away").count() == 1
    drawn = row.locator("path.measured").evaluate("each => each.getBBox().width")
    assert drawn > 160 / 3
    window.page.wait_for_selector("text=drawn hollow at its edge: 1 of 4")


def test_a_comparison_shows_its_differences_and_images(window, service, evaluated):
    a, b = evaluated["captions"], evaluated["checkpoint"]
    page = window.open(f"/ui/compare?a={a}&b={b}")
    rows = _board_rows(page)
    rows.nth(3).wait_for()
    made = _compared(service, a, b)[0]
    told = _told(service, f"/v1/comparisons/{made}")["scores"]["cider_d"]
    forest = page.locator("table.forest tr", has_text="cider_d")
    assert float(forest.locator("td").nth(0).inner_text()) == pytest.approx(told["a"], abs=5e-4)
    assert float(forest.locator("td").nth(1).inner_text()) == pytest.approx(told["b"], abs=5e-4)
    assert page.locator("circle.point").count() == IMAGES
    images = _told(service, f"/v1/comparisons/{made}/images?metric=cider_d")["items"]
    worst = min(images, key=lambda each: each["scores"]["cider_d"]["difference"])
    assert rows.first.locator("a").inner_text() == worst["image"]
    _brush(page, (0.15, 0.5), (0.98, 0.88))  # the lower half
    page.wait_for_selector(".layers .brush")
    assert "brush=" in page.url
    page.reload()
    rows.first.wait_for()
    low, high, bottom, top = map(float, page.url.split("brush=")[1].split("&")[0].split("%2C"))
    inside = [
        each["image"]
        for each in images
        if bottom <= each["scores"]["cider_d"]["a"] <= top
        and low <= each["scores"]["cider_d"]["b"] <= high
    ]
    assert page.locator(f"text={len(inside)} of {IMAGES} images").count() == 1
    assert len(_compared(service, a, b)) == 1  # however often one looks
    _stands_apart(page.locator("dl.facts dd").first)


def _stands_apart(side):
    """A name that is read from right to left moves nothing beside it."""
    right, bottom, left, top = side.evaluate("""dd => {
        const name = [...dd.querySelector("a").getClientRects()].at(-1);
        const badge = dd.querySelector(".badge").getBoundingClientRect();
        return [name.right, name.bottom, badge.left, badge.top];
    }""")
    assert left >= right or top >= bottom


def test_references_are_strips_of_their_tokens(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/images/3.jpg")
    page.wait_for_selector(".strip")
    told = _told(service, f"/v1/evaluations/{one}/tokens/3.jpg")["captions"]
    strips = page.locator(".strip")
    assert strips.count() == len(told)
    first = told[0]["tokens"]
    tokens = strips.first.locator(".token")
    assert tokens.locator("bdi").all_inner_texts() == [each["word"] for each in first]
    bounds = [0, 1, 5, 20, 100]
    for at, each in enumerate(first):
        kind = max(place for place, bound in enumerate(bounds) if each["rank"] >= bound)
        assert f"rank-{kind}" in tokens.nth(at).get_attribute("class").split()
    hits = [each["rank"] == 0 for each in first]
    prefix = hits.index(False) if False in hits else len(hits)
    assert strips.first.locator(".prefixed").count() == prefix
    assert strips.first.locator(".hit").count() == sum(hits)
    tokens.first.focus()
    page.keyboard.press("ArrowRight")
    spoken = page.locator(".spoken").first.inner_text()
    assert spoken.startswith(f"{first[1]['word']}: ")
    assert f"rank {first[1]['rank']:,}" in spoken


def test_a_training_is_scrubbed_through(window, service, training):
    page = window.open(f"/ui/evaluations/{training[0]}/images/0.jpg")
    slider = page.get_by_label("Step")
    slider.wait_for()
    ranks = ".strip >> nth=0 >> .token"
    before = [each.get_attribute("aria-label") for each in page.locator(ranks).all()]
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("output:has-text('2 of')")
    assert f"under={training[1]}" in page.url
    page.wait_for_selector(f".said a[href$='/{training[1]}']")  # its caption stands there too
    told = _told(service, f"/v1/evaluations/{training[1]}/tokens/0.jpg")["captions"][0]["tokens"]
    page.wait_for_selector(f".token[aria-label*='rank {told[0]['rank']:,}']")
    after = [each.get_attribute("aria-label") for each in page.locator(ranks).all()]
    assert after != before
    assert f"rank {told[0]['rank']:,}" in after[0]


def test_by_keys_images_of_a_comparison_are_bounded(window, service, evaluated):
    a, b = evaluated["captions"], evaluated["checkpoint"]
    page = window.open(f"/ui/compare?a={a}&b={b}")
    _board_rows(page).nth(3).wait_for()
    made = _compared(service, a, b)[0]
    images = _told(service, f"/v1/comparisons/{made}/images?metric=cider_d")["items"]
    pairs = [(each["scores"]["cider_d"]["a"], each["scores"]["cider_d"]["b"]) for each in images]
    of_a, of_b = (round(median(side), 3) for side in zip(*pairs, strict=True))
    for label, bound in (("A from", of_a), ("B to", of_b)):
        page.get_by_label(label, exact=True).focus()
        page.keyboard.press("Control+a")  # as what Tab comes to is
        page.keyboard.type(str(bound))
        page.keyboard.press("Enter")
    inside = sum(one >= of_a and other <= of_b for one, other in pairs)
    assert 0 < inside < IMAGES
    page.wait_for_selector(f"text={inside} of {IMAGES} images")
    page.click("button:has-text('All images')")
    page.wait_for_selector(f"text={IMAGES} of {IMAGES} images")


@pytest.mark.parametrize("view", ["captions", "images/4.jpg"])
def test_hostile_captions_are_text(window, evaluated, view):
    window.open(f"/ui/evaluations/{evaluated['hostile']}/{view}")
    window.page.wait_for_selector(".windowed a.main, .said .nearest")
    assert "owned" not in window.page.title()
    assert window.page.locator("main script, main img").count() == 0
    wide = window.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def test_sides_are_swapped_with_all_that_is_chosen(window, evaluated):
    a, b = evaluated["captions"], evaluated["hostile"]
    window.open(f"/ui/compare?a={a}&b={b}&group=a&brush=0,1,2,3&order=a")
    window.page.wait_for_selector("table.forest tbody tr")
    window.page.click("text=Swap A and B")
    window.page.wait_for_selector("table.forest tbody tr")
    asked = dict(each.split("=") for each in window.page.url.split("?")[1].split("&"))
    assert asked == {"a": b, "b": a, "group": "b", "brush": "2%2C3%2C0%2C1", "order": "b"}


def test_one_evaluation_is_offered_others_to_compare_with(window, evaluated, training):
    window.open(f"/ui/compare?a={training[0]}")
    window.page.click("li a:has-text('warm, step 2')")
    window.page.wait_for_selector("table.forest tbody tr")
    assert f"b={training[1]}" in window.page.url
    window.open("/ui/compare")
    window.page.wait_for_selector("text=Mark two evaluations on a leaderboard")


def test_images_are_found_by_what_is_said_of_them(window, evaluated):
    window.open(f"/ui/compare?a={evaluated['captions']}&b={evaluated['hostile']}&search=script")
    window.page.wait_for_selector("text=1 of 40 images")


def test_it_waits_for_a_service_that_is_away(chromium, service):
    chromium.expected.add("net::ERR_")
    with Network(service.port) as network, chromium.new_context() as context:
        page = context.new_page()
        page.goto(network.url)
        page.wait_for_selector("[data-live=true]")
        network.cuts.append(Cut(b"GET /v1/", refused=1_000_000))
        page.click("text=Jobs")
        page.wait_for_selector("text=The service does not answer")
        page.wait_for_selector("[data-live=false]")
        page.click("text=Home")
        network._down = 0
        page.wait_for_selector("[data-live=true]", timeout=60_000)
        page.wait_for_selector("text=The service does not answer", state="detached")
        with service.client() as client:
            made = page_runs.submitted(client)
        page.wait_for_selector(f"a[href$='/{made}']")
