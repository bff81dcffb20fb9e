"""Each view against what the interface itself tells, by pointer and by keys."""

from statistics import median

import pytest

import prescore
from helpers import page_runs, shape_trainings
from helpers.fleet import bundle, upload
from helpers.networks import Cut, Network
from helpers.page_runs import IMAGES, submitted
from helpers.stored_records import enter_trainings
from service.stored import datasets
from workers.lab import shapes

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


def test_a_training_marks_its_best_checkpoint(window, service, training):
    page = window.open("/ui/datasets/tiny/test/runs/warm")
    page.wait_for_selector("circle.best")
    scores = [
        _told(service, f"/v1/evaluations/{each}")["scores"]["cider_d"]["value"] for each in training
    ]
    best = training[scores.index(max(scores))]
    panel = page.locator("figure", has_text="cider_d")
    assert panel.locator("a").get_attribute("href") == f"/ui/evaluations/{best}"
    assert panel.locator("circle.point").count() == len(training)


def test_probes_are_begun_from_the_page_and_followed(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/fresh", content=bundle(6, seed=3)).status_code == 201
    page = window.open("/ui/datasets/fresh/test/trust")
    page.wait_for_selector("section[aria-label*='known'] >> text=No probes have been run")
    with service.held():
        page.click("text=Run the probes")
        page.wait_for_selector("p:has-text('Run the probes') .badge.queued")
    page.wait_for_selector("p:has-text('Run the probes') .badge", state="detached")
    page.wait_for_selector("summary:has-text('Probe human')")
    made = _told(service, "/v1/probes?dataset=fresh/test&limit=1")["items"][0]["id"]
    health = _told(service, f"/v1/probes/{made}")["health"]["cider_d"]
    row = page.locator("tr", has=page.locator("th:text-is('cider_d')")).first
    assert float(row.locator("td").first.inner_text()) == pytest.approx(health["human"], abs=5e-4)


def test_a_study_is_begun_from_the_page(window, evaluated, training):
    page = window.open("/ui/datasets/tiny/test/trust")
    page.click("text=Study the correlations")
    page.wait_for_selector(
        "section[aria-label*='pre-gen'] .badge, section[aria-label*='pre-gen'] .notice"
    )


@pytest.mark.slow
def test_forecasts_are_shown_beside_what_was_measured(window, service, tmp_path):
    """They need eight evaluations of trained models before them."""
    folder = tmp_path / "past"
    shapes.make_shapes(folder, 800, seed=0)
    with prescore.Client(service.url) as library:
        library.add_dataset("past", folder)
    with service.client() as client:
        paths = (path for seed in range(3) for path in shape_trainings.checkpoints(folder, seed))
        for number, path in enumerate(paths):
            submitted(
                client,
                dataset="past/test",
                checkpoint=upload(client, path.read_bytes()),
                decoding={"beam": 1, "max_words": 20},
                labels={"run": f"r{number // 6}", "step": str(number % 6)},
            )
    runs = _told(service, "/v1/evaluations?dataset=past/test&limit=50")["items"]
    forecast = [run for run in runs if (run["forecast"] or {}).get("cider_d", {}).get("interval")]
    assert forecast, runs[0]["forecast"]
    ends = [
        (*run["forecast"]["cider_d"]["interval"], run["scores"]["cider_d"]["value"])
        for run in forecast
    ]
    inside = sum(low <= value <= high for low, high, value in ends)
    window.open("/ui/datasets/past/test/trust")
    cards = window.page.get_by_role("region", name="Cards of forecasts")
    row = cards.locator("tr", has=window.page.locator("th:text-is('cider_d')"))
    row.wait_for()
    assert row.locator("td").last.inner_text() == f"{inside} of {len(ends)}"
    assert window.page.locator("circle.point").count() == len(ends)
    window.open(f"/ui/evaluations/{forecast[0]['id']}")
    band = window.page.locator("tr", has_text="cider_d").locator("rect.forecast")
    band.wait_for()


def test_the_card_tells_which_metric_decides_early(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/signal", content=bundle(6, seed=4)).status_code == 201
    place = "/ui/datasets/signal/test/trust"
    window.open(place).get_by_text("There is no card: no evaluation of signal").wait_for()
    enter_trainings(service.records, datasets.pin_split(service.records, "signal/test"), many=8)
    page = window.open(place)
    card = page.get_by_role("region", name="Card of the split")
    card.wait_for()
    rows = {
        row.locator("th").inner_text(): [cell.inner_text() for cell in row.locator("td").all()]
        for row in card.locator("tbody tr").all()
    }
    assert rows["cider_d"][5:] == ["–", "–", "100 %", "100 %"]
    assert rows["meteor"][5:] == ["–", "–", "0 %", "0 %"]
    told = "8 trainings make 28 pairs whose final cider_d differs (0 are too close to tell)."
    told += " At 25 % of the steps, cider_d has the final order of 100 % of them."
    assert page.get_by_text(told).count() == 1
    window.expected.add("422")
    page = window.open(f"{place}?target=mean_mean_count_none")
    page.get_by_role("alert").filter(has_text="mean_mean_count_none").wait_for()


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


def test_the_map_of_pre_gen_metrics_tells_what_each_is(window, service, evaluated):
    page = window.open("/ui/datasets/tiny/test/pregen")
    page.wait_for_selector("[role=gridcell] >> nth=671")
    assert page.locator("[role=gridcell]").count() == 672
    names = {
        each.split(":")[0]
        for each in page.locator("[role=gridcell]").evaluate_all(
            "all => all.map(each => each.ariaLabel)"
        )
    }
    told = _told(service, "/v1/metrics")["items"]
    whole = {each["name"] for each in told if each["family"] == "pregen"}
    assert names == whole - {"corpus_perplexity", "bits_per_byte"}  # which have no tiers
    page.locator("[role=gridcell][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("strong:text-is('mean_max_normcount_filter0')")
    definition = next(
        each["definition"] for each in told if each["name"] == "mean_max_normcount_filter0"
    )
    assert definition in page.inner_text("main")
    assert "metric=mean_max_normcount_filter0" in page.url


def test_now_shows_what_waits_and_what_failed(window, service):
    page = window.page
    with service.client() as client, service.held():
        waiting = submitted(client, postgen=["meteor"], labels={"who": "waits"})
        window.open("/ui/now")
        unfinished = ":is([aria-label='Waits'], [aria-label='Runs'])"
        page.wait_for_selector(f"{unfinished} a[href$='/{waiting}']")
        page.wait_for_selector("section[aria-label='Queues'] tbody tr")
        assert client.post(f"/v1/evaluations/{waiting}/cancel").status_code == 202
    page.wait_for_selector(f"{unfinished} a[href$='/{waiting}']", state="detached")
    page.wait_for_selector("section[aria-label='You'] >> text=Team")


def test_it_waits_for_a_service_that_is_away(chromium, service):
    chromium.expected.add("net::ERR_")
    with Network(service.port) as network, chromium.new_context() as context:
        page = context.new_page()
        page.goto(network.url)
        page.wait_for_selector("[data-live=true]")
        network.cuts.append(Cut(b"GET /v1/", refused=1_000_000))
        page.click("text=Now")
        page.wait_for_selector("text=The service does not answer")
        page.wait_for_selector("[data-live=false]")
        page.click("text=Home")
        network._down = 0
        page.wait_for_selector("[data-live=true]", timeout=60_000)
        page.wait_for_selector("text=The service does not answer", state="detached")
        with service.client() as client:
            made = page_runs.submitted(client)
        page.wait_for_selector(f"a[href$='/{made}']")
