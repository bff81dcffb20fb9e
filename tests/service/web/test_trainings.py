"""Trainings and what needs attention, against what the interface itself tells."""

from collections import Counter
from urllib.parse import quote

import pytest

from helpers import page_loads, page_runs
from helpers.page_runs import LABEL, submitted
from helpers.page_views import read_answer

pytestmark = pytest.mark.processes

_SLOW = "/ui/datasets/figures/test/runs/slow"


@pytest.fixture(scope="module")
def trainings(service) -> dict[str, list[str]]:
    with service.client() as client:
        return page_runs.two_trainings(client)


def _steps(service, run) -> dict[int, dict]:
    place = f"/v1/evaluations?dataset=figures/test&label.run={run}&limit=50"
    return {int(one["labels"]["step"]): one for one in read_answer(service, place)["items"]}


def _find_comparison(service, a, b):
    items = read_answer(service, "/v1/comparisons?limit=100")["items"]
    (found,) = [one for one in items if (one["a"], one["b"]) == (a, b)]
    return found


def _read_number(text: str) -> float:
    return float(text.replace("−", "-").replace("★", ""))


def test_a_training_marks_its_best_checkpoint_and_its_falls(window, service, trainings):
    page = window.open(_SLOW)
    page.wait_for_selector("circle.best")
    steps = _steps(service, "slow")
    for metric, title in (("cider_d", "CIDEr-D"), ("bleu_4", "BLEU-4")):
        window.open(f"{_SLOW}?metrics={metric}")
        plot = page.locator("figure", has=page.locator(f"button.metric:text-is('{title}')"))
        plot.locator("circle.series-1").first.wait_for()  # drawn anew when the overlay is there
        assert plot.locator("circle.point.series-0").count() == len(steps)
        values = {step: one["scores"][metric]["value"] for step, one in steps.items()}
        best = max(values, key=values.__getitem__)
        told = plot.locator("circle.best title").text_content()
        assert told == f"slow, step {best}: {values[best]:.3f}"
        fallen = {step for step, one in steps.items() if metric in _metrics_of_falls(one)}
        assert fallen
        drawn = plot.locator("circle.series-0.fallen title").all_text_contents()
        assert {int(text.split("step ")[1].split(":")[0]) for text in drawn} == fallen
        rows = page.get_by_role("region", name="Table of steps").locator("tbody tr")
        for step, row in zip(sorted(steps), rows.all(), strict=True):
            text = row.locator("td.number").inner_text()
            signs = row.locator(".badge.bad").all_inner_texts()
            assert (signs == ["▼ behind steady"], "★" in text) == (step in fallen, step == best)
            behind = row.get_by_role("link", name=f"compare with steady, step {step}")
            assert behind.count() == (step in fallen)
            shown = text.splitlines()[0]
            assert _read_number(shown) == pytest.approx(values[step], abs=5e-4)


def _metrics_of_falls(run):
    return {fall["metric"] for fall in run["falls"]}


def test_a_training_begins_with_its_worst_fall(window, service, trainings):
    page = window.open(_SLOW)
    page.wait_for_selector("p.lead strong")
    falls = read_answer(service, f"/v1/evaluations/{trainings['slow'][3]}")["falls"]
    (fall,) = [one for one in falls if (one["metric"], one["kind"]) == ("cider_d", "run")]
    claim = page.locator("p.lead strong").inner_text()
    assert claim.startswith(
        f"Step 4 is {abs(fall['difference']):.3f} CIDEr-D below steady at the same step"
    )
    assert page.locator(".legend").inner_text().split()[:2] == ["slow", "steady"]


def test_a_fall_is_noted_beside_its_point_with_the_way_to_its_images(window, service, trainings):
    page = window.open(_SLOW)
    page.wait_for_selector("circle.series-1")
    falls = _steps(service, "slow")[4]["falls"]
    (fall,) = [one for one in falls if (one["metric"], one["kind"]) == ("cider_d", "run")]
    (note,) = page.locator(".note").all()
    told = f"{-fall['difference']:.3f} CIDEr-D below steady at step 4"
    assert note.inner_text().split("\n")[:2] == ["step 4", told]
    compare = f"/ui/compare?a={trainings['slow'][3]}&b={fall['beside']['evaluation']}"
    assert note.get_by_role("link", name="compare with steady").get_attribute("href") == compare
    point = page.locator("circle.fallen.series-0").first.bounding_box()
    box = note.bounding_box()
    assert 0 < box["x"] - point["x"] < 40 or 0 < point["x"] - (box["x"] + box["width"]) < 40
    plot = page.locator("figure").first.bounding_box()
    assert plot["y"] < box["y"]
    assert box["y"] + box["height"] < plot["y"] + plot["height"]
    page.mouse.move(point["x"] - 100, point["y"])
    page.wait_for_selector(".tooltip:not(.note)")
    note.get_by_role("button", name="see the images").click()
    page.wait_for_selector("aside h2:has-text('Step 4')")
    assert "step=4" in page.url
    assert page.locator(".note").count() == 0


