"""The page, as one sees and uses it: each view in a real browser, on a real service."""

import re
from urllib.parse import urlsplit

import httpx
import pytest

from helpers.fleet import bundle, until_ended
from helpers.page_runs import CAPTIONS, submitted
from service.access import keys
from service.contract.askers import Scope

pytestmark = pytest.mark.processes


def _violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"]])
        for each in axe.Axe().run(page).response["violations"]
    ]


def test_an_empty_service_says_how_to_begin(chromium, serve_here, tmp_path):
    with serve_here(tmp_path / "home") as empty, chromium.opened(empty.url) as page:
        add, score = (page.locator("main section").nth(at) for at in (0, 1))
        score.wait_for()
        end = f"--url {empty.url} --dataset my-dataset/test --wait"
        assert add.locator("pre").all_inner_texts() == [
            f"prescore datasets add --url {empty.url} my-dataset my-dataset/"
        ]
        assert score.locator("pre").all_inner_texts() == [
            f"prescore submit captions.json {end}",
            f"prescore submit model.safetensors {end}",
        ]
        assert "Nothing has been scored here yet." in page.inner_text("p.lead")
        score.get_by_text("Drop captions or a model here").wait_for()


def test_the_first_evaluation_of_a_service_is_shown_at_once(chromium, serve_here, tmp_path):
    with serve_here(tmp_path / "home") as empty, chromium.opened(empty.url) as page:
        page.wait_for_selector("[data-live=true]")
        page.wait_for_selector("text=Nothing has been scored here yet.")
        with empty.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(6)).status_code == 201
            made = submitted(client, captions=CAPTIONS[:6], labels={"file": "first.json"})
        page.wait_for_selector(f"tbody a[href$='/{made}']:text-is('first.json')")
        assert page.locator("text=Nothing has been scored here yet.").count() == 0


def test_programs_are_answered_with_json_as_before(service):
    assert httpx.get(service.url).json()["docs"] == "/docs"
    assert httpx.get(service.url, headers={"Accept": "*/*"}).json()["name"] == "Prescore"


def test_an_evaluation_changes_as_it_goes_on(window, service):
    window.open("/")
    window.page.wait_for_selector("[data-live=true]")
    with service.client() as client, service.held():
        made = submitted(client, labels={"who": "live"}, postgen=["bleu", "rouge_l"])
        window.page.click(f"a[href$='/{made}']")
        window.page.wait_for_selector("dd .badge.queued, dd .badge.running")
    window.page.wait_for_selector("dd .badge.succeeded")


def test_a_second_tab_hears_through_the_first(chromium, service):
    with chromium.new_context() as context:
        first, second = context.new_page(), context.new_page()
        asked = []
        second.on("request", lambda request: asked.append(request.url))
        for page in (first, second):
            page.goto(service.url)
            page.wait_for_selector("[data-live=true]")
        assert not any("/v1/events" in url for url in asked)
        with service.client() as client:
            made = submitted(client, labels={"who": "two tabs"})
        second.wait_for_selector(f"a[href$='/{made}']")
        first.close()
        second.wait_for_selector("[data-live=true]")


def test_after_a_break_a_view_asks_anew(chromium, service):
    """A stream tells no deletions, and nothing of what ended long before it was opened again."""
    with chromium.new_context() as context, service.client() as client:
        made = submitted(client, labels={"who": "gone"})
        until_ended(client, made, 60)
        page, streams = context.new_page(), []
        row = f"a[href$='/{made}']"

        def break_once(route):
            streams.append(route)
            if len(streams) == 1:
                route.fulfill(content_type="text/event-stream", body="retry: 2000\n\n")
            else:
                page.wait_for_selector(row)
                assert client.delete(f"/v1/evaluations/{made}").status_code == 204
                route.continue_()

        page.route("**/v1/events*", break_once)
        page.goto(service.url)
        page.wait_for_selector(row)
        page.wait_for_selector(row, state="detached")
        assert len(streams) == 2


