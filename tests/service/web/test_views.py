"""Each view against what the interface itself tells, by pointer and by keys."""

import pytest

from helpers import page_runs
from helpers.networks import Cut, Network
from helpers.page_runs import submitted
from helpers.page_views import read_answer

pytestmark = pytest.mark.processes


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
    page.wait_for_selector("h1:has-text('first.json')")
    window.open(f"/ui/compare?a={one}&b={other}")
    page.wait_for_selector("strong a:text-is('second.json')")


def test_references_are_strips_of_their_tokens(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/images/3.jpg")
    page.wait_for_selector(".strip")
    told = read_answer(service, f"/v1/evaluations/{one}/tokens/3.jpg")["captions"]
    strips = page.locator(".strip")
    assert strips.count() == len(told)
    assert page.locator("h3.reference").count() == 0  # the tokens are the reference's own words
    assert page.locator("h3.hidden").all_text_contents() == [each["text"] for each in told]
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
    assert f"choice {first[1]['rank'] + 1:,} of the model" in spoken


def test_a_training_is_scrubbed_through(window, service, training):
    page = window.open(f"/ui/evaluations/{training[0]}/images/0.jpg")
    slider = page.get_by_label("Step")
    slider.wait_for()
    ranks = ".strip >> nth=0 >> .token"
    before = [each.get_attribute("aria-label") for each in page.locator(ranks).all()]
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("output:text-is('2')")
    assert f"under={training[1]}" in page.url
    page.wait_for_selector(f".said a[href$='/{training[1]}']")  # its caption stands there too
    told = read_answer(service, f"/v1/evaluations/{training[1]}/tokens/0.jpg")["captions"][0][
        "tokens"
    ]
    page.wait_for_selector(f".token[aria-label*='choice {told[0]['rank'] + 1:,} of']")
    after = [each.get_attribute("aria-label") for each in page.locator(ranks).all()]
    assert after != before
    assert f"choice {told[0]['rank'] + 1:,} of" in after[0]


@pytest.mark.parametrize("view", ["captions", "images/4.jpg"])
def test_hostile_captions_are_text(window, evaluated, view):
    window.open(f"/ui/evaluations/{evaluated['hostile']}/{view}")
    window.page.wait_for_selector(".windowed a.main, .said .nearest")
    assert "owned" not in window.page.title()
    assert window.page.locator("main script, main img").count() == 0
    wide = window.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


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
