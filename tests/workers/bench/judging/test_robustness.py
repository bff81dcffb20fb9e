"""`prescore judge --report` as a user calls it, the tasks that it makes, and wrong captions."""

import json
import random

import pytest

from helpers import command_app
from service.contract.formats import bundles
from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.bench.judging import robustness
from workers.cli.judge import judge

ANIMALS = ["dog", "cat", "horse", "cow", "bird", "zebra", "bear", "giraffe", "sheep", "elephant"]
PLACES = ["park", "kitchen", "snow"]


def _captions(at):
    who, where = ANIMALS[at % 10], PLACES[at % 3]
    return (
        f"A man with the {who} sits in the {where}",
        f"a man sits by the {who} in the {where}",
        f"the {who} and a man",
    )


IMAGES = [robustness.ImageReferences(f"{at}.jpg", _captions(at)) for at in range(24)]


def _judge(*arguments, code=0):
    result = command_app.invoke(judge, "--tokenizer", "none", *arguments)
    assert result.exit_code == code, result.output
    return result


def test_tasks_are_of_every_kind_that_captions_allow():
    found = robustness.make_robustness_pairs(IMAGES, 0)
    assert {pair.category for pair in found} >= {
        *("noun exchanged", "verb exchanged", "roles swapped"),
        *("first half alone", "first half twice"),
        *("replace-scene", "just-person", robustness.LONGER),
    }
    by_name = {image.name: image for image in IMAGES}
    for pair in found:
        right = pair.a if pair.preferred == "a" else pair.b
        wrong = pair.b if pair.preferred == "a" else pair.a
        people = by_name[pair.image].captions
        assert right in people
        assert right not in pair.references
        assert set(pair.references) < set(people)
        if pair.category == robustness.LONGER:
            assert len(right.split()) > len(wrong.split())
        elif not pair.category.startswith("share"):
            assert wrong not in people
    assert len({(pair.image, pair.category) for pair in found}) == len(found)
    assert robustness.make_robustness_pairs(IMAGES, 0) == found
    assert robustness.make_robustness_pairs(IMAGES, 1) != found


@pytest.mark.slow  # 500 tasks of each kind
def test_a_kind_has_at_most_500_tasks_and_none_that_the_file_has():
    many = [robustness.ImageReferences(f"{at}", _captions(at)) for at in range(1200)]
    found = robustness.make_robustness_pairs(many, 0, {"just-person"})
    longer = [pair for pair in found if pair.category == robustness.LONGER]
    assert len(longer) == 500
    assert len({int(pair.image) < 600 for pair in longer}) == 2  # of all images, not the first ones
    assert "just-person" not in {pair.category for pair in found}


def test_people_stand_beside_machines_where_lines_name_who_wrote_them():
    people = ("a", "b")
    rated = [
        RatedCaption("x", people, (4.0,), "1.jpg", "Human"),
        RatedCaption("y", people, (2.0,), "1.jpg", "m1"),
        RatedCaption("x", people, (2.0,), "1.jpg", "m2"),  # says the same
        RatedCaption("z", ("c",), (2.0,), "2.jpg", "m1"),  # has nobody beside it
        RatedCaption("w", people, (2.0,), "1.jpg"),
    ]
    found = robustness.pair_with_machines(Judgements(rated))
    assert found == [JudgedPair(people, "x", "y", "a", robustness.MACHINES, "1.jpg")]


@pytest.fixture
def file(tmp_path):
    lines = []
    for at in range(30):
        people = _captions(at)
        for system, text in (
            ("human", people[0]),
            ("<b>|m1", people[at % 3][:-5]),
            ("m2", "a man"),
        ):
            rating = len(set(text.split()) & set(people[1].split())) % 5
            line = {"candidate": text, "references": people[1:], "ratings": [rating, rating + 1]}
            lines.append(line | {"image": f"{at}.jpg", "system": system})
        pair = {"references": people[1:], "a": people[0], "b": "a man", "preferred": "a"}
        lines.append(pair | {"category": "a|b *c* <i>", "image": f"{at}.jpg"})
    path = tmp_path / "rated_[x](y).jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _tables(text):
    """The rows of all tables, by their first cell."""
    rows = {}
    for line in text.splitlines():
        if line.startswith("| "):
            head, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
            rows.setdefault(head, []).append(cells)
    return rows


def test_a_report_has_agreement_beside_robustness(file, tmp_path):
    path = tmp_path / "told.txt"
    _judge(file, "--metrics", "bleu_1,rouge_l", "--report", path, "--json-out", tmp_path / "f.json")
    text, found = path.read_text(), json.loads((tmp_path / "f.json").read_text())
    rows = _tables(text)
    row = found["rated"]["rouge_l"]
    low, high = row["intervals"]["kendall_c"]
    assert f"{row['kendall_c']:.3f} [{low:.3f}, {high:.3f}]" in rows["rouge\\_l"][0][3]
    assert "## Agreement: systems" in text
    assert "## Agreement: judged pairs" in text
    for kind in ("noun exchanged", "roles swapped", "first half alone", "replace\\-scene"):
        assert len(rows[kind][0]) == 3, kind
    assert rows["first half alone"][0][0] == "30"
    assert rows["a person\\'s against a machine\\'s"][0][0] == "60"
    assert "a\\|b \\*c\\* \\<i\\>" in text  # what others wrote is no Markdown
    assert "rated\\_\\[x\\]\\(y\\)\\.jsonl" in text
    heads = [line for line in text.splitlines() if line.startswith("|---")]
    assert len(heads) >= 4


