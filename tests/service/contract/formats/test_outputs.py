import random
from functools import partial

import pytest

from service.contract.formats.outputs import (
    MAX_WARNINGS,
    WordFinder,
    arrange_captions,
    warn_of_few_captions,
)
from service.contract.metrics import tokenizers
from service.contract.wording import count_noun

PLACES = {"a.jpg": 0, "b.jpg": 1, "c.jpg": 2, "7": 0, "8": 1, "9": 2}
ADVICE = "; send `subset: true` to score a part"
PEOPLE = [["a dog", "one dog"], ["a cat"], ["a bird"]]


def _arrange(*given, subset=False):
    return arrange_captions(given, PLACES, PEOPLE, "flickr@v1/test", subset=subset)


def _arrange_many(captions, references, *, subset=False, **how):
    """Of images 0.jpg, 1.jpg, …; None: without a caption. They come in the reverse order."""
    places = {f"{index}.jpg": index for index in range(len(references))}
    given = [(f"{at}.jpg", text) for at, text in enumerate(captions) if text is not None]
    return arrange_captions(given[::-1], places, references, "d", subset=subset, **how).warnings


def _many(captions, references, **how):
    return [one["code"] for one in _arrange_many(captions, references, **how)]


def test_captions_come_in_the_splits_order_whatever_names_their_images():
    found = _arrange(("9", "three"), ("a.jpg", "one"), ("8", "two"))
    assert found.pairs == [(0, "one"), (1, "two"), (2, "three")]
    assert not found.problems
    assert not found.warnings
    part = _arrange(("c.jpg", "three"), ("7", "one"), subset=True)
    assert part.pairs == [(0, "one"), (2, "three")]


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ([("x", "one")], [("/0/image", "'x' is not an image of flickr@v1/test")]),
        (
            [("a.jpg", "one"), ("b.jpg", "two"), ("7", "again"), ("y", "")],
            [
                ("/2/image", "image '7' has a caption already, in item 1"),
                ("/3/image", "'y' is not an image of flickr@v1/test"),
            ],
        ),
        ([("9", "three")], [("", f"2 of 3 images have no caption, the first is 'a.jpg'{ADVICE}")]),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(given, problems):
    found = _arrange(*given)
    assert found.problems == problems
    assert not found.pairs


@pytest.mark.parametrize(
    ("written", "found", "expected"),
    [
        ("{}", "1", "1.jpg"),
        ("val/{}.jpg", "val/1.jpg", "1.jpg"),
        ("val/{}.png", "val/1.png", "1.jpg"),
        ("COCO_{}.jpg", "COCO_1.jpg", "0.jpg"),
        ("../../{}\n", "../../1\\n", "0.jpg"),
    ],
)
def test_many_names_of_another_form_are_one_line_with_a_right_name(written, found, expected):
    places = {f"{index}.jpg": index for index in range(9)}
    given = [("0.jpg", "a"), *((written.format(index), "a") for index in range(1, 9))]
    (problem,) = arrange_captions(given, places, [["a"]] * 9, "mine/test", subset=True).problems
    told = f"found '{found}', expected a name such as '{expected}'"
    assert problem == ("", f"8 of 9 captions name no image of mine/test: {told}")
    few = arrange_captions(given[:6], places, [["a"]] * 9, "mine/test", subset=True).problems
    assert [pointer for pointer, _ in few] == [f"/{index}/image" for index in range(1, 6)]


@pytest.mark.parametrize(
    ("caption", "code"),
    [
        ("", "empty_caption"),
        (" \t", "empty_caption"),
        ("a\u2028dog", "line_separator"),
        ("a\rdog", "line_separator"),
        ("a\x00dog", "control_character"),
        ("a\x9bdog", "control_character"),
        ("dog " * 81, "long_caption"),
        ("dog " * 80, None),
        ("a\tdog", None),  # what is merely unusual
        ("a 🐕 runs", None),
        ("a\u200fdog", None),
    ],
)
def test_an_odd_caption_is_said_with_its_image(caption, code):
    found = _arrange(("7", "a dog"), ("8", caption), ("9", "a bird"))
    told = [(code, "8")] if code else []
    assert [(one["code"], one["image"]) for one in found.warnings] == told
    assert [pair[1] for pair in found.pairs][1] == caption