def test_trainings_are_laid_over_each_other_and_taken_away(window, service, trainings):
    page = window.open("/ui/datasets/figures/test/runs/steady")
    page.wait_for_selector("circle.best")
    assert page.locator("circle.series-1").count() == 0
    picker = page.get_by_label("Add: overlay a run")
    page.wait_for_selector("select option[value='slow']", state="attached")
    assert picker.locator("option[value='steady']").count() == 0
    picker.select_option("slow")
    points = page.locator("figure >> nth=0 >> circle.series-1")
    points.first.wait_for()
    assert "over=slow" in page.url
    values = [one["scores"]["cider_d"]["value"] for one in _steps(service, "slow").values()]
    told = points.locator("title").all_text_contents()
    assert {text.split(": ")[1] for text in told} == {f"{value:.3f}" for value in values}
    page.reload()
    points.first.wait_for()
    page.click("button.chip:has-text('slow')")
    points.first.wait_for(state="detached")
    window.open(_SLOW)
    page.wait_for_selector("circle.series-1")
    page.click("button.chip:has-text('steady')")  # that which it fell below is there by itself
    page.wait_for_selector("circle.series-1", state="detached")
    page.reload()
    page.wait_for_selector("circle.best")
    assert page.locator("button.chip:has-text('steady')").count() == 0


def test_one_cursor_goes_through_all_plots_by_keys(window, service, trainings):
    page = window.open(f"{_SLOW}?metrics=cider_d,bleu_4")
    page.wait_for_selector("circle.series-1")
    cursor = page.get_by_role("slider").first
    cursor.focus()
    page.keyboard.press("ArrowLeft")  # from the last of five
    assert page.locator(".crosshair").count() == 2
    places = page.locator(".crosshair").evaluate_all(
        "all => all.map((each) => each.x1.baseVal.value)"
    )
    circles = [
        plot.locator("circle.series-0").nth(3).evaluate("each => each.cx.baseVal.value")
        for plot in page.locator("figure").all()
    ]
    assert places == pytest.approx(circles, abs=0.5)
    (tooltip,) = page.locator(".tooltip:not(.note)").all()
    told = tooltip.inner_text()
    own, other = _steps(service, "slow")[4]["scores"], _steps(service, "steady")[4]["scores"]
    assert told.startswith("step 4")
    for metric in ("cider_d", "bleu_4"):
        low, high = own[metric]["interval"]
        assert f"{own[metric]['value']:.3f} [{low:.3f}, {high:.3f}]" in told
        away = own[metric]["value"] - other[metric]["value"]
        assert f"{other[metric]['value']:.3f} (−{-away:.3f})" in told
        beside = f"steady {other[metric]['value']:.3f} (−{-away:.3f})"
        assert beside in cursor.get_attribute("aria-valuetext")
    assert cursor.get_attribute("aria-valuenow") == "4"
    page.keyboard.press("Escape")
    assert page.locator(".tooltip:not(.note)").count() == 0
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector("aside h2:has-text('Step 4')")
    assert "step=4" in page.url
    page.locator("h1").click()  # the keys of the view, where no plot has the focus
    page.keyboard.press("k")
    page.wait_for_selector("aside h2:has-text('Step 3')")
    page.keyboard.press("Escape")
    page.wait_for_selector("aside", state="detached")


def test_a_training_names_the_words_of_its_worst_fall_if_they_were_compared(
    window, service, trainings
):
    page = window.open(f"{_SLOW}?step=4&against=steady")
    page.wait_for_selector("section[aria-label='Words exchanged'] li")
    made = _find_comparison(service, trainings["slow"][3], trainings["steady"][3])["id"]
    words = read_answer(service, f"/v1/comparisons/{made}/words?metric=cider_d&limit=3")["items"]
    told = ", ".join(f"{each['a']} for {each['b']} ({each['images']})" for each in words)
    assert words
    page = window.open(_SLOW)
    page.wait_for_selector("circle.best")
    claim = page.locator("p.lead strong").inner_text()
    assert claim.endswith(f"below steady at the same step; it says {told}.")


