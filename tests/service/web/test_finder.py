"""The finder, by keys: Control+K, a part of a name, arrow keys, Enter, Escape."""

import json

import pytest

pytestmark = pytest.mark.processes

FIELD = "dialog input[role=combobox]"


def _opened(page):
    page.keyboard.press("Control+k")
    page.wait_for_selector(f"{FIELD}:focus")


def _active(page):
    """The option that the field says is active, which alone is selected."""
    identity = page.locator(FIELD).get_attribute("aria-activedescendant")
    (selected,) = page.locator("dialog [role=option][aria-selected=true]").all()
    assert selected.get_attribute("id") == identity
    return selected.locator("bdi").inner_text()


def _hits(page):
    """The names found, by their groups."""
    return {
        group.get_attribute("aria-label"): group.locator("[role=option] bdi").all_inner_texts()
        for group in page.locator("dialog [role=group]").all()
    }


def _item(kind, name, **more):
    none = dict.fromkeys(("dataset", "evaluation", "image", "run", "metric", "labels"))
    return {"kind": kind, "name": name, "detail": "", **none, **more}


@pytest.fixture
def answers(window):
    """What the finder is answered, by what it asks; what it has asked, and what was given up."""
    page, items, asked, given_up = window.page, {}, [], []

    def answer(route):
        text = route.request.url.split("q=")[1].split("&")[0]
        asked.append(text)
        if items.get(text) != "never":
            route.fulfill(json={"items": items.get(text, [])})

    page.route("**/v1/search?*", answer)
    page.on("requestfailed", lambda request: given_up.append(request.url))
    yield items, asked, given_up
    page.unroute_all(behavior="ignoreErrors")


def test_a_run_is_found_and_opened_by_keys_alone(window, service, training):
    page = window.open("/ui/nowhere")
    _opened(page)
    page.keyboard.type("war")
    page.wait_for_selector("dialog [role=group][aria-label='Training runs']")
    hits = _hits(page)
    assert hits["Training runs"] == ["warm"]
    assert set(hits["Evaluations"]) == {f"warm, step {at}" for at in (1, 2, 3)}
    with service.client() as client:
        items = client.get("/v1/search?q=war&limit=30").json()["items"]
    many = len(items)
    assert sum(map(len, hits.values())) == many
    page.wait_for_selector(f"dialog [role=status]:has-text('{many} found')")
    first = _active(page)
    assert first == hits["Evaluations"][0]
    page.keyboard.press("ArrowDown")
    assert _active(page) == hits["Evaluations"][1]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # from the first to the last
    page.keyboard.press("ArrowDown")
    assert _active(page) == first
    for _ in hits["Evaluations"]:
        page.keyboard.press("ArrowDown")
    assert _active(page) == "warm"
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/datasets/tiny/test/runs/warm")
    assert page.locator("dialog[open]").count() == 0


def test_each_kind_leads_to_its_place(window, answers, evaluated):
    items, _, _ = answers
    page, one = window.page, evaluated["checkpoint"]
    on = {"dataset": "tiny/test"}
    items["x"] = [
        _item("split", "tiny/test", **on),
        _item("training", "warm", run="warm", **on),
        _item("evaluation", one, evaluation=one, labels={"file": "a.json"}, **on),
        _item("image", "3.jpg", image="3.jpg", evaluation=one, **on),
        _item("metric", "cider_d", metric="cider_d"),
    ]
    places = {
        "a.json": f"/ui/evaluations/{one}",
        "warm": "/ui/datasets/tiny/test/runs/warm",
        "tiny/test": "/ui/datasets/tiny/test",
        "3.jpg": f"/ui/evaluations/{one}/images/3.jpg",
        "CIDEr-D": "/ui/datasets/tiny/test?metric=cider_d",
    }
    for at, (name, place) in enumerate(places.items()):
        window.open("/ui/nowhere")
        _opened(page)
        page.keyboard.type("x")
        page.wait_for_selector("dialog [role=option] bdi:text-is('CIDEr-D')")
        for _ in range(at):
            page.keyboard.press("ArrowDown")
        assert _active(page) == name
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{place}")


