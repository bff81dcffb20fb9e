"""Each view against what the interface itself tells, by pointer and by keys."""

import csv

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
