"""Jobs: what runs, is tried again and is queued; stop buttons, workers, limits."""

import re

import pytest

from helpers.page_runs import CAPTIONS, submitted
from service.access import keys
from service.contract.askers import Scope
from service.contract.quotas import QuotaTable

pytestmark = pytest.mark.processes

NOW = "2026-03-01T12:00:00Z"


def _section(page, name):
    return page.locator(f"section[aria-label='{name}']")


def _task(name="columns", status="running", **more):
    return {
        "name": name,
        "kind": name,
        "status": status,
        "progress": {"done": 0, "total": 0},
        "attempts": 1,
        "attempts_allowed": 3,
        "seconds": None,
        "seconds_left": None,
        "retry_at": None,
        "cached": False,
        "error": None,
        **more,
    }


def _run(identity, tasks, **more):
    return {
        "id": identity,
        "status": "running",
        "labels": {"run": identity},
        "dataset": {"name": "tiny", "version": "v1", "digest": "sha256:0", "split": "test"},
        "tasks": tasks,
        "error": None,
        "created_at": "2026-03-01T11:57:00Z",
        **more,
    }


def _answer(page, place, items):
    page.route(f"**/v1/{place}", lambda route: route.fulfill(json={"items": items, "next": None}))


@pytest.fixture
def clocked(window):
    """A window at noon of a day, where time passes by the test alone."""
    window.page.clock.install(time="2026-03-01T11:59:00Z")
    window.page.clock.pause_at(NOW)
    return window


def test_what_is_queued_is_shown_and_stopped(window, service):
    page = window.page
    with service.client() as client, service.held():
        queued = submitted(client, postgen=["meteor"], labels={"name": "to be stopped"})
        other = submitted(client, postgen=["rouge_l"], labels={"name": "stays"})
        window.open("/ui/now")
        row = _section(page, "Queued").locator("tr", has_text="to be stopped")
        row.locator(".badge.queued").wait_for()
        assert page.locator(".lead strong").inner_text().startswith("0 jobs running, 2 queued")
        assert row.locator("a.main").get_attribute("href") == f"/ui/evaluations/{queued}"
        stop = row.locator("button")
        assert stop.get_attribute("aria-label") == "Stop to be stopped"
        stop.focus()
        third = submitted(client, postgen=["bleu"], labels={"name": "third"})
        page.wait_for_selector(f"main a[href$='/{third}']")  # the list is another; the focus stays
        assert stop.evaluate("each => each === document.activeElement")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role(
            "heading",
            name=re.compile(r"^Stop to be stopped on tiny.test \(queued, \d of \d+ tasks\)\?$"),
        ).wait_for()
        page.keyboard.press("Enter")  # twice the same key stops nothing
        dialog.wait_for(state="detached")
        assert stop.evaluate("each => each === document.activeElement")
        assert client.get(f"/v1/evaluations/{queued}").json()["status"] == "queued"
        page.keyboard.press("Enter")
        dialog.get_by_role("button", name="Stop it").click()
        page.locator("[role=status]").get_by_text("Stopped to be stopped.").wait_for()
        row.wait_for(state="detached")
        assert client.get(f"/v1/evaluations/{queued}").json()["status"] == "canceled"
        assert client.get(f"/v1/evaluations/{other}").json()["status"] == "queued"
    _section(page, "Queued").locator("text=Nothing is queued.").wait_for()


def test_a_stop_that_is_refused_is_told(window, service):
    page = window.page
    with service.client() as client, service.held():
        own = [{**each, "caption": "w9 w7 w5"} for each in CAPTIONS]
        submitted(client, captions=own, labels={"name": "kept"})
        problem = {"code": "forbidden", "detail": "the key has not the scope submit"}
        page.route("**/cancel", lambda route: route.fulfill(status=403, json=problem))
        window.expected.add("403")
        window.open("/ui/now")
        row = page.locator(":is([aria-label=Running], [aria-label=Queued]) tr", has_text="kept")
        row.locator("button").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
        page.locator("dialog [role=alert]:has-text('the key has not the scope submit')").wait_for()