def test_what_is_not_there_is_told_in_the_services_words_and_not_waited_for(window):
    window.expected.add("404")
    for part in ("/captions", "/images/1.jpg"):
        window.open(f"/ui/evaluations/ev_absent{part}")
        window.page.wait_for_selector("[role=alert]:has-text('ev_absent')")
        window.page.wait_for_selector("[aria-busy]", state="detached")
    window.open("/ui/nothing/here")
    window.page.wait_for_selector("h1:has-text('Page not found')")


PLACES = {
    "home": ("/", "main tbody tr"),
    "evaluation": ("/ui/evaluations/{failed}", ".gate"),
    "captions": ("/ui/evaluations/{checkpoint}/captions", ".windowed a.main"),
    "image": ("/ui/evaluations/{checkpoint}/images/1.jpg", ".strip"),
    "compare": ("/ui/compare?a={failed}&b={checkpoint}", ".layers"),
    "board": ("/ui/datasets/tiny/test?metrics=bleu_4", ".windowed a.main"),
    "trainings": ("/ui/datasets/tiny/test/runs", ".cards > li"),
    "training": ("/ui/datasets/tiny/test/runs/warm", "circle.best"),
    "step": ("/ui/datasets/tiny/test/runs/warm?step=2", "aside ol .caption"),
    "trust": ("/ui/datasets/tiny/test/trust", "section >> nth=2"),
    "dataset": ("/ui/datasets/tiny/test/dataset", ".cards li"),
    "pregen": ("/ui/datasets/tiny/test/pregen", "[role=gridcell]"),
    "now": ("/ui/now", "[aria-label='Task queues'] tbody"),
    "missing": ("/ui/nowhere", "h1"),
    "api": ("/docs", "h1"),
}


@pytest.mark.parametrize("view", PLACES)
def test_nobody_is_left_out(chromium, service, evaluated, training, view):
    """On a telephone, and as axe judges: names, roles, contrasts, order; by day and by night."""
    place, shown = PLACES[view]
    telephone = {"width": 390, "height": 800}
    with chromium.opened(
        service.url + place.format(**evaluated), color_scheme="light", viewport=telephone
    ) as page:
        page.wait_for_selector(shown)
        page.wait_for_selector("[aria-busy]", state="detached")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.set_viewport_size({"width": 1280, "height": 720})
        assert _violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") != (
            "rgb(255, 255, 255)"
        )
        assert _violations(page) == []


@pytest.mark.parametrize("name", ["main.js", "parts/frame.js"])
def test_a_page_whose_file_does_not_arrive_says_what_to_do(chromium, service, name):
    chromium.expected |= {"500", "ERR_FAILED"}
    with chromium.new_context() as context:
        page = context.new_page()
        fail = {"main.js": lambda each: each.fulfill(status=500)}
        page.route(f"**/{name}", fail.get(name, lambda each: each.abort()))
        page.goto(service.url)
        page.wait_for_selector("text=Load the page again")
        assert "/docs" in page.inner_text("body")
        page.unroute_all()
        page.click("text=Load the page again")
        page.wait_for_selector("h1")
        assert page.locator("text=Load the page again").count() == 0


def test_without_scripts_the_page_says_what_it_needs(chromium, service):
    with chromium.opened(service.url, java_script_enabled=False) as page:
        page.wait_for_selector("p:has-text('needs JavaScript') a[href='/docs']")
        assert not page.locator("text=Load the page again").is_visible()


def test_it_is_small(chromium, service, evaluated, training):
    """At most 60 kB of scripts and styles, packed, in at most 30 requests. What the first view
    imports is sent for at once, and nothing else.
    """
    with chromium.new_context() as context:
        page, found = context.new_page(), []
        page.on("response", lambda answer: found.append(answer))  # noqa: PLW0108
        page.goto(service.url)
        page.wait_for_selector("[data-live=true]")
        files = [each for each in found if "/ui/files/" in each.url]
        sizes = [int(each.headers["content-length"]) for each in files]
    print(f"{len(found)} requests; {len(files)} files of {sum(sizes) / 1000:.1f} kB")
    assert len(found) <= 30
    assert sum(sizes) <= 60_000
    html = httpx.get(service.url, headers={"Accept": "text/html"}).text
    scripts = {urlsplit(each.url).path for each in files if each.url.endswith(".js")}
    assert set(re.findall(r'rel="modulepreload" href="([^"]+)"', html)) == scripts


