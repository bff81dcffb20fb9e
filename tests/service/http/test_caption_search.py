"""Captions of an evaluation that are sorted by a score, searched and cut: as a program would do it
with all of them at hand.
"""

import csv
import io

import numpy as np
import pytest

from helpers.builders import captions_with_references
from helpers.fleet import bundle_of
from helpers.submissions import evaluate, read_pages, serve_datasets
from oracles import plain_words
from service.runs import scored_captions, word_index

WORDS = ["a", "man", "woman", "dog", "runs", "sits", "on", "grass", "Straße", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 60, 0)
IMAGES = {f"album/Photo {at:02}.jpg": image for at, image in enumerate(PEOPLE)}
GIVEN = [{"image": image, "caption": text} for image, text in zip(IMAGES, SAID, strict=True)]
METRICS = ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"]
WITHOUT_SCORE = (3, 4, 17)  # their places


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(IMAGES))


@pytest.fixture(scope="module")
def place(service):
    """The captions of an evaluation; three have no CIDEr-D, as captions have none by a metric that
    is infinite for them.
    """
    found = _evaluated(service, GIVEN)
    identity = found.split("/")[3]
    scores = scored_captions.find_scored_captions(service.parts, identity)
    file, tensor = scores.scores["cider_d"]
    start = file.header.data_start + file.header.tensors[tensor].start
    with file._path.open("r+b") as stream:
        for at, value in zip(WITHOUT_SCORE, (np.nan, np.inf, -np.inf), strict=True):
            stream.seek(start + 8 * at)
            stream.write(np.float64(value).tobytes())
    return found


def _evaluated(service, captions, **more):
    with service.client() as client:
        found = evaluate(client, captions=captions, postgen=METRICS, tokenizer="none", **more)
    return f"/v1/evaluations/{found['id']}/captions"


@pytest.fixture(scope="module")
def every(service, place):
    """All of them in the dataset's order."""
    with service.client() as client:
        found = client.get(place).json()
    assert (found["matching"], found["distribution"]) == (None, None)
    assert [item["image"] for item in found["items"]] == list(IMAGES)
    missing = [at for at, item in enumerate(found["items"]) if item["scores"]["cider_d"] is None]
    assert tuple(missing) == WITHOUT_SCORE
    assert len({item["scores"]["bleu_1"] for item in found["items"]}) < 60  # so there are ties
    return found["items"]


def _in_order(every, sort):
    metric, down = sort.removeprefix("-"), sort.startswith("-")
    scores = [item["scores"][metric] for item in every]
    keys = np.array([np.nan if score is None else score for score in scores])
    return [every[at] for at in np.argsort(-keys if down else keys, kind="stable")]


@pytest.mark.parametrize(
    ("sort", "limit"), [("cider_d", 7), ("-cider_d", 60), ("-bleu_1", 7), ("bleu_1", 1000)]
)
def test_they_are_sorted_by_a_score_with_missing_ones_at_the_end(client, place, every, sort, limit):
    pages = list(read_pages(client, place, limit=limit, sort=sort))
    assert [item for page in pages for item in page["items"]] == _in_order(every, sort)
    assert {page["matching"] for page in pages} == {60}
    assert [page["distribution"] is None for page in pages] == [False, *[True] * (len(pages) - 1)]


@pytest.mark.parametrize("text", ["STRASSE", "photo 1", "no such"])
def test_a_text_is_found_in_captions_and_names_of_images_in_any_case(client, place, every, text):
    folded = text.casefold()
    expected = [
        item
        for item in every
        if folded in item["caption"].casefold() or folded in item["image"].casefold()
    ]
    pages = list(read_pages(client, place, limit=4, search=text))
    assert [item for page in pages for item in page["items"]] == expected
    assert {page["matching"] for page in pages} == {len(expected)}
    assert pages[0]["distribution"] is None
    (sorted_,) = read_pages(client, place, limit=100, search=text, sort="-bleu_1")
    assert sorted_["items"] == _in_order(expected, "-bleu_1")


@pytest.mark.parametrize("name", ["album/Photo 07.jpg", "907"])
def test_the_caption_of_one_image_is_found_by_its_name_or_id(client, place, every, name):
    (found,) = read_pages(client, place, limit=10, image=name)
    assert (found["items"], found["matching"]) == ([every[7]], 1)
    (none,) = read_pages(client, place, limit=10, image=name, search="no such")
    assert (none["items"], none["matching"]) == ([], 0)


