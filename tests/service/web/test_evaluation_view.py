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
    assert article.locator("h3").inner_text() == f"{gate['gate']} {gate['verdict']}"
    page.wait_for_selector("p.lead:has-text('Against main')")
    seen = page.locator("main").inner_text()
    assert seen.count(f"Against main; its margin is {told['margin']:.3f}.") == 1
    assert "ev_" not in seen
    shown = article.locator("td.number").all_inner_texts()
    assert float(shown[2].split("\n")[0].replace("−", "-").lstrip("+")) == pytest.approx(
        told["difference"], abs=5e-4
    )
    margin, zero, tick = article.locator("svg").last.evaluate(
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
    (gate,) = read_answer(service, f"/v1/evaluations/{evaluated['failed']}")["gates"]
    assert gate["detail"] in page.locator("p.lead").inner_text()
    assert page.locator("main").inner_text().count(gate["detail"]) == 1


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
    text = notice.inner_text()
    assert "Step 3 is 0.250 CIDEr-D below cold at the same step. Compare" in text
    assert "Worse than expected from its training" in text
    assert notice.locator(f"a[href='/ui/compare?a={training[2]}&b={other}']").count() == 1
    assert notice.locator("a[href='/ui/datasets/tiny/test/runs/warm']").count() == 1
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
    assert names.all_inner_texts() == [each["name"] for each in run["tasks"]]
    families = {name: each["family"] for name, each in run["scores"].items()}
    shown = _score_row(page, "").locator("th .metric")
    assert shown.evaluate_all("all => all.map((each) => each.title)") == [
        name for name, family in families.items() if family == "postgen"
    ]


def test_nothing_moves_while_an_evaluation_is_loaded(chromium, service, evaluated):
    with chromium.new_context(viewport={"width": 390, "height": 800}) as context:
        page = context.new_page()
        page.add_init_script(page_runs.SHIFTS)
        page.goto(f"{service.url}/ui/evaluations/{evaluated['failed']}")
        page.wait_for_selector("article.gate")
        page.wait_for_selector("[data-live=true]")
        assert page.evaluate("window.shifted") < 0.02
