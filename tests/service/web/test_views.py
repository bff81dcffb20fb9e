"""Each view against what the interface itself tells, by pointer and by keys."""

import csv

import pytest

from helpers import page_runs
from helpers.networks import Cut, Network
from helpers.page_runs import IMAGES, submitted

pytestmark = pytest.mark.processes


def _told(service, place):
    with service.client() as client:
        return client.get(place).json()


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
    page.wait_for_selector(f"dd:has-text('first.json') a[href*='b={one}']")
    window.open(f"/ui/evaluations/{one}/captions")
    page.wait_for_selector("h1 a:text-is('first.json')")
    window.open(f"/ui/compare?a={one}&b={other}")
    page.wait_for_selector("strong a:text-is('second.json')")


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


def test_captions_of_several_evaluations_stand_beside_each_other(window, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['captions']}/images/4.jpg")
    offered = page.locator(f"datalist#evaluations option[value='{evaluated['hostile']}']")
    offered.wait_for(state="attached")
    page.get_by_label("Another evaluation").fill(evaluated["hostile"])
    page.keyboard.press("Enter")
    page.wait_for_selector(".said mark:text-is('script')")  # a word that differs
    assert f"with={evaluated['hostile']}" in page.url
    page.keyboard.press("j")
    page.wait_for_selector("h1:has-text('5.jpg')")
    page.wait_for_selector(".said li >> nth=1 >> .caption")
    page.wait_for_selector("text=the image before")
    page.keyboard.press("k")
    page.wait_for_selector("h1:has-text('4.jpg')")


def test_captions_come_worst_first_and_are_searched(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    rows = _board_rows(page)
    rows.first.wait_for()
    told = _told(service, f"/v1/evaluations/{one}/captions?sort=cider_d&limit=1")
    assert rows.first.locator("a").inner_text() == told["items"][0]["image"]
    assert page.locator(f"text={IMAGES} captions").count() == 1
    page.get_by_label("Order").select_option("best first")
    best = _told(service, f"/v1/evaluations/{one}/captions?sort=-cider_d&limit=1")
    page.wait_for_selector(f".windowed a >> nth=0 >> text={best['items'][0]['image']}")
    page.keyboard.press("/")
    page.keyboard.type("17.jpg")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 captions")
    assert rows.locator("a").all_inner_texts() == ["17.jpg"]


def test_captions_of_a_span_of_scores_are_saved(window, service, evaluated, tmp_path):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    _brush(page, (0.4, 0.4), (0.97, 0.6))
    page.wait_for_selector("button:has-text('All scores')")
    parameters = dict(part.split("=") for part in page.url.split("?")[1].split("&"))
    low, high = float(parameters["from"]), float(parameters["to"])
    items = _told(service, f"/v1/evaluations/{one}/captions")["items"]
    inside = {each["image"] for each in items if low <= each["scores"]["cider_d"] <= high}
    assert 0 < len(inside) < IMAGES
    page.wait_for_selector(f"text={len(inside)} captions")
    with page.expect_download() as saved:
        page.click("button:has-text('These as CSV')")
    path = tmp_path / "saved.csv"
    saved.value.save_as(path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert {row["image"] for row in rows} == inside


def test_by_keys_captions_of_a_span_of_scores_are_listed(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    items = _told(service, f"/v1/evaluations/{one}/captions")["items"]
    scores = sorted(each["scores"]["cider_d"] for each in items)
    low, high = (round(scores[0] + share * (scores[-1] - scores[0]), 3) for share in (0.2, 0.8))
    page.get_by_label("cider_d from").focus()
    page.keyboard.type(str(low))
    page.keyboard.press("Tab")
    page.wait_for_url("**from=**")
    page.keyboard.type(str(high))  # the next field has kept the focus
    page.keyboard.press("Enter")
    many = sum(low <= score <= high for score in scores)
    assert 0 < many < IMAGES
    page.wait_for_selector(f"text={many} captions")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text={sum(low <= score for score in scores)} captions")
    page.click("button:has-text('All scores')")
    page.wait_for_selector(f"text={IMAGES} captions")
    assert page.get_by_label("cider_d from").input_value() == ""


@pytest.mark.parametrize("view", ["captions", "images/4.jpg"])
def test_hostile_captions_are_text(window, evaluated, view):
    window.open(f"/ui/evaluations/{evaluated['hostile']}/{view}")
    window.page.wait_for_selector(".windowed a.main, .said .caption")
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


def test_one_comes_back_to_where_one_was(window, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['checkpoint']}/captions")
    page.wait_for_selector(".windowed a.main")
    for _ in range(31):
        page.keyboard.press("j")
    image = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:has-text('{image}')")
    page.go_back()
    page.wait_for_selector(f"a.main:focus:text-is('{image}')")
    assert page.evaluate("document.querySelector('.windowed').scrollTop") > 0


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