def test_files_are_of_one_version_and_kept(service):
    html = httpx.get(service.url, headers={"Accept": "text/html"})
    assert "script-src 'self'" in html.headers["Content-Security-Policy"]
    (script,) = re.findall(r'src="(/ui/files/[^"]+)"', html.text)
    answer = httpx.get(service.url + script)
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"].startswith("text/javascript")
    other = re.sub("/ui/files/[0-9a-f]+", "/ui/files/0", script)
    assert httpx.get(service.url + other).status_code == 404
    assert httpx.get(f"{service.url}/ui/files/x/..%2f..%2fapp.py").status_code == 404


def test_one_signs_in_with_a_key_that_no_script_can_read(chromium, serve_here, tmp_path):
    chromium.expected.add("401")
    with serve_here(tmp_path / "home") as asked, chromium.new_context() as context:
        _, key = keys.create_key(asked.records, "red", Scope.SUBMIT)
        page = context.new_page()
        page.goto(asked.url)
        field = page.get_by_label("This service needs a key")
        field.fill("psk_wrong")
        page.click("text=Sign in")
        page.wait_for_selector("[role=alert]:has-text('expected a valid key')")
        field.fill(key)
        page.click("text=Sign in")
        page.wait_for_selector("text=Nothing has been scored here yet.")
        page.wait_for_selector("[data-live=true]")
        assert key not in page.evaluate("document.cookie + JSON.stringify(localStorage)")
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("text=Sign out")
        page.wait_for_selector("text=This service needs a key")
        assert context.cookies() == []


def test_another_site_cannot_use_ones_key(serve_here, tmp_path):
    with serve_here(tmp_path / "home") as asked:
        _, key = keys.create_key(asked.records, "red", Scope.SUBMIT)
        signed = httpx.post(f"{asked.url}/ui/session", json={"key": key})
        assert signed.status_code == 204
        own = {"Cookie": signed.headers["Set-Cookie"].split(";")[0]}
        place = f"{asked.url}/v1/uploads"
        assert httpx.get(f"{asked.url}/v1/me", headers=own).json()["team"] == "red"
        foreign = {**own, "Origin": "https://elsewhere.example"}
        assert httpx.post(place, headers=foreign).status_code == 403
        assert httpx.post(f"{asked.url}/ui/session", json={"key": "x" * 5000}).status_code == 413


def test_what_goes_wrong_in_a_window_is_noticed(chromium, service):
    """By the tests themselves: they would fail."""
    with chromium.opened(service.url) as page:
        page.wait_for_selector("h1")
        page.evaluate("console.error('seen')")
        page.evaluate("setTimeout(() => { throw new Error('thrown') })")
        page.evaluate("fetch('http://127.0.0.2:9/').catch(() => {})")
        page.evaluate("document.body.append(document.createElement('iframe'))")
        page.evaluate("new Promise((done) => setTimeout(done, 100))")
    told = "\n".join(chromium.wrong)
    chromium.wrong.clear()
    assert "seen" in told
    assert "thrown" in told
    assert "Content Security Policy" in told


def test_the_interface_is_described_in_the_same_frame_on_a_telephone_too(chromium, service):
    telephone = {"width": 390, "height": 800}
    with chromium.opened(f"{service.url}/docs", viewport=telephone) as page:
        places = page.eval_on_selector_all("header.frame nav a", "all => all.map(a => a.pathname)")
        assert places == ["/", "/ui/now", "/docs"]
        assert page.inner_text("header.frame [aria-current=page]") == "API"
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.click("header.frame nav a[href='/ui/now']")
        page.wait_for_selector("[aria-label='Task queues'] tbody")
