"""The views of captions, of one image and of a dataset, against what the interface itself tells."""

import csv
import json
import re

import pytest

from helpers import page_runs
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of
from helpers.page_runs import IMAGES, submitted
from helpers.page_views import draw_rectangle, read_answer
from helpers.picture_files import quarters, saved
from helpers.submissions import add_pictures, evaluate
from oracles import plain_words

pytestmark = pytest.mark.processes
WORDS = ["a", "man", "woman", "dog", "runs", "sits", "on", "grass", "Straße", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 60, 0)
PHOTOS = {f"album/Photo {at:02}.jpg": references for at, references in enumerate(PEOPLE)}


@pytest.fixture(scope="module")
def worded(service):
    """An evaluation of captions of words, some of which no reference of their image has."""
    with service.client() as client:
        bundle = bundle_of(PHOTOS, training=["a dog runs"])
        assert client.put("/v1/datasets/worded", content=bundle).status_code == 201
        captions = [
            {"image": image, "caption": text} for image, text in zip(PHOTOS, SAID, strict=True)
        ]
        metrics = ["bleu_1", "cider_d"]
        return evaluate(client, dataset="worded/test", captions=captions, postgen=metrics)["id"]


@pytest.fixture(scope="module")
def differing():
    """By image: the nearest reference, the invented and the missed words, as the guide has them."""
    found = {}
    for (image, references), caption in zip(PHOTOS.items(), SAID, strict=True):
        found[image] = plain_words.compare(caption, references)[:3]
    return found


def _cards(page):
    return page.locator(".windowed tbody tr:not(.space)")


def _image(card):
    return card.locator(".captioned .quiet").last.inner_text()


def _wait_for_count(page, many):
    """Waits until so many captions are listed, as the page says beside its filters."""
    text = f"{many:,} caption{'s' * (many != 1)}"
    page.wait_for_selector(f".bar [role=status]:text-is('{text}')")


def _marks(card):
    """The words that are marked, in their order, each once."""
    shown = [card.locator(name).all_inner_texts() for name in ("mark.invented", "u.missed")]
    return [list(dict.fromkeys(word.lower() for word in words)) for words in shown]


def test_words_that_are_invented_and_missed_are_marked(window, worded, differing):
    page = window.open(f"/ui/evaluations/{worded}/captions")
    _cards(page).nth(7).wait_for()
    seen = _cards(page).all()
    assert len(seen) >= 8
    for card in seen:
        nearest, invented, missed = differing[_image(card)]
        assert _marks(card) == [invented, missed]
        assert card.locator(".nearest bdi").inner_text() == nearest
        for kind, words in (("bad", invented), ("wait", missed)):
            badges = card.locator(f".badge.{kind}")
            assert badges.count() == bool(words)
            if words:
                assert badges.get_attribute("title") == ", ".join(words)
                assert badges.inner_text().split()[0] == str(len(words))
    assert any(differing[_image(card)][1] for card in seen)


@pytest.mark.parametrize("kind", ["invented", "missed"])
def test_captions_are_found_by_a_frequent_word(window, service, worded, differing, kind):
    page = window.open(f"/ui/evaluations/{worded}/captions")
    _wait_for_count(page, 60)
    word = read_answer(service, f"/v1/evaluations/{worded}/captions")["wording"][kind][0]["word"]
    options = page.get_by_label(f"Add: {kind}")
    expected = {
        image for image, words in differing.items() if word in words[1 if kind == "invented" else 2]
    }
    assert 0 < len(expected) < 60
    assert options.locator(f"option[value='{word}']").inner_text() == f"{word} ({len(expected)})"
    options.select_option(word)
    _wait_for_count(page, len(expected))
    assert f"{kind}=" in page.url
    assert {_image(card) for card in _cards(page).all()} <= expected
    page.reload()
    page.click(f"button:has-text('{kind}: {word}')")
    _wait_for_count(page, 60)
    assert f"{kind}=" not in page.url