def test_an_image_of_the_split_without_a_caption_has_none_and_others_are_not_there(service, client):
    place = _evaluated(service, GIVEN[10:20], subset=True)
    (none,) = read_pages(client, place, limit=10, image="album/Photo 07.jpg")
    assert (none["items"], none["matching"]) == ([], 0)
    (one,) = read_pages(client, place, limit=10, image="album/Photo 12.jpg")
    said = [(item["image"], item["caption"]) for item in one["items"]]
    assert said == [("album/Photo 12.jpg", SAID[12])]
    missing = client.get(place, params={"image": "Photo 12.jpg"})
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "'Photo 12.jpg' is not an image of tiny@v1/test" in missing.json()["detail"]


def test_bounds_are_part_of_what_they_bound_and_leave_out_missing_scores(client, place, every):
    low, high = sorted(item["scores"]["cider_d"] or 0.0 for item in every)[20:50:29]
    for bounds in ({"at_least": low}, {"at_most": high}, {"at_least": low, "at_most": high}):
        kept = [
            item
            for item in every
            if item["scores"]["cider_d"] is not None
            and bounds.get("at_least", -1) <= item["scores"]["cider_d"] <= bounds.get("at_most", 99)
        ]
        pages = list(read_pages(client, place, limit=9, sort="-cider_d", **bounds))
        assert [item for page in pages for item in page["items"]] == _in_order(kept, "-cider_d")
        assert {page["matching"] for page in pages} == {len(kept)}
        assert 0 < len(kept) < 57
    (none,) = read_pages(client, place, limit=9, sort="cider_d", at_least=5, at_most=4)
    assert (none["items"], none["matching"]) == ([], 0)


def test_the_distribution_is_of_all_that_are_found_whatever_the_bounds(client, place, every):
    query = {"sort": "-cider_d", "limit": 2, "search": "dog", "at_most": 0.1}
    found = client.get(place, params=query).json()["distribution"]
    scores = [item["scores"]["cider_d"] for item in every if "dog" in item["caption"]]
    counts, edges = np.histogram([score for score in scores if score is not None], bins=30)
    assert found["counts"] == counts.tolist()
    assert found["edges"] == pytest.approx(edges.tolist())
    assert found["missing"] == scores.count(None)


def test_a_cursor_is_of_the_same_question_alone(client, place):
    questions = [
        *({"sort": "cider_d"}, {"sort": "-cider_d"}, {"search": "a"}, {}),
        *({"sort": "cider_d", "search": "a"}, {"sort": "cider_d", "at_least": 0}),
        *({"missed": "big"}, {"missed": "man"}, {"missed": "man", "search": "a"}),
    ]
    cursors = [client.get(place, params={**each, "limit": 3}).json()["next"] for each in questions]
    assert all(cursors)
    for question in questions:
        answers = [client.get(place, params={**question, "cursor": each}) for each in cursors]
        expected = [200 if question == each else 400 for each in questions]
        assert [answer.status_code for answer in answers] == expected
        codes = {answer.json()["code"] for answer in answers if answer.status_code == 400}
        assert codes == {"invalid_cursor"}


