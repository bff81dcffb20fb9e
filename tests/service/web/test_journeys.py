"""What people come for, from the first place to the last: by keys alone, and what they may do."""

import pytest

from helpers.contract_files import line, tar, tar_entry
from helpers.fleet import checkpoint, upload
from helpers.page_runs import submitted

pytestmark = pytest.mark.processes


def _follow(page, text):
    """By keys alone: Tab until a link or button with this text has the focus, then Enter."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "[document.activeElement.tagName, document.activeElement.textContent]"
        )
        if focused[0] in ("A", "BUTTON") and text in focused[1]:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{text} cannot be reached by Tab")


def test_by_keys_from_home_to_the_worst_caption(window, evaluated):
    page = window.open("/")
    page.wait_for_selector("[aria-label='Table of the latest evaluations'] a.main")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('Scores')")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] >> text=Shortcuts")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    _follow(page, "Captions")
    page.wait_for_selector(".windowed a.main")
    page.keyboard.press("j")
    worst = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 of 40, worst first")
    page.wait_for_selector(".said .say")
    assert page.locator(".said .say").first.text_content() == worst


def test_by_keys_from_a_board_to_an_image_of_a_step_of_a_training(window, training):
    page = window.open("/ui/datasets/tiny/test")
    _follow(page, "Training runs")
    page.wait_for_selector(".cards strong")
    _follow(page, "warm")
    page.wait_for_selector("h1:has-text('warm')")
    page.wait_for_selector("circle.best")
    _follow(page, "Step 2")
    page.wait_for_selector("aside h2:has-text('Step 2')")
    page.wait_for_selector("aside ol .caption")
    _follow(page, ".jpg")
    page.wait_for_selector(".strip")
    assert f"/{training[1]}/images/" in page.url
    assert f"?with={training[0]}&list=comparison&" in page.url


def test_by_keys_a_board_is_filtered_and_left_by_back(window, service, evaluated):
    """It ranks as the interface does, and its address says how it is filtered."""
    page = window.open("/")
    page.wait_for_selector("main a:text-is('test')")
    _follow(page, "test")
    rows = page.locator(".windowed tbody tr:not(.space)")
    rows.nth(1).wait_for()
    with service.client() as client:
        board = client.get("/v1/datasets/tiny/leaderboard?split=test&metric=cider_d").json()
    links = page.locator("tbody th a").evaluate_all("all => all.map((each) => each.pathname)")
    shown = [each.rsplit("/", 1)[1] for each in links]
    assert shown == [item["evaluation"] for item in board["items"]]
    page.keyboard.press("/")
    page.keyboard.type("main")
    page.wait_for_selector("[aria-rowcount='2']")
    assert "label.branch=main" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1 [title='{evaluated['passed']}']")
    page.go_back()
    page.wait_for_selector("[aria-rowcount='2']")
    page.reload()
    page.wait_for_selector(f"a[href$='/{evaluated['passed']}']")
    assert rows.count() == 1


def test_an_evaluation_is_canceled(window, service):
    with service.client() as client, service.held():
        waiting = submitted(client, postgen=["rouge_l"], labels={"who": "is canceled"})
        window.open(f"/ui/evaluations/{waiting}")
        window.page.click("button:has-text('Stop')")
        window.page.click("dialog button:has-text('Stop it')")
        window.page.wait_for_selector("dd .badge.canceled")
        assert client.get(f"/v1/evaluations/{waiting}").json()["status"] == "canceled"


def test_a_failed_evaluation_says_why(window, service):
    with service.client() as client:
        sent = bytearray(checkpoint(5))
        sent[-4:] = b"\x00\x00\xc0\x7f"  # not a number
        given = upload(client, bytes(sent))
        failed = submitted(client, checkpoint=given, decoding={"beam": 1, "max_words": 8})
        run = client.get(f"/v1/evaluations/{failed}").json()
        window.open(f"/ui/evaluations/{failed}")
    assert run["status"] == "failed"
    window.page.wait_for_selector("dd .badge.failed")
    told = run["error"]["detail"]
    assert f"{told[0].upper()}{told[1:]}" in window.page.inner_text("p.lead")
    window.open("/ui/now")
    window.page.wait_for_selector(f"section[aria-label='Recent failures'] a[href$='/{failed}']")


@pytest.fixture(scope="module")
def pictured(service) -> str:
    """An evaluation on a dataset whose pictures are shown; that of 2.png cannot be decoded."""
    pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
    from helpers.picture_files import quarters, saved

    lines = b"".join(line(f"{at}.png", references=["w2 w3", "w5"]) for at in range(3))
    contents = [saved(quarters(), "PNG")] * 2 + [saved(quarters(), "PNG")[:60]]
    files = [tar_entry(f"images/{at}.png".encode(), each) for at, each in enumerate(contents)]
    captions = [{"image": f"{at}.png", "caption": "w2"} for at in range(3)]
    with service.client() as client:
        bundle = tar(tar_entry(b"captions.jsonl", lines), *files)
        assert client.put("/v1/datasets/seen", content=bundle).status_code == 201
        assert client.patch("/v1/datasets/seen", json={"pictures_shown": True}).status_code == 200
        return submitted(client, dataset="seen/test", captions=captions)


def test_a_picture_is_shown_once_it_is_made(window, service, pictured):
    """However long that takes, its place is kept free."""
    window.expected.add("503")
    page = window.page
    page.clock.install()
    with service.held():
        window.open(f"/ui/evaluations/{pictured}/images/1.png")
        told = page.locator(".picture [role=status]:has-text('made small just now')")
        told.wait_for()
        before = page.locator(".picture").bounding_box()
        for _ in range(12):
            with page.expect_response("**/images/1.png?**"):
                page.clock.fast_forward(20_000)
        assert told.count() == 1
        assert page.locator(".picture img").count() == 0
    with page.expect_response(lambda each: "/images/1.png?" in each.url and each.status == 200):
        page.clock.fast_forward(20_000)
    picture = page.get_by_role("img", name="The image 1.png")
    picture.wait_for()
    picture.evaluate("each => each.decode()")
    assert picture.evaluate("each => each.naturalWidth") == 32
    assert page.locator(".picture").bounding_box() == before


def test_a_picture_that_cannot_be_decoded_is_told(window, pictured):
    window.expected |= {"503", "404"}
    window.open(f"/ui/evaluations/{pictured}/images/2.png")
    window.page.wait_for_selector(".picture [role=status]:has-text('cannot be decoded')")
    assert window.page.locator(".picture img").count() == 0
