"""The leaderboard in a browser, against what the interface itself answers."""

from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers import page_runs
from helpers.fleet import bundle, bundle_of
from helpers.page_runs import IMAGES, submitted
from helpers.page_views import listed_evaluations, read_answer, system_rows

pytestmark = pytest.mark.processes

BOARD = "/v1/datasets/odd/leaderboard?split=test"
SHARES = {"people": 1, "b": 9, "a": 8, "c": 12}  # one caption of so many is right
METRICS = ["cider_d", "bleu", "meteor"]


@pytest.fixture(scope="module")
def odd(service) -> dict[str, str]:
    """Evaluations of a split by the names of their files: a person's, and three weak systems'."""
    draw = Random(4)
    words = [f"w{at}" for at in range(30)]
    people = {f"{at}.jpg": [" ".join(draw.sample(words, 6)) for _ in "abc"] for at in range(IMAGES)}
    training = [" ".join(draw.sample(words, 6)) for _ in range(20)]
    with service.client() as client:
        content = bundle_of(people, training=training)
        assert client.put("/v1/datasets/odd", content=content).status_code == 201
        return {
            name: submitted(
                client,
                dataset="odd/test",
                captions=[
                    {"image": image, "caption": said if at % share == 0 else "w3 w4 w5"}
                    for at, (image, (said, *_)) in enumerate(people.items())
                ],
                labels={"file": name, "branch": "main" if name in "ab" else "dev"},
                postgen=METRICS,
            )
            for name, share in SHARES.items()
        }


@pytest.fixture(scope="module")
def probed(service, odd) -> None:
    """The split has scores of people, and of one sentence for every image."""
    with service.client() as client:
        made = client.post("/v1/probes", json={"dataset": "odd/test"}).json()["id"]
        assert client.get(f"/v1/probes/{made}").json()["status"] == "succeeded"


def _row(page, name):
    return page.locator(".windowed tbody tr", has=page.locator(f"th a:text-is('{name}')"))


def _open(window, query=""):
    page = window.open(f"/ui/datasets/odd/test{query}")
    system_rows(page).nth(3).wait_for()
    return page