def test_runs_of_every_kind_are_called_by_their_names(window, service, evaluated):
    a, b = evaluated["captions"], evaluated["checkpoint"]
    page = window.page
    with service.client() as client, service.held():
        made = client.post("/v1/comparisons", json={"a": b, "b": a})
        assert made.status_code in (200, 201, 202), made.text
        client.post("/v1/probes", json={"dataset": "tiny/test"})
        window.open("/ui/now")
        queued = _section(page, "Queued")
        link = queued.locator("a:text-is('Comparison')")
        link.wait_for()
        assert link.get_attribute("href") == f"/ui/compare?a={b}&b={a}"
        assert link.get_attribute("title") == made.json()["id"]
        probes = queued.locator("a:text-is('Probes of metrics')")
        assert probes.get_attribute("href") == "/ui/datasets/tiny/test/trust"


def test_the_end_of_a_job_is_told_wide_and_on_a_phone(clocked):
    page = clocked.page
    last = _run("last", [_task("features", "done"), _task(seconds_left=40.0)])
    early = _run("early", [_task(seconds_left=40.0), _task("cider_d", "waiting")])
    for place, runs in (("running*", [last, early]), ("queued*", [])):
        _answer(page, f"evaluations?status={place}", runs)
    clocked.open("/ui/now")
    rows = _section(page, "Running").locator("tbody tr")
    rows.nth(1).wait_for()
    times = [row.locator(".job-time").inner_text().split("\n") for row in rows.all()]
    assert [[each for each in told if each] for told in times] == [
        ["3 min", "about 40 s left"],
        ["3 min"],
    ]
    page.set_viewport_size({"width": 390, "height": 800})
    rows.first.get_by_text("3 min since submission, about 40 s left").wait_for()
    assert rows.nth(1).locator(".on-phone").inner_text() == "3 min since submission"


def test_progress_and_attempts_are_told_in_words(clocked):
    page = clocked.page
    runs = [
        _run(
            "warm",
            [
                _task("features", "done"),
                _task(progress={"done": 31, "total": 50}, seconds_left=40.0),
                _task("cider_d", "waiting"),
            ],
        ),
        _run(
            "flaky",
            [
                _task("features", "done"),
                _task(
                    status="ready",
                    attempts=1,
                    retry_at="2026-03-01T12:00:20Z",
                    error={"code": "worker_lost", "detail": "the worker was <b>lost</b>"},
                ),
            ],
        ),
    ]
    page.route(
        re.compile("/v1/evaluations"),
        lambda route: route.fulfill(
            json={"items": runs if "status=running" in route.request.url else [], "next": None}
        ),
    )
    clocked.open("/ui/now")
    running = _section(page, "Running").locator("tbody tr")
    running.wait_for()
    assert (
        running.locator("td").nth(2).inner_text().strip()
        == "1 of 3 tasks · word probabilities 62 %, 40 s left"
    )
    bar = running.locator("progress")
    assert bar.get_attribute("aria-label") == "1 of 3 tasks"
    assert bar.get_attribute("value") == "1"
    assert running.locator("td").nth(3).inner_text().strip() == "3 min"
    retrying = _section(page, "Retrying").locator("tbody tr")
    assert retrying.locator(".badge").inner_text() == "retrying"
    said = "1 of 2 tasks · word probabilities: attempt 2 of 3 in 20 s (the worker was <b>lost</b>)"
    assert retrying.locator("td").nth(2).inner_text().strip() == said
    page.clock.run_for(10_000)
    retrying.locator("text=attempt 2 of 3 in 10 s").wait_for()
    assert page.locator(".lead strong").inner_text().startswith("2 jobs running, 0 queued")


def _worker(name, role, state, task=None):
    return {"name": name, "role": role, "state": state, "since": NOW, "task": task}