def test_a_report_of_a_datasets_images_and_of_a_systems_captions(tmp_path):
    items = [bundles.BundleItem(f"{at}.jpg", "test", _captions(at)) for at in range(24)]
    bundles.write_bundle_folder(tmp_path / "set", items)
    theirs = [{"image": f"{at}.jpg", "caption": f"a {ANIMALS[at % 10]}"} for at in range(24)]
    (tmp_path / "out.json").write_text(json.dumps(theirs))
    path = tmp_path / "told.txt"
    made = ("--distractors", tmp_path / "set/test", "--metrics", "bleu_1")
    asked = ("--report", path, "--captions", tmp_path / "out.json")
    _judge(tmp_path / "tasks.jsonl", *made, *asked)
    rows = _tables(path.read_text())
    assert rows["a person\\'s against a machine\\'s"][0][0] == "24"
    assert list(rows)[-1] == "the longer of two people\\'s"
    assert "replace\\-scene" not in rows  # the file's own pairs are these
    assert "replace\\-scene" in path.read_text()


def test_captions_without_a_report_or_of_other_images_are_refused(file, tmp_path):
    other = tmp_path / "out.json"
    other.write_text(json.dumps([{"image": "x", "caption": "y"}]))
    alone = _judge(file, "--metrics", "bleu_1", "--captions", other, code=2)
    assert "expected with --report alone" in alone.stderr
    asked = ("--report", tmp_path / "told.txt", "--captions", other)
    refused = _judge(file, "--metrics", "bleu_1", *asked, code=2)
    assert "has no caption of an image that the report knows" in refused.stderr


def test_a_file_of_which_no_task_can_be_made_says_so(tmp_path):
    line = {"references": ["猫"], "a": "猫", "b": "犬", "preferred": "a"}
    (tmp_path / "f.jsonl").write_text(json.dumps(line))
    _judge(tmp_path / "f.jsonl", "--metrics", "bleu_1", "--report", tmp_path / "told.txt")
    assert "No tasks could be made of these captions." in (tmp_path / "told.txt").read_text()


def _made(caption, *others, seeds=20):
    """Every foil of each kind, over seeds."""
    found = {}
    for seed in range(seeds):
        for kind, wrong in robustness.make_foils(caption, (caption, *others), random.Random(seed)):
            found.setdefault(kind, set()).add(wrong)
    return found


def test_a_word_is_exchanged_for_one_that_no_caption_of_the_image_holds():
    found = _made("Two dogs run", "a red dog by a cat", "three puppies and a horse", seeds=80)
    nouns = {wrong.split()[1] for wrong in found["noun exchanged"]}
    assert {"birds", "elephants", "cows"} <= nouns
    assert nouns.isdisjoint({"cats", "kittens", "horses", "ponies", "puppies", "dogs"})
    assert all(noun.endswith("s") for noun in nouns)
    numbers = {wrong.split()[0] for wrong in found["number exchanged"]}
    assert numbers == {"Four", "Five", "Six"}
    verbs = {wrong.split()[2] for wrong in found["verb exchanged"]}
    assert {"sit", "walk", "eat"} <= verbs
    assert "runs" not in verbs
    assert "colour exchanged" not in found


def test_what_the_image_has_many_of_is_no_foil_for_one_and_an_article_fits_the_word_behind_it():
    wrong = _made("a dog barks", "zebras, a bear", seeds=80)["noun exchanged"]
    assert {"a cat barks", "a giraffe barks", "an elephant barks"} <= wrong
    assert {each.split()[1] for each in wrong}.isdisjoint({"zebra", "bear"})


@pytest.mark.parametrize(
    ("caption", "kind", "wrong"),
    [
        ("A man bites a dog .", "roles swapped", "A dog bites a man ."),
        ("An elephant and a man", "roles swapped", "A man and an elephant"),
        ("a man, a man and a horse", "roles swapped", "a horse, a man and a man"),
        ("a b c d e f g", "first half alone", "a b c"),
        ("a b c d e f g", "first half twice", "a b c a b c d"),
        ("a cat under a table", "relation exchanged", None),
    ],
)
def test_rules_change_what_they_say(caption, kind, wrong):
    found = _made(caption)[kind]
    assert wrong is None or found == {wrong}
    assert caption not in found


@pytest.mark.parametrize("caption", ["", "猫 が 座る", "a b c d e", "dog"])
def test_what_no_rule_fits_has_no_foil_and_none_is_a_caption_of_the_image(caption):
    found = _made(caption)
    assert set(found) <= {"noun exchanged"}
    assert "roles swapped" not in _made("A man sees a dog", "A dog sees a man", caption)
