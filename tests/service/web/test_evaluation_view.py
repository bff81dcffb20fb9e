"""One evaluation in a browser, against what the interface itself answers."""

import json

import pytest
from sqlalchemy import update

from helpers import page_runs
from helpers.fleet import bundle
from helpers.page_runs import IMAGES, submitted
from helpers.page_views import read_answer
from service.engine.tables import runs

pytestmark = pytest.mark.processes
NOW = "2026-03-01T12:00:00Z"


def _score_row(page, title):
    return page.get_by_role("region", name="Table of scores").locator("tr", has_text=title)


def test_scores_gates_and_labels_are_shown(window, service, evaluated):
    """What hostile people have written in a label is text."""
    page = window.open(f"/ui/evaluations/{evaluated['captions']}")
    row = _score_row(page, "CIDEr-D")
    row.wait_for()
    score = read_answer(service, f"/v1/evaluations/{evaluated['captions']}")["scores"]["cider_d"]
    shown = row.locator("td.number").all_inner_texts()
    assert float(shown[0]) == pytest.approx(score["value"], abs=5e-4)
    ends = [float(each.strip("[]").replace("−", "-")) for each in shown[1].split(", ")]
    assert ends == pytest.approx(score["interval"], abs=5e-4)
    row.locator("button.metric").click()
    page.wait_for_selector(f"[popover] code:text-is('{score['signature']}')")
    page.wait_for_selector(".label:has-text('<img')")
    assert "taken" not in page.title()
    assert page.locator("main img").count() == 0
    assert page.locator("h1").inner_text() == page_runs.LABEL


def test_a_gate_tells_its_difference_against_the_margin(window, service, evaluated):
    given = {"dataset": "tiny/test", "labels": {"file": "candidate"}}
    captions = [{**each, "caption": "w1 w9"} for each in page_runs.CAPTIONS]
    with service.client() as client:
        gated = submitted(
            client,
            **given,
            captions=captions,
            gates=["not_worse(cider_d, 0.001)"],
            baseline=evaluated["passed"],
        )
    page = window.open(f"/ui/evaluations/{gated}")
    (gate,) = read_answer(service, f"/v1/evaluations/{gated}")["gates"]
    told = gate["scores"]["cider_d"]
    article = page.locator("article.gate")
    name = "not worse than the baseline by more than 0.001 in CIDEr-D"
    assert article.locator("h3").inner_text() == f"{name} {gate['verdict']}"
    assert article.locator("svg text:text-is('margin −0.001')").is_visible()
    assert article.locator("svg text:text-is('0')").is_visible()
    page.wait_for_selector("p.lead:has-text('main')")
    seen = page.locator("main").inner_text()
    side = "below" if told["difference"] < 0 else "above"
    assert seen.count(f" {side} main; the gate allows {told['margin']:.3f}.") == 1
    assert f"CIDEr-D is {abs(told['difference']):.3f} [" in page.locator("p.lead").inner_text()
    assert "ev_" not in seen
    shown = article.locator("td.number").all_inner_texts()
    assert float(shown[2].split("\n")[0].replace("−", "-").lstrip("+")) == pytest.approx(
        told["difference"], abs=5e-4
    )
    margin, zero, tick = article.get_by_role("img").evaluate(
        """svg => {
          const marks = [...svg.querySelectorAll(".mark")];
          const at = (name) =>
            marks.find((each) => each.textContent.startsWith(name)).x1.baseVal.value;
          const tick = svg.querySelector(".tick").getBBox();
          return [at("the margin"), at("no difference"), tick.x + tick.width / 2];
        }"""
    )
    per_unit = (zero - margin) / told["margin"]
    assert (tick - zero) / per_unit == pytest.approx(told["difference"], rel=0.1)


def test_why_a_gate_failed_is_told_once(window, service, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['failed']}")
    page.locator("article.gate").wait_for()
    score = read_answer(service, f"/v1/evaluations/{evaluated['failed']}")["scores"]["cider_d"]
    reason = f"CIDEr-D {score['value']:.3f} is below 9."
    lead = page.locator("p.lead").inner_text()
    assert lead.startswith(f"It fails its gate: {reason} CIDEr-D {score['value']:.3f}")
    assert "One caption for all" in lead
    seen = page.locator("main").inner_text()
    assert seen.count(reason) == 1
    assert "cider_d" not in seen
    assert page.locator("dd .badge").all_inner_texts()[:2] == ["done", "gate failed"]
    tops = [
        page.locator(f"[aria-label={each}]").bounding_box()["y"] for each in ("Gates", "Scores")
    ]
    assert tops[0] < tops[1]