def test_on_a_phone_the_first_touch_shows_scores_and_the_second_opens_the_step(
    chromium, service, trainings
):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with chromium.opened(service.url + _SLOW, **phone) as page:
        page.locator("circle.series-1").first.wait_for()
        for step in range(1, 6):
            point = page.locator("figure >> nth=0 >> circle.series-0").nth(step - 1)
            box = point.bounding_box()
            at = box["x"] + box["width"] / 2, box["y"] + box["height"] + 8
            page.touchscreen.tap(*at)
            tooltip = page.locator(f".tooltip:not(.note):has-text('step {step}')")
            tooltip.wait_for()
            shown = tooltip.bounding_box()
            assert shown["x"] >= 0
            assert shown["x"] + shown["width"] <= 390
            assert 0 <= shown["y"] <= 844 - shown["height"]
            assert "step=" not in page.url
        page.touchscreen.tap(*at)
        page.wait_for_selector("aside h2:has-text('Step 5')")


def test_a_step_tells_by_how_much_and_on_which_images(window, service, trainings):
    slow, steady = trainings["slow"], trainings["steady"]
    page = window.open(_SLOW)
    page.get_by_role("region", name="Table of steps").get_by_role(
        "link", name="Step 4", exact=True
    ).click()
    rows = page.locator("aside ol .caption")
    rows.nth(5).wait_for()
    assert rows.count() == 6
    found = _find_comparison(service, slow[3], steady[3])
    for name, other in (("step 3", slow[2]), ("steady, step 4", steady[3])):
        chip = page.locator(".rivals .row", has=page.locator(f"button:text-is('against {name}')"))
        score = _find_comparison(service, slow[3], other)["scores"]["cider_d"]
        page.wait_for_function("each => /p /.test(each.innerText)", arg=chip.element_handle())
        shown = chip.inner_text()
        sign = "+" if score["difference"] > 0 else "−"
        assert f"{sign}{abs(score['difference']):.3f} [" in shown
        low = score["interval"][0]
        assert f"[{'−' if low < 0 else ''}{abs(low):.3f}, " in shown
    items = read_answer(service, f"/v1/comparisons/{found['id']}/images?metric=cider_d&limit=10000")
    changes = sorted(one["scores"]["cider_d"]["difference"] for one in items["items"])
    texts = {one["image"]: (one["a"], one["b"]) for one in items["items"]}
    shown = [_read_number(row.locator("> .number").inner_text()) for row in rows.all()]
    assert shown == pytest.approx(changes[:6], abs=5e-4)
    for row in rows.all():
        image = row.get_by_role("link").inner_text()
        assert tuple(row.locator(".say").all_inner_texts()) == texts[image]
    full = page.get_by_role("link", name="full comparison")
    assert full.get_attribute("href") == f"/ui/compare?a={slow[3]}&b={steady[3]}"
    page.click("button:has-text('against step 3')")
    page.wait_for_selector(f"aside a[href$='b={slow[2]}']")
    assert "against=before" in page.url
    page.reload()
    page.wait_for_selector("button[aria-pressed=true]:has-text('against step 3')")
    page.click("[aria-label='Close the details']")
    page.wait_for_selector("aside", state="detached")
    assert "step=" not in page.url


def test_j_and_k_go_through_the_images_that_fell_most(window, trainings):
    page = window.open(f"{_SLOW}?step=4")
    links = page.locator("aside ol .caption").get_by_role("link")
    links.nth(5).wait_for()
    images = links.all_inner_texts()
    links.nth(1).click()
    for key, at in ("j", 2), ("k", 1), ("k", 0):
        page.wait_for_selector("text=/^[0-9]+ of [0-9]+, where B is better first$/")
        page.keyboard.press(key)
        page.wait_for_selector(f"h1:text-is('{images[at]}')")
    page.locator(".said li >> nth=1").wait_for()
    page.click("text=the comparison")
    slow, steady = trainings["slow"][3], trainings["steady"][3]
    page.wait_for_url(f"**/ui/compare?a={slow}&b={steady}")


def test_a_step_tells_which_words_are_exchanged(window, service, trainings):
    slow, steady = trainings["slow"], trainings["steady"]
    page = window.open(f"{_SLOW}?step=4")
    words = page.locator("section[aria-label='Words exchanged'] li")
    words.first.wait_for()
    found = _find_comparison(service, slow[3], steady[3])["id"]
    images = read_answer(service, f"/v1/comparisons/{found}/images?limit=10000")["items"]
    pairs = Counter(
        pair
        for one in images
        for pair in zip(one["a"].split(), one["b"].split(), strict=True)
        if pair[0] != pair[1]
    )
    assert pairs
    expected = {
        f"{a} for {b} {many} image{'s' * (many > 1)}, reverse {pairs[b, a]}"
        for (a, b), many in pairs.items()
        if many > pairs[b, a]
    }
    assert set(words.all_inner_texts()) == expected