def _asked(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_two_are_marked_by_keys_alone_and_compared(window, odd):
    page = _open(window)
    for key in ("j", "c", "j", "c"):
        page.keyboard.press(key)
    link = page.locator("a[href^='/ui/compare?a=ev_']:text-is('Compare 2')")
    link.wait_for()
    assert _asked(page)["chosen"].split(",") == listed_evaluations(page)[:2]
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text(' against ')")
    page.wait_for_selector("[aria-label='Table of differences'] tbody tr")


def test_of_a_third_mark_one_says_which_of_the_two_it_replaces(window, odd):
    page = _open(window)
    for name in ("people", "a"):
        _row(page, name).get_by_role("checkbox").check()
    third = _row(page, "b").get_by_role("checkbox")
    third.click()
    dialog = page.locator("dialog[open]")
    assert dialog.get_by_role("button").all_inner_texts() == ["people", "a", "Neither"]
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert not third.is_checked()
    assert _asked(page)["chosen"].split(",") == [odd["people"], odd["a"]]
    third.click()
    dialog.get_by_role("button", name="people").click()
    dialog.wait_for(state="detached")
    assert _asked(page)["chosen"].split(",") == [odd["a"], odd["b"]]
    marked = page.locator("td input:checked")
    names = marked.evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert sorted(names) == ["Compare a", "Compare b"]
    link = page.locator("a:text-is('Compare 2')").get_attribute("href")
    assert link == f"/ui/compare?a={odd['a']}&b={odd['b']}"


def test_each_column_tells_its_own_scale(window, service, odd):
    """From its lowest to its highest value, shaded; and the axis says of which metric it is."""
    page = _open(window)
    items = read_answer(service, f"{BOARD}&metric=cider_d&metrics=meteor,bleu_4")["items"]
    for metric, title in (("meteor", "METEOR"), ("bleu_4", "BLEU-4")):
        values = [each["scores"][metric]["value"] for each in items]
        scale = page.locator("thead th", has_text=title).locator(".sub").inner_text()
        low, high = map(float, scale.split(" – "))
        assert (low, high) == pytest.approx((min(values), max(values)), abs=5e-4)
    assert page.locator("thead .scaled:has(svg)").inner_text().startswith("CIDEr-D, 95 %")
    values = [each["scores"]["meteor"]["value"] for each in items]
    shades = _shades(page, 1)
    pairs = sorted(zip(values, shades, strict=True))
    assert [shade for _, shade in pairs] == sorted(shades)
    assert (min(shades), max(shades)) == (0, 1)


def _shades(page, at):
    """Shades of a column of scores, from the best row on."""
    rows = page.locator("tbody tr[data-place]").evaluate_all(
        """rows => rows.map((row) => [...row.querySelectorAll("td.shaded")]
             .map((cell) => Number(cell.style.getPropertyValue("--shade"))))"""
    )
    return [row[at] for row in rows]


CONTRAST = """([selector, property]) => {
  const luminance = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((each) => each / 255);
    const [r, g, b] = parts.map((each) =>
      each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const bar = document.querySelector(selector);
  const fill = getComputedStyle(bar)[property];
  const ground = getComputedStyle(bar.closest("td")).backgroundColor;
  const [less, more] = [fill, ground].map(luminance).sort((a, b) => a - b);
  return (more + 0.05) / (less + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_are_seen_on_their_ground(window, odd, scheme):
    """A contrast of 3, which axe does not judge of drawings."""
    page = _open(window)
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate(CONTRAST, [".interval .band", "fill"]) >= 3
    _row(page, "b").hover()
    hovered = "tr:hover .interval .band"
    assert page.evaluate(CONTRAST, [hovered, "fill"]) >= 3
    page.mouse.move(0, 0)


def test_people_among_systems_do_not_crush_a_board(window, odd):
    page = _open(window)
    assert "off the scale →" in _row(page, "people").inner_text()
    assert page.locator("td:has-text('off the scale')").count() == 1
    drawn = _row(page, "b").locator(".interval .band").evaluate("each => each.getBBox().width")
    assert drawn > 190 / 3


def test_what_is_not_told_apart_from_the_first_has_one_bracket(window, service, odd):
    page = window.open("/ui/datasets/odd/test?metric=bleu_4")
    system_rows(page).nth(3).wait_for()
    board = read_answer(service, f"{BOARD}&metric=bleu_4")
    tied = {each["evaluation"] for each in board["items"] if each["tied_with_first"]}
    first = board["items"][0]["evaluation"]
    expected = tied | ({first} if tied else set())
    shown = page.locator("tr.tied a.main").evaluate_all("all => all.map((a) => a.href)")
    assert {each.rsplit("/", 1)[1] for each in shown} == expected
    for item in board["items"]:
        row = system_rows(page).nth(board["items"].index(item))
        told = row.locator("td").last.inner_text()
        kind = {True: "leads", False: "not told apart" if item["tied_with_first"] else "worse"}
        assert told.startswith(kind[item["evaluation"] == first])
        assert row.locator("td").first.inner_text() == f"{item['rank']}{'=' * item['tied']}"


def test_references_stand_above_and_are_not_counted(window, service, odd, probed):
    page = _open(window)
    board = read_answer(service, f"{BOARD}&metric=cider_d&metrics=meteor,bleu_4")
    rows = page.locator(".windowed tbody tr:not(.space)")
    kinds = rows.evaluate_all("all => all.map((row) => row.classList.contains('reference'))")
    assert kinds == [True, True, *[False] * len(SHARES)]
    both = (rows.first, "human", "people"), (rows.nth(1), "constant", "one sentence")
    for row, key, name in both:
        shown = row.locator("td.number").all_inner_texts()
        value = board["references"][key]["cider_d"]
        assert float(shown[1]) == pytest.approx(value, abs=5e-4)
        difference = f"{value - board['items'][0]['value']:+.3f}".replace("-", "−")
        assert row.locator("td").last.inner_text() == f"{difference}, no test"
        assert "no test" in row.locator("td").last.locator("[title]").get_attribute("title")
        missing = {"meteor", "bleu_4"} - set(board["references"][key])
        reasons = row.locator("td.number [title^='The probes']")
        assert reasons.all_inner_texts() == ["–"] * len(missing)
        assert row.locator("th").inner_text().startswith(name)
        assert row.locator("input, a").count() == 0
    assert board["constant_caption"] in rows.nth(1).inner_text()
    marks = _row(page, "b").locator(".interval .mark")
    titles = marks.evaluate_all("all => all.map((each) => each.textContent)")
    constant = board["references"]["constant"]["cider_d"]
    assert f"one sentence for every image {constant:.3f}" in titles
    assert page.locator(".windowed table").get_attribute("aria-rowcount") == str(len(SHARES) + 1)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "people"  # the system
    reach = page.locator(".interval text").all_text_contents()
    assert max(map(float, reach)) < board["items"][0]["value"]  # the scale is that of most systems


def test_only_a_lead_that_is_shown_is_green(window, service, odd):
    for metric in ("cider_d", "bleu_4"):
        page = _open(window, f"?metric={metric}")
        items = read_answer(service, f"{BOARD}&metric={metric}")["items"]
        leads = not any(each["tied_with_first"] for each in items)
        assert page.locator("td.best").count() == leads


def test_systems_that_say_one_caption_for_most_images_are_marked(window, service, odd):
    page = _open(window)
    reached = read_answer(service, "/v1/attention?limit=100")["items"]
    repeating = {each["evaluation"] for each in reached if each["kind"] == "collapsed"}
    marked = page.locator("tr:has(.badge.collapsed) a.main").evaluate_all(
        "all => all.map((a) => a.href.split('/').pop())"
    )
    assert set(marked) == repeating & set(odd.values()) == {odd[name] for name in "abc"}
    assert "3 systems say one caption for most images." in page.locator(".lead").inner_text()


def test_evaluations_that_share_a_row_are_told_and_have_its_rank(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/shared", content=bundle(6, seed=9)).status_code == 201
        ids = [
            submitted(
                client,
                dataset="shared/test",
                captions=[{"image": f"{at}.jpg", "caption": said} for at in range(6)],
                labels={"file": name},
                postgen=["cider_d", "bleu"],
            )
            for name, said in (("one", "w3 w4"), ("two", "w3 w4"), ("three", "w5"))
        ]
    page = window.open("/ui/datasets/shared/test")
    page.click("button:text-is('+1 equal')")
    named = page.locator("[popover]:popover-open li a")
    named.first.wait_for()
    assert named.all_inner_texts() == ["two"]
    assert named.first.get_attribute("href") == f"/ui/evaluations/{ids[1]}"
    board = read_answer(service, "/v1/datasets/shared/leaderboard?split=test")
    rank = next(each["rank"] for each in board["items"] if each["evaluation"] == ids[0])
    page = window.open(f"/ui/evaluations/{ids[1]}")
    told = (
        f"equals that of one, which stands for it on the leaderboard of shared/test: rank {rank}."
    )
    page.locator(".lead", has_text=told).wait_for()


def _await_order(page, items):
    """The board has these rows, all in their order; those before stay until the answer is there."""
    page.wait_for_function(
        """ids => [...document.querySelectorAll(".windowed a.main")]
          .map((link) => link.pathname.split("/").pop()).join() === ids""",
        arg=",".join(each["evaluation"] for each in items),
    )


def test_heads_sort(window, service, odd):
    page = _open(window)
    for press, query in (
        ("name", "order=name"),
        ("date", "order=newest"),
        ("date", "order=oldest"),
    ):
        page.get_by_role("button", name=f"Sort by {press}").click()
        page.wait_for_function(f"location.search.includes('{query}')")
        expected = read_answer(service, f"{BOARD}&metric=cider_d&{query}")["items"]
        _await_order(page, expected)
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("System")
    page.get_by_role("button", name="Rank by METEOR").click()
    page.wait_for_function("location.search.includes('metric=meteor')")
    expected = read_answer(service, f"{BOARD}&metric=meteor")["items"]
    page.wait_for_selector("th[aria-sort=descending]:has-text('METEOR')")
    _await_order(page, expected)
    assert "order" not in _asked(page)
    names = page.locator("thead .metric").all_inner_texts()
    assert names == ["METEOR", "CIDEr-D", "BLEU-4"]  # they have changed places


def test_metrics_are_chosen_from_what_there_is(window, service, odd):
    page = _open(window)
    adder = page.get_by_label("Add: metric")
    adder.locator("option[value='bleu_1']").wait_for(state="attached")
    offered = adder.locator("option:not([value=''])").evaluate_all("all => all.map((o) => o.value)")
    scores = read_answer(service, f"/v1/evaluations/{odd['a']}")["scores"]
    assert sorted(offered) == sorted(set(scores) - {"cider_d", "meteor", "bleu_4"})
    adder.select_option("bleu_1")
    page.wait_for_selector("thead .metric:text-is('BLEU-1')")
    page.locator("tr[data-place='0'] td.shaded").nth(3).wait_for()  # its values have come
    board = read_answer(service, f"{BOARD}&metric=cider_d&metrics=bleu_1")
    values = [each["scores"]["bleu_1"]["value"] for each in board["items"]]
    shown = [float(row.locator("td.number").last.inner_text()) for row in system_rows(page).all()]
    assert shown == pytest.approx(values, abs=5e-4)
    page.get_by_role("button", name="Leave out BLEU-1").click()
    page.wait_for_selector("thead .metric:text-is('BLEU-1')", state="detached")
    page.click(".chip.pair button:text-is('METEOR')")
    page.wait_for_selector("th[aria-sort=descending]:has-text('METEOR')")


def test_labels_narrow_a_board(window, service, odd):
    page = _open(window)
    page.get_by_label("branch: any").select_option(label="dev (2)")
    page.wait_for_selector("[aria-rowcount='3']")
    assert set(listed_evaluations(page)) == {odd["people"], odd["c"]}
    page.reload()
    page.wait_for_selector("[aria-rowcount='3']")
    page.click(".chip:has-text('branch: dev')")
    page.wait_for_selector("[aria-rowcount='5']")


def test_a_download_is_the_interfaces_own_csv(window, service, odd, tmp_path):
    page = window.open("/ui/datasets/odd/test?label.branch=main&metrics=meteor")
    system_rows(page).nth(1).wait_for()
    with page.expect_download() as saved:
        page.click("button:text-is('CSV')")
    saved.value.save_as(tmp_path / "board.csv")
    assert saved.value.suggested_filename == "odd-test-cider_d.csv"
    with service.client() as client:
        answer = client.get(
            f"{BOARD}&metric=cider_d&metrics=meteor&label.branch=main",
            headers={"Accept": "text/csv"},
        )
    assert (tmp_path / "board.csv").read_bytes() == answer.content
    assert answer.text.count("\n") == 3


def test_a_popover_says_whether_to_trust_its_metric_on_the_split(window, service, odd, probed):
    page = _open(window)
    page.click("thead .metric:text-is('METEOR')")
    said = page.locator("[popover]:popover-open")
    said.locator("p:has-text('On this split')").wait_for()
    health = read_answer(service, "/v1/probes?dataset=odd/test&limit=1")["items"][0]["health"]
    share = f"{health['meteor']['constant_of_human']:.0%}".replace("%", "\xa0%")
    assert f"it gives one caption for all images {share} of people's score" in said.inner_text()


def test_scores_that_were_computed_otherwise_are_told_apart(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/twice", content=bundle(6, seed=9)).status_code == 201
        said = [{"image": f"{at}.jpg", "caption": "w3 w4"} for at in range(6)]
        given = {"dataset": "twice/test", "captions": said}
        older = submitted(client, **given, tokenizer="none")
        newer = submitted(client, **given, postgen=["cider_d", "bleu"])
    page = window.open("/ui/datasets/twice/test")
    page.wait_for_selector(f".windowed a.main[href$='/{newer}']")
    board = read_answer(service, "/v1/datasets/twice/leaderboard?split=test")
    (signature,) = board["others"]
    page.click(f"p:has-text('not comparable') button:has-text('{signature}')")
    page.wait_for_selector(f".windowed a.main[href$='/{older}']")
    assert listed_evaluations(page) == [older]
    assert _asked(page)["signature"] == signature


def test_a_board_on_a_phone_is_cards(chromium, service, odd):
    telephone = {"width": 390, "height": 800}
    with chromium.opened(f"{service.url}/ui/datasets/odd/test", viewport=telephone) as page:
        row = system_rows(page).nth(1)
        row.wait_for()
        seen = row.locator("th, td").evaluate_all(
            "all => all.filter((each) => each.offsetHeight > 0).map((each) => each.innerText)"
        )
        assert len(seen) == 4  # the mark, the name, the score, the interval
        items = read_answer(service, f"{BOARD}&metric=cider_d&metrics=meteor")["items"]
        second = items[1]
        name = [f"{second['rank']}{'=' * second['tied']}", second["labels"]["file"]]
        assert seen[1].split() == name
        assert float(seen[2]) == pytest.approx(second["value"], abs=5e-4)
        state = "not told apart" if second["tied_with_first"] else "worse"
        meteor = second["scores"]["meteor"]["value"]
        assert seen[3].startswith(f"collapsed · {state}")
        assert f"METEOR {meteor:.3f}" in seen[3]
        lines = row.locator(".state").evaluate("each => [each.scrollHeight, each.clientHeight]")
        assert lines[0] == lines[1]  # all of it is seen
        box, name = (row.locator(each).bounding_box() for each in ("input", "a.main"))
        assert box["x"] + box["width"] <= name["x"]
        seen = row.locator(".phone-mark").evaluate("cell => cell.clientWidth")
        assert seen >= box["width"] >= 24
        for at in range(2):
            system_rows(page).nth(at).get_by_role("checkbox").check()
        link = page.locator("a:text-is('Compare 2')").get_attribute("href")
        one, other = (each["evaluation"] for each in items[:2])
        assert link == f"/ui/compare?a={one}&b={other}"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_nothing_moves_while_a_board_is_loaded(chromium, service, odd):
    with chromium.new_context() as context:
        page = context.new_page()
        page.add_init_script(page_runs.SHIFTS)
        page.goto(f"{service.url}/ui/datasets/odd/test")
        system_rows(page).nth(3).wait_for()
        page.wait_for_selector("[data-live=true]")
        assert page.evaluate("window.shifted") < 0.02
