"""A board of many evaluations: few of its rows exist at a time, and all can be reached."""

import pytest

from helpers import page_runs, seeding
from helpers.fleet import bundle
from service.engine.tables import runs

pytestmark = pytest.mark.processes
SIZES = [250, pytest.param(10_000, marks=pytest.mark.slow)]
YEAR = 365 * 24 * 3600.0
MOST_ROWS = 80  # that exist at a time, in a window of 720 pixels
TO_THE_END = """() => new Promise((resolve) => {
  const frame = document.querySelector(".windowed");
  let most = 0;
  const step = () => {
    const rows = frame.querySelectorAll("tbody tr[data-place]");
    most = Math.max(most, rows.length);
    scrollBy(0, 1200);
    const many = Number(frame.querySelector("table").getAttribute("aria-rowcount")) - 1;
    const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    const last = rows[rows.length - 1];
    if (isEnd && last && Number(last.dataset.place) === many - 1) resolve([many, most]);
    else requestAnimationFrame(step);
  };
  step();
})"""


@pytest.fixture(scope="module", params=SIZES)
def many(request):
    return request.param


@pytest.fixture(scope="module")
def large(serve_here, many, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("large") / "home") as service:
        with service.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
            page_runs.training(client)
        seeding.multiply(service.records, many // 3 + 1, at=61)  # of three evaluations
        with (
            service.records.engine.begin() as connection
        ):  # copies have times that are still to come
            past = {each: runs.c[each] - YEAR for each in ("created_at", "finished_at")}
            connection.execute(runs.update().values(past))
        yield service


def test_all_rows_are_reached_by_keys_too_and_few_exist(chromium, large, many):
    with chromium.opened(f"{large.url}/ui/datasets/tiny/test") as page:
        page.wait_for_selector(".windowed a.main")
        drawn = page.evaluate("performance.now()")
        print(f"the first rows of {many}: after {drawn:.0f} ms")
        for key in ["j"] * 61 + ["k"]:
            page.keyboard.press(key)
        place = "document.activeElement.closest('tr').dataset.place"
        assert page.evaluate(place) == "59"
        rows, most = page.evaluate(TO_THE_END)
        worst = page.locator(".windowed a.main").last.get_attribute("href").rsplit("/", 1)[1]
        text = page.request.get(
            f"{large.url}/v1/datasets/tiny/leaderboard?split=test", headers={"Accept": "text/csv"}
        ).text()
    listed = text.splitlines()
    assert rows == len(listed) - 1 >= many
    assert worst in listed[-1]
    assert most <= MOST_ROWS


def test_what_is_newer_waits_until_it_is_asked_for(chromium, large):
    """The place in a long list is not lost because others go on working."""
    with chromium.opened(f"{large.url}/ui/datasets/tiny/test") as page:
        page.wait_for_selector("[data-live=true]")
        page.wait_for_selector(".windowed a.main")
        page.evaluate(TO_THE_END)
        with large.client() as client:
            page_runs.submitted(client, labels={"who": "newer"})
        page.click("button:has-text('Show them')")
        page.wait_for_selector("tr[data-place='0']")