def test_the_first_step_has_nothing_before_it(window, trainings):
    page = window.open("/ui/datasets/figures/test/runs/steady?step=1")
    page.wait_for_selector("aside p:has-text('no step before it')")


def test_cards_tell_how_trainings_go(window, service, trainings):
    page = window.open("/ui/datasets/figures/test/runs")
    cards = page.locator(".cards > li")
    cards.nth(1).wait_for()
    items = read_answer(service, "/v1/trainings?dataset=figures/test")["items"]
    attention = read_answer(service, "/v1/attention?limit=100")["items"]
    collapsed = {each["evaluation"] for each in attention if each["kind"] == "collapsed"}
    values = [step["value"] for item in items for step in item["steps"]]
    low, high = min(values), max(values)
    for card, item in zip(cards.all(), items, strict=True):
        text = card.inner_text()
        before, latest = (step["value"] for step in item["steps"][-2:])
        sign = "+" if latest > before else "−"
        assert card.locator("strong").inner_text() == item["run"]
        assert card.locator(".big").inner_text() == f"{latest:.3f}"
        assert f"{sign}{abs(latest - before):.3f} since step 4" in text
        fallen = [step["step"] for step in item["steps"] if step["is_fallen"]]
        assert card.locator("circle.fallen").count() == len(fallen)
        marked = [step for step in item["steps"] if step["evaluation"] in collapsed]
        assert card.locator("circle.collapsed").count() == len(marked) > 0
        height = card.locator("circle").last.evaluate("each => each.cy.baseVal.value")
        assert height == pytest.approx(50 - 44 * (latest - low) / (high - low), abs=0.01)
        assert ("step 4 behind steady" in text) == (fallen == [4])
        assert card.locator(".row").first.inner_text().count("\n") == 1, "a name and one badge"
        assert card.locator(".badge").inner_text() in text.splitlines()
    assert page.locator("nav.tabs [aria-current=page]").inner_text() == "Training runs"


def test_home_begins_with_what_needs_attention(window, service, trainings, evaluated):
    page = window.open("/")
    table = page.get_by_role("region", name="Table of what needs attention")
    table.wait_for()
    items = read_answer(service, "/v1/attention?limit=50")["items"]
    kinds = {"fall": "▼ worse", "gate": "gate failed", "collapsed": "collapsed", "failed": "failed"}
    items.sort(key=lambda item: ["fall", "gate", "failed", "collapsed"].index(item["kind"]))
    rows = {}  # collapsed checkpoints of one training run are one
    for item in items:
        run = item["labels"].get("run") if item["kind"] == "collapsed" else None
        rows.setdefault(run or item["evaluation"], []).append(item)
    assert max(map(len, rows.values())) > 1
    shown = table.locator("tbody tr")
    assert len(rows) > shown.count() == 6
    page.click(f"button:text-is('Show all {len(items)} evaluations')")
    assert shown.count() == len(rows)
    for row, (item, *others) in zip(shown.all(), rows.values(), strict=True):
        assert row.locator(".badge").inner_text() == kinds[item["kind"]]
        link = row.locator("a.main")
        split, reason = row.locator(".sub").all_text_contents()
        assert split == f"{item['dataset']['name']}/{item['dataset']['split']}"
        if others:
            run = item["labels"]["run"]
            steps = sorted(int(each["labels"]["step"]) for each in (item, *others))
            assert link.inner_text() == f"{run}, steps {steps[0]} to {steps[-1]}"
            assert reason == f"{len(steps)} checkpoints with one caption for most images"
            training = f"/ui/datasets/figures/test/runs/{run}"
            places = [each.get_attribute("href") for each in (link, row.locator("a").last)]
            assert places == [training, training]
            continue
        assert link.get_attribute("href") == f"/ui/evaluations/{item['evaluation']}"
        if item["kind"] == "collapsed":
            assert item["caption"]["text"] in reason
            assert str(item["caption"]["of"]) in reason
        if item["kind"] == "gate":
            assert reason.startswith("CIDEr-D ")
            assert "cider_d" not in reason
        if item["kind"] == "fall":
            assert reason.startswith(f"{abs(item['fall']['difference']):.3f} ")
    assert {"fall", "gate", "collapsed"} <= {item["kind"] for item in items}
    assert page.locator("h1").inner_text() == "Home"
    assert page.locator("h1").bounding_box()["width"] <= 1  # for those who hear the page
    finding = shown.first.locator(".sub").last.text_content()
    lead = page.locator("p.lead")
    assert lead.locator("strong").inner_text().endswith(f" is {finding}.")
    assert f"{len(items) - 1} more evaluations need attention: " in lead.inner_text()