def test_one_image_is_said():
    codes = [one["code"] for one in _arrange(("7", "a dog"), subset=True).warnings]
    assert codes == ["subset", "one_image"]


def test_much_that_is_unknown_is_said():
    said = "7", "a UNK runs on <unk> grass there and then it sits down by a big tree in the sun ."
    (warning,) = _arrange(said, ("8", "unk a cat"), ("9", "a bird")).warnings
    assert (warning["code"], warning["image"]) == ("many_unknown_words", None)
    assert "12% of all words" in warning["detail"]
    little = said[0], said[1].replace("<unk> ", "")
    assert not _arrange(little, ("8", "a cat"), ("9", "a bird")).warnings


def test_references_handed_in_as_captions_are_noticed():
    people = [[f"a man at {index}", f"someone at {index}"] for index in range(40)]
    written = [f"a man at {index}" for index in range(40)]
    assert _many(written, people) == ["captions_are_references"]
    theirs = [f"a man at {index}" if index < 20 else "a man" for index in range(40)]
    assert _many(theirs, people) == []


@pytest.mark.parametrize("copy", ["A man at {}.", "“a MAN at {}”", " a  man , at {}\t"])
def test_references_without_their_case_and_marks_are_noticed(copy):
    people = [[f"A man at {index} ." for index in (place, place + 1)] for place in range(40)]
    assert _many([copy.format(place) for place in range(40)], people) == ["captions_are_references"]
    assert _many([f"a man is at {place}." for place in range(40)], people) == []


def _seen(images):
    """A captioner that names one of three things that people see, and what many images have."""
    people = [[f"a man has a{place} b{place}", f"a man c{place}"] for place in range(images)]
    return [f"a man {'abc'[place % 3]}{place} there" for place in range(images)], people


@pytest.mark.parametrize(("by", "side"), [(1, "after"), (-1, "before"), (2, None), (0, None)])
def test_captions_that_are_shifted_by_one_are_noticed(by, side):
    captions, people = _seen(60)
    shifted = [*captions[by:], *captions[:by]]
    told = "" if side is None else f"the image {side} theirs"
    found = _arrange_many(shifted, people)
    assert [one["code"] for one in found] == (["captions_look_shifted"] if side else [])
    assert all(told in one["detail"] for one in found)


def test_a_shift_is_seen_in_the_order_of_the_split_and_in_a_part():
    captions, people = _seen(120)
    given = [*[None] * 20, *captions[21:81], *[None] * 40]
    part, told = _arrange_many(given, people, subset=True)
    assert (part["code"], part["detail"]) == ("subset", "60 of 120 images")
    assert told["code"] == "captions_look_shifted"


def test_few_images_are_never_taken_for_shifted():
    for images, told in ((49, []), (50, ["captions_look_shifted"])):
        captions, people = _seen(images)
        assert _many([*captions[1:], captions[0]], people) == told


def test_images_that_are_alike_are_not_taken_for_shifted():
    """Frames of a film: each looks like those beside it, and words are of several."""
    people = [[f"a scene{at // 4} d{at} d{at + 1}"] for at in range(80)]
    assert _many([f"scene{at // 4} d{at + at % 2}" for at in range(80)], people) == []


def test_captions_in_a_random_order_are_not_taken_for_shifted():
    """In one of a hundred orders the neighbours' words are the better ones by a quarter."""
    captions, people = _seen(100)
    people = [[f"{text} d{at % 7} e{at % 5}" for text in of] for at, of in enumerate(people)]
    captions = [f"{text} d{at % 7} e{at % 5}" for at, text in enumerate(captions)]
    for seed in range(100):
        mixed = random.Random(seed).sample(captions, len(captions))
        assert _many(mixed, people) == []


@pytest.mark.parametrize(("shared", "told"), [(9, []), (5, ["captions_look_shifted"])])
def test_neighbours_that_fit_a_little_better_are_no_shift(shared, told):
    """Of the words of a caption, ten are of the next image and so many of its own, everywhere."""
    own = [" ".join(f"{kind}{at}" for kind in "abcdefghij") for at in range(60)]
    captions = [
        " ".join([*own[at].split()[:shared], *own[(at + 1) % 60].split()]) for at in range(60)
    ]
    assert _many(captions, [[text] for text in own]) == told