def test_images_that_fell_most_are_listed_where_a_gate_failed(window, service):
    """The largest fall first, with both captions and a link to the image beside the baseline."""
    with service.client() as client:
        assert client.put("/v1/datasets/fallen", content=bundle(IMAGES, seed=6)).status_code == 201
        place = "/v1/datasets/fallen/images/{}.jpg/references"
        said = [client.get(place.format(at)).json()["references"][0] for at in range(IMAGES)]
        good, bad = (
            [
                {"image": f"{at}.jpg", "caption": "w1 w2" if at in broken else text}
                for at, text in enumerate(said)
            ]
            for broken in ((), range(8))
        )
        baseline = submitted(client, dataset="fallen/test", captions=good)
        failed = submitted(
            client,
            dataset="fallen/test",
            captions=bad,
            gates=["not_worse(cider_d, 0.01)"],
            baseline=baseline,
        )
    page = window.open(f"/ui/evaluations/{failed}")
    drops = read_answer(service, f"/v1/evaluations/{failed}/drops")
    rows = page.get_by_role("region", name="Images that fell most").locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(drops["images"]) > 0
    for row, item in zip(rows.all(), drops["images"], strict=True):
        link = row.locator("a.main")
        assert link.inner_text() == item["image"]
        assert link.get_attribute("href").endswith(f"/images/{item['image']}?with={baseline}")
        shown = row.locator("td.number strong").inner_text()
        fall = item["scores"][drops["metric"]]["difference"]
        assert float(shown.replace("−", "-")) == pytest.approx(fall, abs=5e-4)
        assert item["a"] in row.inner_text()
        assert item["b"] in row.inner_text()


def test_falls_are_told_with_ways_to_their_causes(window, service, training):
    other = training[0]
    fall = {
        "metric": "cider_d",
        "kind": "run",
        "step": 3.0,
        "value": 0.1,
        "expected": 0.4,
        "difference": -0.25,
        "interval": [-0.3, -0.2],
        "beside": {"evaluation": other, "labels": {"run": "cold", "step": "3"}},
    }
    with service.records.engine.begin() as connection:
        query = update(runs).where(runs.c.id == training[2])
        connection.execute(query.values(falls=json.dumps([fall])))
    assert read_answer(service, f"/v1/evaluations/{training[2]}")["falls"] == [fall]
    page = window.open(f"/ui/evaluations/{training[2]}")
    notice = page.get_by_role("region", name="Falls")
    notice.wait_for()
    finding = "Step 3 is 0.250 CIDEr-D below cold at the same step."
    assert (
        page.locator("main").inner_text().count(finding) == 1
    )  # by the sentence, or else below it
    assert page.locator("dd .badge.bad").inner_text() == "▼ behind cold"
    way = notice.locator(f"a[href='/ui/compare?a={training[2]}&b={other}']")
    assert way.inner_text() == "Compare with cold, step 3"
    assert page.locator("dd a[href='/ui/datasets/tiny/test/runs/warm']").count() == 1
    page = window.open(f"/ui/evaluations/{other}")
    _score_row(page, "CIDEr-D").wait_for()
    assert page.get_by_role("region", name="Falls").count() == 0


def test_pre_gen_scores_are_folded_and_tasks_too_when_all_are_done(window, service, training):
    page = window.open(f"/ui/evaluations/{training[0]}")
    _score_row(page, "CIDEr-D").wait_for()
    run = read_answer(service, f"/v1/evaluations/{training[0]}")
    assert page.locator("details[open]").count() == 0
    page.click(f"summary:has-text('{len(run['tasks'])} tasks, all done')")
    names = page.get_by_role("region", name="Table of tasks").locator("th[scope=row]")
    shown = names.locator("span")
    assert shown.evaluate_all("all => all.map((each) => each.title)") == [
        each["name"] for each in run["tasks"]
    ]
    assert "pre-gen scores" in shown.all_inner_texts()
    families = {name: each["family"] for name, each in run["scores"].items()}
    shown = _score_row(page, "").locator("th .metric")
    titles = shown.evaluate_all("all => all.map((each) => each.title)")
    assert titles[0] == "cider_d"  # the usual one is first
    assert sorted(titles) == sorted(
        name for name, family in families.items() if family == "postgen"
    )