def test_escape_gives_the_focus_back(window):
    page = window.open("/ui/nowhere")
    link = page.locator("main a").first
    link.focus()
    for _ in range(2):
        _opened(page)
        page.keyboard.press("Control+k")  # it is open
        assert page.locator("dialog[open]").count() == 1
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
        assert link.evaluate("each => each === document.activeElement")
    assert page.locator("dialog.finder").count() == 0


def test_without_text_the_views_are_offered_and_without_results_it_is_said(window, answers):
    page = window.open("/ui/nowhere")
    page.click("header button.find")
    page.wait_for_selector(f"{FIELD}:focus")
    assert _hits(page) == {"Views": ["Home", "Jobs", "API"]}
    assert page.locator("dialog [role=status]").inner_text().startswith("Type a part of the name")
    page.keyboard.type("zzz")
    page.wait_for_selector("dialog [role=status]:has-text('Nothing has “zzz” in its name.')")
    assert page.locator(FIELD).get_attribute("aria-expanded") == "false"
    assert page.locator(FIELD).get_attribute("aria-activedescendant") is None
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.locator(FIELD).fill("jo")
    page.wait_for_selector("dialog [role=option]:has-text('Jobs')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/now")


def test_keys_in_a_row_are_one_question_and_older_ones_are_given_up(window, answers):
    items, asked, given_up = answers
    page = window.page
    page.clock.install()
    window.open("/ui/nowhere")
    page.clock.pause_at(page.evaluate("Date.now()") + 60_000)
    page.keyboard.press("Control+k")
    page.wait_for_selector(f"{FIELD}:focus")
    items["tin"] = "never"
    items["tiny"] = [_item("split", "tiny/test", dataset="tiny/test")]
    for letter in "tin":
        page.keyboard.type(letter)
        page.clock.run_for(50)
    assert asked == []
    with page.expect_request("**/v1/search?*"):
        page.clock.run_for(150)
    page.evaluate("0")  # the request is routed before this is answered
    assert asked == ["tin"]
    page.keyboard.type("y")
    page.keyboard.press("Enter")  # before the answer, which it waits for
    page.clock.run_for(150)
    page.wait_for_url("**/ui/datasets/tiny/test")
    assert asked == ["tin", "tiny"]
    assert len(given_up) == 1


def test_what_is_found_is_text_and_a_refusal_is_told(window, answers):
    items, _, _ = answers
    page = window.open("/ui/nowhere")
    hostile = "<img src=x onerror=document.title='owned'>"
    items["x"] = [_item("training", hostile, run=hostile, dataset="tiny/test")]
    _opened(page)
    page.keyboard.type("x")
    page.wait_for_selector("dialog [role=option] bdi")
    assert _hits(page) == {"Training runs": [hostile]}
    assert page.locator("dialog img").count() == 0
    problem = {"status": 422, "body": json.dumps({"code": "x", "detail": "too long a text"})}
    page.route("**/v1/search?*", lambda route: route.fulfill(**problem))
    window.expected.add("422")
    page.keyboard.type("y")
    page.wait_for_selector("dialog [role=alert]:has-text('too long a text')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_finder_leaves_nobody_out(chromium, service, training, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    telephone = {"width": 390, "height": 800}
    with chromium.opened(
        f"{service.url}/ui/nowhere", color_scheme=scheme, viewport=telephone
    ) as page:
        page.wait_for_selector("h1")
        _opened(page)
        page.keyboard.type("war")
        page.wait_for_selector("dialog [role=group][aria-label='Training runs']")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        found = axe.Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        height = page.locator("[role=option]").first.bounding_box()["height"]
        assert height >= 24