def test_a_metric_without_scores_of_captions_is_refused_with_those_that_there_are(client, place):
    for sort in ("cider_e", "bleu", "-"):
        answer = client.get(place, params={"sort": sort})
        assert (answer.status_code, answer.json()["code"]) == (422, "unknown_metric")
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/query/sort"]
        assert "bleu_4, cider_d" in answer.json()["detail"]
    for sort in ("-rouge_l", "perplexity"):  # not here, though there are such metrics
        answer = client.get(place, params={"sort": sort})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "bleu_4, cider_d" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "pointers"),
    [
        ({"at_least": 0.5}, ["/query/at_least"]),
        ({"search": "a", "at_most": 0.5}, ["/query/at_most"]),
        ({"sort": "cider_d", "at_most": "nan"}, ["/query/at_most"]),
        ({"sort": "cider_d", "at_least": "1_0"}, ["/query/at_least"]),
        ({"search": ""}, ["/query/search"]),
        ({"missed": ""}, ["/query/missed"]),
        ({"invented": "a" * 201}, ["/query/invented"]),
        ({"format": "columns", "invented": "dog"}, ["/query/invented"]),
        ({"image": "a" * 501}, ["/query/image"]),
        ({"format": "columns", "sort": "cider_d", "image": "907"}, ["/query/sort", "/query/image"]),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(client, place, query, pointers):
    answer = client.get(place, params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers


def test_as_csv_there_are_the_same_rows(client, place):
    query = {"search": "dog", "sort": "bleu_1", "at_least": 0.4}
    (page,) = read_pages(client, place, limit=100, **query)
    coco = client.get(place, params=query | {"format": "coco"}).json()
    assert coco == [
        {"image_id": 900 + list(IMAGES).index(item["image"]), "caption": item["caption"]}
        for item in page["items"]
    ]
    sheet = client.get(place, params=query, headers={"Accept": "text/csv"})
    head, *rows = csv.reader(io.StringIO(sheet.text))
    assert head == ["image", "caption", *METRICS, "nearest", "invented", "missed"]
    assert [row[:2] for row in rows] == [[i["image"], i["caption"]] for i in page["items"]]
    for row, item in zip(rows, page["items"], strict=True):
        shown = [float(cell) if cell else None for cell in row[2:-3]]
        assert shown == [item["scores"][name] for name in METRICS]
        words = [item["nearest"], *(" ".join(item[kind]) for kind in ("invented", "missed"))]
        assert row[-3:] == words


def _plain_words(item):
    at = list(IMAGES).index(item["image"])
    return plain_words.compare(SAID[at], PEOPLE[at])


def test_captions_have_the_words_in_which_they_differ_from_their_references(client, place, every):
    kinds = "nearest", "invented", "missed", "matched"
    (sorted_,) = read_pages(client, place, limit=100, sort="-cider_d")
    (one,) = read_pages(client, place, limit=10, image="907")
    for item in [*every, *sorted_["items"], *one["items"]]:
        assert [item[kind] for kind in kinds] == [*_plain_words(item)[:4]]


def test_the_wording_counts_captions_by_word_on_the_first_page_alone(client, place, every):
    plain = [_plain_words(item) for item in every]
    lists = {"invented": [each[1] for each in plain], "missed": [each[2] for each in plain]}
    expected = {
        "of": 60,
        "without_bigram": sum(not each[4] for each in plain),
        "copied": sum(each[5] for each in plain),
    }
    for kind, words in lists.items():
        counts = {word: sum(word in each for each in words) for each in words for word in each}
        order = sorted(counts, key=lambda word: (-counts[word], word))
        expected[kind] = [{"word": word, "captions": counts[word]} for word in order[:10]]
    assert expected["missed"]
    for query in ({}, {"sort": "bleu_1"}, {"search": "no such"}, {"missed": "big"}):
        first, *others = read_pages(client, place, limit=7, **query)
        assert first["wording"] == expected
        assert {page["wording"] is None for page in others} <= {True}
    (one,) = read_pages(client, place, limit=7, image="907")
    assert one["wording"] is None


@pytest.mark.parametrize(
    "more", [{}, {"search": "a"}, {"sort": "-bleu_1", "at_least": 0.1}], ids=str
)
@pytest.mark.parametrize(
    ("kind", "word"), [("missed", "BIG"), ("missed", "Straße"), ("invented", "dog")]
)
def test_captions_are_found_by_a_word_that_they_invent_or_miss(client, place, kind, word, more):
    (everything,) = read_pages(client, place, limit=100, **more)
    expected = [item for item in everything["items"] if word.lower() in item[kind]]
    pages = list(read_pages(client, place, limit=4, **{kind: word}, **more))
    assert [item for page in pages for item in page["items"]] == expected
    assert {page["matching"] for page in pages} == {len(expected)}
    if kind == "missed" and not more:
        assert 0 < len(expected) < 60


def test_a_word_of_a_query_is_a_text_and_one_word(client, place, every):
    two = next(item["missed"] for item in every if len(item["missed"]) > 1)[:2]
    for word in (".*", "%", " ".join(two), two[0][:-1], "<b>", " "):
        (none,) = read_pages(client, place, limit=10, missed=word)
        assert none["items"] == []


def test_words_of_many_long_captions_are_not_counted_but_shown(client, place, monkeypatch):
    word_index._find_entry.cache_clear()
    monkeypatch.setattr(word_index, "MOST_CHARACTERS", 100)
    (page,) = read_pages(client, place, limit=100)
    assert page["wording"] is None
    assert page["items"][0]["nearest"] in PEOPLE[0]
    answer = client.get(place, params={"missed": "big"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/query/missed"]
    word_index._find_entry.cache_clear()


def test_words_are_counted_once(client, place, monkeypatch):
    word_index._find_entry.cache_clear()
    counted = []
    count = word_index._count_words
    monkeypatch.setattr(word_index, "_count_words", lambda found: counted.append(1) or count(found))
    for query in ({}, {"sort": "bleu_1"}, {"missed": "big"}, {"invented": "dog"}):
        assert client.get(place, params=query).status_code == 200
    assert counted == [1]