def test_a_bad_checkpoint_is_explained_in_three_clicks(window, service, trainings):
    """It is not worse than the step before it: only than another training at the same step."""
    steps = _steps(service, "slow")
    values = [steps[step]["scores"]["cider_d"]["value"] for step in sorted(steps)]
    assert values == sorted(values)
    page = window.open("/")
    row = page.get_by_role("region", name="Table of what needs attention").locator(
        "tr", has_text="slow, step 4"
    )
    row.get_by_text("Why →").click()  # by how much, on which words and images
    page.wait_for_selector("aside button[aria-pressed=true]:has-text('steady')")
    page.locator("aside ol .caption a").first.click()  # the image and both captions
    page.wait_for_selector("h1:has-text('.png')")
    assert f"with={trainings['steady'][3]}" in page.url


@pytest.mark.parametrize("place", ["/", f"{_SLOW}?step=4", "/ui/datasets/figures/test/runs"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_moves_while_it_loads(chromium, service, trainings, place, width):
    with chromium.new_context(viewport={"width": width, "height": 900}) as context:
        page = page_loads.open_watched(context)
        page.goto(service.url + place)
        page.wait_for_selector("main li, main tbody tr")
        page.wait_for_selector("[data-live=true]")
        assert page_loads.await_content(page).shifts < 0.02


def test_a_training_with_a_hostile_name_is_text(window, service):
    with service.client() as client:
        submitted(client, labels={"run": LABEL, "step": "1"})
    page = window.open(f"/ui/datasets/tiny/test/runs/{quote(LABEL, safe='')}")
    page.wait_for_selector("circle.point")
    assert "taken" not in page.title().replace("'taken'", "")
    assert page.locator("main img").count() == 0
    window.open("/ui/datasets/tiny/test/runs")
    page.wait_for_selector(".cards strong:has-text('<img')")
    assert page.locator("main img").count() == 0


def test_of_a_step_that_was_evaluated_twice_the_latest_counts(window, service):
    with service.client() as client:
        for step, text in (("1", "w3"), ("2", "w3 w4"), ("2", "w5 w6 w7")):
            captions = [{**one, "caption": text} for one in page_runs.CAPTIONS]
            made = submitted(client, captions=captions, labels={"run": "twice", "step": step})
    page = window.open("/ui/datasets/tiny/test/runs/twice")
    page.wait_for_selector("circle.point")
    rows = page.get_by_role("region", name="Table of steps").locator("tbody tr")
    assert rows.count() == 2
    assert rows.nth(1).locator(f"a[href='/ui/evaluations/{made}']").count() == 1
    assert page.locator("circle.point").count() == 2


def test_a_plot_keeps_the_focus_while_a_step_is_added(window, service):
    def submit(step):
        captions = [{**one, "caption": f"w{step} w9"} for one in page_runs.CAPTIONS]
        with service.client() as client:
            submitted(client, captions=captions, labels={"run": "growing", "step": str(step)})

    submit(1)
    submit(2)
    page = window.open("/ui/datasets/tiny/test/runs/growing")
    page.wait_for_selector("[data-live=true]")
    cursor = page.get_by_role("slider").first
    cursor.focus()
    submit(3)
    page.locator("figure >> nth=0 >> circle.series-0 >> nth=2").wait_for()
    assert cursor.evaluate("each => each === document.activeElement")
    page.keyboard.press("End")
    assert cursor.get_attribute("aria-valuenow") == "3"


@pytest.mark.parametrize("place", ["/", _SLOW])
def test_what_has_the_focus_keeps_it_while_others_evaluate(window, service, trainings, place):
    page = window.open(place)
    page.wait_for_selector("[data-live=true]")
    focused = page.locator("[role=slider], .cards a").first
    focused.focus()
    text = focused.evaluate("each => each.getAttribute('aria-label') ?? each.textContent")
    with service.client() as client, page.expect_response("**/v1/evaluations?*") as answered:
        submitted(client, labels={"file": "elsewhere.json"})
    answered.value.finished()
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => resolve()))")
    kept = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    assert page.evaluate(kept) == text