def test_an_evaluation_that_is_not_there_is_told_plainly(window):
    window.expected.add("404")
    page = window.open("/ui/evaluations/ev_gone")
    page.wait_for_selector("h1:has-text('No such evaluation')")
    told = page.locator("main").inner_text()
    assert "It was deleted, another team has it, or its address is wrong." in told
    assert page.locator("[role=alert], [aria-busy]").count() == 0
    page.click("main a:text-is('Home')")
    page.wait_for_selector("h1:text-is('Home')")


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([], "No worker is running. Its tasks wait until one starts."),
        (["idle", "not_answering"], "1 of 2 workers is not answering. Its tasks may wait."),
        (["idle", "busy"], None),
    ],
)
def test_workers_that_do_not_answer_are_told_while_a_run_waits(window, service, states, told):
    page = window.page
    workers = [
        {"name": f"w{at}", "role": "metrics", "state": state, "since": NOW, "task": None}
        for at, state in enumerate(states)
    ]
    page.route("**/v1/workers", lambda route: route.fulfill(json={"items": workers}))
    with service.client() as client, service.held():
        own = [{**each, "caption": f"w1 {told or 'none'}"} for each in page_runs.CAPTIONS]
        made = submitted(client, captions=own)
        window.open(f"/ui/evaluations/{made}")
        page.get_by_role("region", name="Tasks", exact=True).wait_for()
        notice = page.locator("main .notice.bad")
        assert notice.all_inner_texts() == ([f"{told} Workers"] if told else [])
    page.wait_for_selector("dd .badge.succeeded")
    assert notice.count() == 0


def test_times_of_what_runs_are_told_and_pass(window, service, evaluated):
    """Its end is told once every unfinished task tells its own; a task's time goes on."""
    page = window.page
    page.clock.install(time="2026-03-01T11:59:00Z")
    page.clock.pause_at(NOW)
    run = read_answer(service, f"/v1/evaluations/{evaluated['captions']}")
    task = run["tasks"][-1] | {
        "name": "captions",
        "status": "running",
        "progress": {"done": 1, "total": 4},
        "started_at": "2026-03-01T11:59:40Z",
        "seconds": 0.032,  # as it was when the run last changed
        "seconds_left": 60.0,
        "cached": False,
    }
    waiting = task | {"name": "cider_d", "status": "waiting", "seconds": None, "seconds_left": None}
    run |= {"status": "running", "finished_at": None, "created_at": "2026-03-01T11:58:00Z"}
    given = [[task], [task, waiting]]
    page.route(
        f"**/v1/evaluations/{run['id']}*",
        lambda route: route.fulfill(json=run | {"tasks": given[0]}),
    )
    window.open(f"/ui/evaluations/{run['id']}")
    told = page.locator("dd", has=page.locator("progress")).first
    told.get_by_text("2 min since submission, about 60 s left").wait_for()
    time = page.get_by_role("region", name="Table of tasks").locator("td.number").first
    assert time.inner_text() == "20 s"
    page.clock.run_for(10_000)
    page.wait_for_selector("td.number:text-is('30 s')")
    given.pop(0)
    page.reload()
    told.get_by_text("2 min since submission").wait_for()
    assert "left" not in told.locator(".sub").last.inner_text()


def test_a_rank_is_told_beside_the_score(window, service, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['checkpoint']}")
    page.wait_for_selector("p.lead strong")
    run = read_answer(service, f"/v1/evaluations/{evaluated['checkpoint']}")
    board = read_answer(service, "/v1/datasets/tiny/leaderboard?metric=cider_d&limit=100")
    (own,) = [each for each in board["items"] if each["evaluation"] == run["id"]]
    lead = page.locator("p.lead").inner_text()
    if own is board["items"][0]:
        assert "It leads tiny/test" in lead
    else:
        assert f"Rank {own['rank']} on tiny/test" in lead
        assert f"leads with {board['items'][0]['value']:.3f}." in lead


def test_on_a_phone_scores_come_before_properties(chromium, service, evaluated):
    place = f"{service.url}/ui/evaluations/{evaluated['passed']}"
    for width, is_first in ((390, True), (1280, False)):
        with chromium.opened(place, viewport={"width": width, "height": 800}) as page:
            page.get_by_role("region", name="Table of scores").wait_for()
            tops = [
                page.locator(each).bounding_box()["y"]
                for each in ("[aria-label=Scores]", ".facts.panel", "[aria-label=Tasks]", ".last")
            ]
            assert (tops[0] < tops[1]) is is_first
            assert tops[1] < tops[2] < tops[3]


def test_nothing_moves_while_an_evaluation_is_loaded(chromium, service, evaluated):
    with chromium.new_context(viewport={"width": 390, "height": 800}) as context:
        page = context.new_page()
        page.add_init_script(page_runs.SHIFTS)
        page.goto(f"{service.url}/ui/evaluations/{evaluated['failed']}")
        page.wait_for_selector("article.gate")
        page.wait_for_selector("[data-live=true]")
        assert page.evaluate("window.shifted") < 0.02