def _queue(name, waiting, oldest):
    return {
        "name": name,
        "waiting": waiting,
        "running": 0,
        "yours": waiting,
        "oldest_seconds": oldest,
    }


def test_workers_that_do_not_answer_are_not_called_idle(window):
    page = window.page
    workers = [
        _worker("gone", "inference", "not_answering"),
        _worker("deaf", "metrics", "not_answering"),
        _worker("free", "parsing", "idle"),
    ]
    queues = [_queue("metrics", 2, 45.0), _queue("parsing", 1, 3.0), _queue("inference", 0, None)]
    _answer(page, "workers", workers)
    _answer(page, "queues", queues)
    window.open("/ui/now")
    rows = _section(page, "Workers").locator("tbody tr")
    rows.nth(2).wait_for()
    shown = {
        row.locator("th").inner_text(): row.locator(".badge").inner_text() for row in rows.all()
    }
    assert shown == {"gone": "not answering", "deaf": "not answering", "free": "idle"}
    assert page.locator(".lead strong").inner_text().startswith("2 of 3 workers are not answering")
    waits = _section(page, "Task queues").locator("tbody tr", has_text="metrics")
    assert waits.locator("td").all_inner_texts() == ["2", "0", "2", "45 s"]


def test_a_job_is_named_in_its_list_and_beside_its_worker(window):
    page = window.page
    task = {"name": "columns", "evaluation": "warm"}
    _answer(page, "workers", [_worker("one", "inference", "busy", task)])
    for place, runs in (("running*", [_run("warm", [_task()])]), ("queued*", [])):
        _answer(page, f"evaluations?status={place}", runs)
    window.open("/ui/now")
    for section in ("Running", "Workers"):
        row = _section(page, section).locator("tbody tr")
        row.wait_for()
        assert row.locator("a[href='/ui/evaluations/warm']").all_inner_texts() == ["warm"]


def test_without_workers_it_is_told_what_that_means(window):
    _answer(window.page, "workers", [])
    window.open("/ui/now")
    window.page.wait_for_selector(".notice:has-text('No worker is running')")


def test_failures_are_told_with_their_reasons(window, service):
    with service.client() as client:
        failed = client.get("/v1/evaluations?status=failed&limit=10").json()["items"]
    window.open("/ui/now")
    section = _section(window.page, "Recent failures")
    section.wait_for()
    assert section.locator("tbody tr").count() == len(failed)
    for run in failed:
        row = section.locator("tr", has=window.page.locator(f"a[href$='/{run['id']}']"))
        why = row.locator(f"span[title='{run['error']['code']}']").inner_text()
        assert why.lower() == run["error"]["detail"].lower()


def test_an_admin_sees_keys_and_what_is_used_of_limits(chromium, serve_here, tmp_path):
    chromium.expected.add("401")
    allowed = QuotaTable(teams={"red": {"runs": 20, "stored_bytes": 5_000_000}})
    with (
        serve_here(tmp_path / "home", allowed=allowed) as asked,
        chromium.opened(f"{asked.url}/ui/now") as page,
    ):
        _, key = keys.create_key(asked.records, "red", Scope.ADMIN, "of the nightly build")
        keys.create_key(asked.records, "blue", Scope.READ, "of others")
        page.reload()
        page.get_by_label("This service needs a key").fill(key)
        page.click("text=Sign in")
        table = page.get_by_role("region", name="Keys of the team")
        table.wait_for()
        assert "of the nightly build" in table.inner_text()
        assert "of others" not in page.inner_text("main")
        facts = dict(
            zip(
                page.locator("dt").all_inner_texts(),
                page.locator("dd").all_inner_texts(),
                strict=True,
            )
        )
        assert (facts["Team"], facts["Scope"]) == ("red", "admin")
        assert facts["Unfinished runs"].strip() == "0 of 20"
        assert facts["Stored uploads"].strip() == "0 B of 5 MB"
        bar = page.get_by_role("progressbar", name="Unfinished runs: 0 of 20")
        assert bar.get_attribute("max") == "20"
