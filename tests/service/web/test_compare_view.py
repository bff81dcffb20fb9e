"""The comparison of two evaluations in a browser, against what the interface itself answers."""

from statistics import median

import pytest

from helpers import page_runs
from helpers.page_runs import IMAGES
from helpers.page_views import draw_rectangle, list_comparisons, read_answer, system_rows

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def sides(service, evaluated):
    return evaluated["captions"], evaluated["checkpoint"]


@pytest.fixture
def page(window, sides):
    page = window.open("/ui/compare?a={}&b={}".format(*sides))
    system_rows(page).nth(3).wait_for()
    return page


@pytest.fixture
def compared(service, sides, page) -> str:
    return list_comparisons(service, *sides)[0]


def _images(service, compared):
    return read_answer(service, f"/v1/comparisons/{compared}/images?metric=cider_d")["items"]


def test_a_comparison_shows_its_differences_and_images(service, sides, page, compared):
    told = read_answer(service, f"/v1/comparisons/{compared}")["scores"]["cider_d"]
    row = page.locator("[aria-label='Table of differences'] tbody tr", has_text="CIDEr-D")
    shown = row.locator("td.number").all_inner_texts()
    assert float(shown[0]) == pytest.approx(told["a"], abs=5e-4)
    assert float(shown[1]) == pytest.approx(told["b"], abs=5e-4)
    assert ("told" in (row.get_attribute("class") or "")) == (told["p"] < 0.05)
    assert page.locator("circle.point").count() == IMAGES
    images = _images(service, compared)
    worst = min(images, key=lambda each: each["scores"]["cider_d"]["difference"])
    assert system_rows(page).first.locator("a").inner_text() == worst["image"]
    draw_rectangle(page, (0.15, 0.5), (0.98, 0.88))  # the lower half
    page.wait_for_selector(".layers .brush")
    assert "brush=" in page.url
    page.reload()
    system_rows(page).first.wait_for()
    low, high, bottom, top = map(float, page.url.split("brush=")[1].split("&")[0].split("%2C"))
    inside = [
        each["image"]
        for each in images
        if bottom <= each["scores"]["cider_d"]["a"] <= top
        and low <= each["scores"]["cider_d"]["b"] <= high
    ]
    assert page.locator(f"text={len(inside)} of {IMAGES} images").count() == 1
    assert len(list_comparisons(service, *sides)) == 1  # however often one looks
    _stands_apart(page.locator(".sides strong a").first)


def _stands_apart(name):
    """A name that is read from right to left moves nothing beside it."""
    name, badge = name.bounding_box(), name.locator("xpath=../../span").bounding_box()
    assert name["x"] + name["width"] <= badge["x"]


def test_the_axis_tells_the_better_side(service, sides, page, compared):
    """The bar of each metric lies on the side of the one that is better, and in its units."""
    scores = read_answer(service, f"/v1/comparisons/{compared}")["scores"]
    told = {
        name: each["difference"] / each["minimum_detectable"]
        for name, each in scores.items()
        if each["difference"] and each["minimum_detectable"]
    }
    assert told
    for name, units in told.items():
        drawn = page.locator(f"svg[aria-label^='{name}:']").last
        at = drawn.evaluate(
            """svg => {
              const at = (name) => svg.querySelector(name).x1.baseVal.value;
              const unseen = svg.querySelector(".unseen").getBBox();
              const [zero, one] = [at(".origin"), unseen.x + unseen.width];
              const tick = svg.querySelector(".tick").getBBox();
              return (tick.x + tick.width / 2 - zero) / (one - zero);
            }"""
        )
        assert at == pytest.approx(max(-6, min(6, units)), abs=0.15)


def test_by_keys_images_are_bounded(service, page, compared):
    images = _images(service, compared)
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