def test_references_and_captions_that_were_swapped_are_noticed():
    """A captioner writes one caption an image, and the same one often."""
    generated = [["a man in a shirt"] if index % 3 else [f"a dog {index}"] for index in range(40)]
    written = [f"someone at {index}" for index in range(40)]
    assert _many(written, generated) == ["perhaps_swapped"]
    assert _many([image[0] + " there" for image in generated], [[text] for text in written]) == []
    assert _many(written, [[*image, "a man"] for image in generated]) == []


def test_no_more_warnings_than_somebody_reads():
    captions = [f"{index} \x07" for index in range(MAX_WARNINGS + 5)]
    assert len(_many(captions, [["a"]] * len(captions))) == MAX_WARNINGS


@pytest.mark.parametrize(
    ("images", "distinct", "told"),
    [(20, 1, True), (19, 1, False), (20, 2, False), (1000, 20, True), (1000, 21, False)],
)
def test_a_captioner_that_says_the_same_of_all_is_noticed(images, distinct, told):
    captions = [f"a man {index % distinct}" for index in range(images)]
    people = [[f"someone at {index}", f"a man at {index}"] for index in range(images)]
    found = _arrange_many(captions, people)
    assert [one["code"] for one in found] == (["few_distinct_captions"] if told else [])
    assert all(one["detail"].endswith(": are these all that was said?") for one in found)
    warning = warn_of_few_captions(images, distinct)
    assert (warning is not None) == told
    one = f"one caption for all {images} images"
    said = one if distinct == 1 else f"{distinct} different captions for {images} images"
    assert not told or said in warning["detail"]


def test_references_without_words_are_told_once_for_an_image_that_has_a_caption():
    people = [["", " "], ["a dog", ""], ["a cat"], [""]]
    _, *empty = _arrange_many(["a", "b", "c"], people, subset=True)
    assert {each["code"] for each in empty} == {"empty_references"}
    assert [(each["image"], each["detail"]) for each in empty] == [
        ("0.jpg", "2 of 2 references without words, which nothing matches"),
        ("1.jpg", "1 of 2 references without words, which nothing matches"),
    ]


CHINESE = "一只狗在草地上奔跑。"


def _told_of_words(captions, people, tokenizer="ptb"):
    reader = WordFinder(tokenizer, partial(tokenizers.finds_words, tokenizer))
    found = _arrange_many(captions, people, reader=reader)
    return [one["detail"] for one in found if one["code"] == "no_words_found"]


@pytest.mark.parametrize(("images", "tokenizer"), [(1, "ptb"), (300, "none")])
def test_captions_without_blanks_between_words_are_told_with_the_remedy(images, tokenizer):
    (told,) = _told_of_words([CHINESE] * images, [[CHINESE, CHINESE]] * images, tokenizer)
    assert told.startswith(f"the tokenizer {tokenizer} finds no words in ")
    assert f" in {count_noun(images, 'caption')} of {images:,} and " in told
    assert f" and {2 * images:,} references of {2 * images:,}: " in told
    assert 'split the words with blanks, and ask for the tokenizer "none"' in told


def test_either_side_alone_is_told_where_most_of_it_has_no_words():
    english = "a dog runs on grass"
    assert len(_told_of_words([CHINESE] * 3, [[english]] * 3)) == 1
    assert len(_told_of_words([english] * 3, [[CHINESE]] * 3)) == 1
    assert _told_of_words([english] * 3, [[english, english, CHINESE]] * 3) == []
    assert _told_of_words([CHINESE, english], [[english]] * 2) == []
    assert _told_of_words(["", english, english], [[english, ""]] * 3) == []


def test_a_tokenizer_that_splits_such_text_is_not_warned_of():
    assert _told_of_words([CHINESE] * 3, [[CHINESE]] * 3, "character") == []
    split = "一 只 狗 在 草地 上 奔跑"
    assert _told_of_words([split] * 3, [[split]] * 3, "none") == []