def test_captions_come_worst_first_and_are_searched(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    cards = _cards(page)
    cards.first.wait_for()
    told = read_answer(service, f"/v1/evaluations/{one}/captions?sort=cider_d&limit=1")["items"][0]
    assert _image(cards.first) == told["image"]
    assert cards.first.locator("a.main").inner_text() == told["caption"]
    score = cards.first.locator(".number strong").inner_text()
    assert float(score) == pytest.approx(told["scores"]["cider_d"], abs=5e-4)
    _wait_for_count(page, IMAGES)
    page.get_by_role("button", name="best first").click()
    best = read_answer(service, f"/v1/evaluations/{one}/captions?sort=-cider_d&limit=1")["items"][0]
    page.wait_for_selector(f".windowed .captioned >> nth=0 >> text={best['image']}")
    page.keyboard.press("/")
    page.keyboard.type("17.jpg")  # is found without Enter
    _wait_for_count(page, 1)
    assert [_image(card) for card in cards.all()] == ["17.jpg"]
    assert "search=17.jpg" in page.url
    assert page.evaluate("document.activeElement.value") == "17.jpg"


def test_an_empty_list_names_its_filters_and_offers_to_take_them_away(window, worded):
    page = window.open(f"/ui/evaluations/{worded}/captions?search=zebra&invented=man")
    empty = page.locator("p.notice:has-text('No caption passes all of these filters')")
    empty.get_by_role("button", name="invented: man").click()
    empty = page.locator("p.notice:has-text('No caption passes this filter')")
    assert page.locator(".windowed").count() == 0
    empty.get_by_role("button", name="search: zebra").click()
    _wait_for_count(page, 60)
    _cards(page).first.wait_for()
    assert page.get_by_label("Search").input_value() == ""
    assert page.locator(".bar:has-text('no pictures · 60 captions')").count() == 1
    assert page.locator(".photo").count() == 0


def test_the_addresses_of_captions_of_an_image_and_of_a_comparison_are_copied(window, evaluated):
    one, other = evaluated["captions"], evaluated["hostile"]
    places = [f"/ui/evaluations/{one}/captions?search=1.jpg", f"/ui/evaluations/{one}/images/4.jpg"]
    window.page.add_init_script(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    for place in (*places, f"/ui/compare?a={one}&b={other}"):
        page = window.open(place)
        page.get_by_role("button", name="Copy link").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("window.copied").endswith(place)


def test_captions_that_are_mostly_one_say_so(window, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['hostile']}/captions")
    claim = page.locator("p.lead strong:has-text('One caption for')")
    claim.wait_for()
    many = sum(each["caption"] == page_runs.CAPTIONS[0]["caption"] for each in page_runs.powerful())
    assert claim.inner_text() == f"One caption for {many} of {IMAGES} images: “w3 w4 w5”."


def test_the_metric_of_captions_is_chosen(window, service, worded):
    page = window.open(f"/ui/evaluations/{worded}/captions")
    _wait_for_count(page, 60)
    page.get_by_label("By").select_option("BLEU-1")
    page.wait_for_selector("td.number:has-text('BLEU-1')")
    told = read_answer(service, f"/v1/evaluations/{worded}/captions?sort=bleu_1&limit=1")["items"][
        0
    ]
    page.wait_for_selector(f".windowed .captioned >> nth=0 >> text={told['image']}")
    score = _cards(page).first.locator("strong").inner_text()
    assert float(score) == pytest.approx(told["scores"]["bleu_1"], abs=5e-4)


def test_captions_of_a_span_of_scores_are_saved(window, service, evaluated, tmp_path):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    page.get_by_role("button", name="span of scores").click()
    page.wait_for_selector("svg.brushed")
    draw_rectangle(page, (0.4, 0.5), (0.97, 0.5))
    page.wait_for_selector("button[title='Take this away']:has-text('CIDEr-D')")
    parameters = dict(part.split("=") for part in page.url.split("?")[1].split("&"))
    low, high = float(parameters["from"]), float(parameters["to"])
    items = read_answer(service, f"/v1/evaluations/{one}/captions")["items"]
    inside = {each["image"] for each in items if low <= each["scores"]["cider_d"] <= high}
    assert 0 < len(inside) < IMAGES
    _wait_for_count(page, len(inside))
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    name = re.sub(r"[^\w.-]+", "-", page.locator("h1").inner_text()) + "-captions"
    assert download.value.suggested_filename == f"{name}.csv"
    path = tmp_path / "saved.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert {row["image"] for row in rows} == inside
    with page.expect_download() as download:
        page.get_by_role("link", name="COCO").click()
    assert download.value.suggested_filename == f"{name}.json"
    download.value.save_as(path)
    assert len(json.loads(path.read_text())) == len(inside)


def test_by_keys_captions_of_a_span_of_scores_are_listed(window, service, evaluated):
    one = evaluated["checkpoint"]
    page = window.open(f"/ui/evaluations/{one}/captions")
    items = read_answer(service, f"/v1/evaluations/{one}/captions")["items"]
    scores = sorted(each["scores"]["cider_d"] for each in items)
    low, high = (round(scores[0] + share * (scores[-1] - scores[0]), 3) for share in (0.2, 0.8))
    page.get_by_role("button", name="span of scores").focus()
    page.keyboard.press("Enter")
    page.get_by_label("CIDEr-D from").focus()
    page.keyboard.type(str(low))
    page.keyboard.press("Tab")
    page.wait_for_url("**from=**")
    page.keyboard.type(str(high))  # the next field has kept the focus
    page.keyboard.press("Enter")
    many = sum(low <= score <= high for score in scores)
    assert 0 < many < IMAGES
    _wait_for_count(page, many)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    _wait_for_count(page, sum(low <= score for score in scores))
    page.click("button[title='Take this away']:has-text('CIDEr-D')")
    _wait_for_count(page, IMAGES)
    assert page.get_by_label("CIDEr-D from").input_value() == ""


def test_captions_without_scores_are_listed(window, service):
    """In the dataset's order; what depends on scores is there as soon as they are."""
    captions = [{**each, "caption": "w9 w8"} for each in page_runs.CAPTIONS]
    page = window.page
    with service.held():
        with service.client() as client:
            one = submitted(client, captions=captions)
        window.open(f"/ui/evaluations/{one}/captions")
        _wait_for_count(page, IMAGES)
        assert [_image(card) for card in _cards(page).all()][:2] == ["0.jpg", "1.jpg"]
        assert page.get_by_role("button", name="worst first").count() == 0
        assert page.locator("td.number").count() == 0
    page.get_by_role("button", name="worst first").wait_for()
    page.wait_for_selector("td.number:has-text('CIDEr-D')")


def test_the_list_that_one_came_from_is_the_order_of_j_and_k(window, service, worded):
    place = f"/v1/evaluations/{worded}/captions?sort=cider_d&limit=100"
    order = [item["image"] for item in read_answer(service, place)["items"]]
    assert order != list(PHOTOS)
    page = window.open(f"/ui/evaluations/{worded}/captions")
    _cards(page).first.wait_for()
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=3 of 60, worst first by CIDEr-D")
    assert page.inner_text("h1") == order[2]
    for key, at in (("j", 3), ("j", 4), ("k", 3), ("k", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        page.wait_for_selector(f"h1:text-is('{order[at]}')")
        page.wait_for_selector(f"text={at + 1} of 60, worst first")
    page.reload()
    page.wait_for_selector("text=1 of 60, worst first")
    page.get_by_role("link", name="The next image").click()
    page.wait_for_selector(f"h1:text-is('{order[1]}')")


def test_a_narrowed_list_is_the_order_of_j_and_k(window, service, worded):
    query = "sort=-bleu_1&invented=man&search=photo"
    place = f"/v1/evaluations/{worded}/captions?{query}&at_least=0.1&at_most=0.9"
    order = [item["image"] for item in read_answer(service, place)["items"]]
    assert 2 < len(order) < 60
    page = window.open(f"/ui/evaluations/{worded}/captions?{query}&from=0.1&to=0.9")
    _cards(page).nth(len(order) - 1).locator("a.main").click()
    for at in range(len(order) - 1, -1, -1):
        page.wait_for_selector(f"text={at + 1} of {len(order)}, best first by BLEU-1")
        page.wait_for_selector(f"h1:text-is('{order[at]}')")
        page.keyboard.press("k")
    page.click("text=all captions")
    _wait_for_count(page, len(order))


def test_a_comparison_is_the_order_of_j_and_k(window, service, worded):
    with service.client() as client:
        captions = [{"image": image, "caption": PHOTOS[image][0]} for image in PHOTOS]
        metrics = ["bleu_1", "cider_d"]
        b = evaluate(client, dataset="worded/test", captions=captions, postgen=metrics)["id"]
        made = client.post("/v1/comparisons", json={"a": worded, "b": b}).json()["id"]
    images = f"/v1/comparisons/{made}/images?metric=bleu_1&sort=-difference"
    place = f"/ui/evaluations/{worded}/images"
    state = f"with={b}&list=comparison&comparison={made}&metric=bleu_1&sort=-difference"
    page = window.page
    window.expected.add("404")  # while single captions are compared
    while not (order := [item["image"] for item in read_answer(service, images).get("items", [])]):
        pass
    window.open(f"{place}/{order[1].replace('/', '%2F')}?{state}&at=2")
    page.wait_for_selector("text=2 of 60, where A is better first")
    page.keyboard.press("j")
    page.wait_for_selector(f"h1:text-is('{order[2]}')")
    page.wait_for_selector(".said li >> nth=1 >> .say")
    page.click("text=the comparison")
    page.wait_for_url(f"**/ui/compare?a={worded}&b={b}")


def test_an_image_that_the_list_does_not_have_goes_on_in_the_datasets_order(window, worded):
    images = list(PHOTOS)
    place = images[5].replace("/", "%2F")
    page = window.open(f"/ui/evaluations/{worded}/images/{place}?list=captions&search=nowhere&at=9")
    page.wait_for_selector("text=in the dataset's order")
    page.keyboard.press("j")
    page.wait_for_selector(f"h1:text-is('{images[6]}')")
    page.wait_for_selector("text=in the dataset's order")
    page.keyboard.press("k")
    page.wait_for_selector(f"h1:text-is('{images[5]}')")


def test_one_comes_back_to_where_one_was(window, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['checkpoint']}/captions")
    page.wait_for_selector(".windowed a.main")
    for _ in range(31):
        page.keyboard.press("j")
    link = page.evaluate("document.activeElement.getAttribute('href')")
    assert "at=31" in link
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=31 of {IMAGES}")
    page.go_back()
    page.wait_for_selector(f"a.main[href='{link}']:focus")
    assert page.evaluate("scrollY") > 0


def test_captions_of_several_evaluations_stand_beside_each_other(window, service, evaluated):
    page = window.open(f"/ui/evaluations/{evaluated['captions']}/images/4.jpg")
    options = page.get_by_label("Add: evaluation")
    options.locator(f"option[value='{evaluated['passed']}']").wait_for(state="attached")
    assert options.locator(f"option[value='{evaluated['passed']}']").inner_text() == "main"
    options.select_option(evaluated["hostile"])
    page.wait_for_selector(".said mark.invented:text-is('script')")
    assert f"with={evaluated['hostile']}" in page.url
    caption = read_answer(service, f"/v1/evaluations/{evaluated['hostile']}/captions?image=4.jpg")
    references = read_answer(service, "/v1/datasets/tiny/images/4.jpg/references")["references"]
    words = plain_words.compare(caption["items"][0]["caption"], references)
    assert _marks(page.locator(".said li").nth(1)) == list(words[1:3])
    page.keyboard.press("j")
    page.wait_for_selector("h1:has-text('5.jpg')")
    page.wait_for_selector(".said li >> nth=1 >> .nearest")
    page.keyboard.press("k")
    page.wait_for_selector("h1:has-text('4.jpg')")
    page.get_by_role("button", name="remove").click()
    page.wait_for_selector(".said li >> nth=1", state="detached")
    assert "with=" not in page.url


def test_references_of_captions_are_a_list(window, worded):
    image = next(iter(PHOTOS))
    page = window.open(f"/ui/evaluations/{worded}/images/{image.replace('/', '%2F')}")
    references = page.locator("section[aria-label=References] li")
    references.first.wait_for()
    assert references.all_inner_texts() == PHOTOS[image]


@pytest.mark.parametrize("width", [390, 1280])
def test_cards_hold_what_they_show(chromium, service, evaluated, worded, width):
    """On a phone too: nothing is wider than the page, and no card overflows into the next."""
    for one in (f"{evaluated['hostile']}/captions?search=5.jpg", f"{worded}/captions"):
        url = f"{service.url}/ui/evaluations/{one}"  # the caption of 5.jpg is one long word
        with chromium.opened(url, viewport={"width": width, "height": 800}) as page:
            _cards(page).nth(3).wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert _cards(page).first.locator("td.number strong").is_visible()
            over = page.locator(".captioned").evaluate_all("""cards => cards.filter((each) => {
                const row = each.closest("tr").getBoundingClientRect();
                const own = each.lastChild.getBoundingClientRect();
                const frame = getComputedStyle(each.closest(".windowed"));
                const isGrown = row.height > parseFloat(frame.getPropertyValue("--row")) + 1;
                return isGrown || own.top < row.top - 1 || own.bottom > row.bottom + 1;
            }).length""")
            assert over == 0


@pytest.fixture(scope="module")
def photographed(service):
    """An evaluation on a dataset whose pictures are shown; that of 2.png cannot be decoded."""
    pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
    lines = b"".join(
        json.dumps({"image": f"{at}.png", "split": "test", "references": ["w2 w3", "w5"]}).encode()
        + b"\n"
        for at in range(3)
    )
    whole = saved(quarters(), "PNG")
    with service.client() as client:
        tall = saved(quarters(size=(40, 120)), "PNG")
        pictures = {"0.png": whole, "1.png": tall, "2.png": whole[:60]}
        add_pictures(client, "photos", lines, pictures)
        assert client.patch("/v1/datasets/photos", json={"pictures_shown": True}).status_code == 200
        captions = [{"image": f"{at}.png", "caption": "w2 w9"} for at in range(3)]
        return submitted(client, dataset="photos/test", captions=captions)


def test_thumbnails_keep_their_place_until_they_are_made(window, service, photographed):
    window.expected |= {"503", "404"}
    page = window.page
    with service.held():
        window.open(f"/ui/evaluations/{photographed}/captions")
        page.wait_for_selector(".photo:has-text('being made') >> nth=2")
        assert page.locator(".photo img").count() == 0
        before = page.locator(".photo").first.bounding_box()
    page.wait_for_selector(".photo img >> nth=1")
    page.wait_for_selector(".photo:has-text('cannot be decoded')")
    assert page.locator(".photo img").count() == 2
    assert page.locator(".photo").first.bounding_box() == before
    for picture in page.locator(".photo img").all():  # the tall one too
        inside = picture.bounding_box()
        assert all(inside[side] <= before[side] for side in ("width", "height"))


def test_on_a_phone_a_picture_leaves_room_for_its_captions(chromium, service, photographed):
    url = f"{service.url}/ui/evaluations/{photographed}/images/1.png"
    with chromium.opened(url, viewport={"width": 390, "height": 600}) as page:
        page.locator(".picture").wait_for()
        assert page.locator(".picture").bounding_box()["height"] <= 0.45 * 600


def test_a_picture_that_does_not_arrive_is_a_word(window, photographed):
    window.expected |= {"ERR_FAILED", "503", "404"}
    window.page.route(
        "**/images/0.png?**",
        lambda route: (
            route.abort() if route.request.resource_type == "image" else route.continue_()
        ),
    )
    window.open(f"/ui/evaluations/{photographed}/images/0.png")
    window.page.wait_for_selector(".picture:has-text('cannot be shown')")
    assert window.page.locator(".picture img").count() == 0


def test_a_dataset_tells_its_content_and_how_to_score_on_it(window, service, worded):
    page = window.open("/ui/datasets/worded/test/dataset")
    page.wait_for_selector(".cards li")
    told = read_answer(service, "/v1/datasets/worded")
    facts = page.locator("main dl.facts").inner_text()
    references = sum(map(len, PEOPLE))
    assert f"References\n{references}\n" in facts
    lead = page.locator("p.lead").inner_text()
    assert lead.startswith(f"60 images with {references} captions by people.")
    assert f"v1 {told['content'].removeprefix('sha256:')[:8]}" in facts
    assert lead.endswith("They have no pictures.")
    shown = page.locator(".cards .texts")
    assert [each.split("\n") for each in shown.all_inner_texts()] == PEOPLE[:12]
    commands = page.locator(".command code").all_inner_texts()
    for file, command in zip(("captions.json", "model.safetensors"), commands, strict=True):
        assert command == f"prescore submit {file} --url {service.url} --dataset worded/test --wait"
    window.open("/ui/datasets/worded/train/dataset")
    page.wait_for_selector(".cards li")
    assert page.locator(".cards > li").all_inner_texts() == ["seen0.jpg\na dog runs"]
    window.open("/ui/datasets/worded/absent/dataset")
    page.wait_for_selector("[role=alert]:has-text('worded has no split absent; it has: t')")