def test_groups_and_orders_are_chips(service, page, compared):
    images = [each["scores"]["cider_d"] for each in _images(service, compared)]
    bound = median(each[side] for each in images for side in "ab")
    only_b = sum(each["a"] <= bound < each["b"] for each in images)
    page.get_by_role("button", name=f"Only B good ({only_b})").click()
    page.wait_for_selector(f"text={only_b} of {IMAGES} images")
    page.get_by_role("button", name="All (").click()
    page.get_by_role("button", name="B's worst first").click()
    page.wait_for_function("location.search.includes('order=b')")
    lowest = min(each["b"] for each in images)
    page.wait_for_function(
        "lowest => Math.abs(document.querySelectorAll('.windowed td.number')[1].innerText - lowest)"
        " < 0.001",
        arg=lowest,
    )
    link = system_rows(page).nth(4).locator("a.main").get_attribute("href")
    asked = dict(each.split("=") for each in link.split("?")[1].split("&"))
    assert (asked["list"], asked["sort"], asked["at"]) == ("comparison", "b", "5")


def test_words_in_the_place_of_others_are_the_interfaces_own(window, service, evaluated):
    """Of all images; of a part of them the page counts itself, content words alone as well."""
    captions = [
        [{**each, "caption": text} for each in page_runs.CAPTIONS]
        for text in ("the w3 w4 on w5", "a w3 w9 in w5")
    ]
    with service.client() as client:
        a, b = (page_runs.submitted(client, captions=each) for each in captions)
    page = window.open(f"/ui/compare?a={a}&b={b}")
    shown = page.locator("h3:has-text('in the place of') + p .label")
    shown.first.wait_for()
    compared = list_comparisons(service, a, b)[0]
    told = read_answer(service, f"/v1/comparisons/{compared}/words?metric=cider_d&limit=10")
    expected = [f"{each['a']} for {each['b']} {each['images']}" for each in told["items"]]
    assert shown.all_inner_texts() == expected == [f"w4 for w9 {IMAGES}"]
    page.get_by_label("Search").fill("1.jpg")
    part = sum("1.jpg" in each["image"] for each in page_runs.CAPTIONS)
    page.wait_for_selector(f".label:has-text('w4 for w9 {part}')")
    assert shown.all_inner_texts() == [f"w4 for w9 {part}"]


def test_sides_are_swapped_with_all_that_is_chosen(window, evaluated):
    a, b = evaluated["captions"], evaluated["hostile"]
    window.open(f"/ui/compare?a={a}&b={b}&group=a&brush=0,1,2,3&order=a")
    window.page.click("a:has-text('Swap')")
    window.page.wait_for_selector("[aria-label='Table of differences'] tbody tr")
    asked = dict(each.split("=") for each in window.page.url.split("?")[1].split("&"))
    assert asked == {"a": b, "b": a, "group": "b", "brush": "2%2C3%2C0%2C1", "order": "b"}


def test_equal_names_are_told_apart(window, service, evaluated):
    with service.client() as client:
        other = page_runs.submitted(client, labels={"branch": "main", "who": "other"})
    page = window.open(f"/ui/compare?a={evaluated['passed']}&b={other}")
    page.wait_for_selector("[aria-label='Table of differences'] tbody tr")
    names = page.locator(".sides strong a").all_inner_texts()
    assert names == ["main", "main, who: other"]
    assert page.locator("h1").inner_text() == " against ".join(names)


def test_one_evaluation_is_offered_others_to_compare_with(window, evaluated, training):
    page = window.open(f"/ui/compare?a={training[0]}")
    page.wait_for_selector(".windowed a.main:has-text('warm, step 3')")
    page.get_by_label("Find an evaluation").fill("STEP 2")
    page.wait_for_selector(".windowed a.main:has-text('step 3')", state="detached")
    page.click(".windowed a.main:has-text('warm, step 2')")
    page.wait_for_selector("[aria-label='Table of differences'] tbody tr")
    assert f"b={training[1]}" in page.url
    window.open("/ui/compare")
    page.wait_for_selector("text=Mark two evaluations on a leaderboard")


def test_images_are_found_by_what_is_said_of_them(window, evaluated):
    window.open(f"/ui/compare?a={evaluated['captions']}&b={evaluated['hostile']}&search=script")
    window.page.wait_for_selector("text=1 of 40 images")


def test_nothing_moves_while_a_comparison_is_loaded(chromium, service, sides, page):
    with chromium.new_context() as context:
        opened = context.new_page()
        opened.add_init_script(page_runs.SHIFTS)
        opened.goto("{}/ui/compare?a={}&b={}".format(service.url, *sides))
        system_rows(opened).nth(3).wait_for()
        assert opened.evaluate("window.shifted") < 0.02
