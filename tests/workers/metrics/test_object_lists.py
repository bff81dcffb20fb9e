"""Lists of objects: what captions mention, and what is refused as a list."""

import pytest

from helpers import object_list_files
from helpers.object_list_files import FIRST
from service.contract.errors import MetricFailed
from workers.metrics import object_lists

# What the published program finds in these captions by the same list (utils/chair.py of
# github.com/LisaAnne/Hallucination, with `singularize` of pattern.en as textblob 0.20.1 has it).
PUBLISHED = [
    ("two men and a woman ride horses", ["person", "person"]),
    ("a man eats hot dogs at a table", ["person", "hot dog", "dining table"]),
    ("a dog eats a hot dog", ["dog", "hot dog"]),
    ("a baby bird beside an adult bear", ["bird", "bear"]),
    ("the baby holds a bird", ["person", "bird"]),
    ("baby birds and geese", ["bird", "bird"]),
    ("a passenger train with passengers on it", ["train", "person"]),
    ("a passenger jet", ["airplane"]),
    ("a man in a bow tie", ["person", "tie"]),
    ("a toilet seat beside a chair", ["toilet", "chair"]),
    ("a toilet with its seat up beside a stool", ["toilet", "chair"]),
    ("seats in a train", ["chair", "train"]),
    ("children and people with teddy bears", ["person", "person"]),
    ("the player slides to home plate", []),
    ("two wine glasses and knives on dining tables", ["wine glass", "knife", "dining table"]),
    ("mice eat sandwiches", ["mouse", "sandwich"]),
    ("a cell phone and two phones", ["cell phone", "cell phone"]),
    ("the grass is green", []),
    ("an air plane over air planes", ["airplane", "airplane"]),
    ("puppies and babies", ["dog", "person"]),
    ("stools , riders and trolleys", ["chair", "person", "bus"]),
    ("Two Dogs", ["dog"]),
]


def _read(tmp_path, text=object_list_files.OBJECTS):
    return object_lists.read_object_list(object_list_files.write(tmp_path / "objects.txt", text))


def _mentioned(listed, caption):
    return [FIRST[number - 1] for number in listed.mentioned(caption)]


def test_captions_mention_what_the_published_program_finds(tmp_path):
    listed = _read(tmp_path)
    assert [(caption, _mentioned(listed, caption)) for caption, _ in PUBLISHED] == PUBLISHED


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("cup", "cups"),
        ("bench", "benches"),
        ("box", "boxes"),
        ("tomato", "tomatoes"),
        ("toy", "toys"),
        ("pony", "ponies"),
        ("loaf", "loaves"),
        ("grandchild", "grandchildren"),
        ("fireman", "firemen"),
        ("police woman", "police women"),
    ],
)
def test_a_plural_need_not_be_listed(tmp_path, name, plural):
    listed = _read(tmp_path, f"other\n{name}\n")
    assert listed.mentioned(f"the {plural} and a {name}") == [2, 2]


@pytest.mark.parametrize(
    ("text", "caption", "expected"),
    [
        ("glass\nglasses\n", "a glass , glasses", [1, 2]),  # a listed name that is a plural, too
        ("glasses\nglass\n", "a glass , glasses", [2, 1]),
        ("bus\n", "a bus behind buses", [1, 1]),  # the published program makes "bu" of it
        ("stove\noven, stove top oven\n", "a stove top oven and a stove top", [2, 1]),
        ("dog\nbaby dog\nbear\n", "a baby dog , a hot dog and an adult bear", [2, 3]),
        ("\ufeffDog,  Hot   Dog ,dog,\r\n\r\n , \nCat\n", "DOG and hot dogs and cats", [1, 1, 4]),
    ],
)
def test_what_a_list_says_counts_whatever_its_letters_and_blanks(tmp_path, text, caption, expected):
    """Of names that begin at one word the longest is meant."""
    assert _read(tmp_path, text).mentioned(caption) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "objects.txt: expected an object in each line, found no line with text"),
        (" ,\n\n", "expected an object in each line"),
        ("dog\ncat, puppy\nPuppy\n", "line 3: 'Puppy' is a name of the object in line 2, too"),
        ("dog\nc\0at\n", r"line 2: expected names of at most 100 printable .* found 'c\\x00at'"),
        ("d" * 101, "line 1: expected names of at most 100 printable characters"),
        ("dog\n" * 300_000, "objects.txt: expected at most 1,000,000 bytes"),
    ],
)
def test_what_is_no_list_is_refused_with_what_was_expected(tmp_path, text, expected):
    with pytest.raises(MetricFailed, match=expected):
        _read(tmp_path, text)


def test_a_list_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "objects.txt").write_bytes("café\n".encode("latin-1"))
    with pytest.raises(MetricFailed, match=r"objects.txt: expected a text in UTF-8"):
        object_lists.read_object_list(tmp_path / "objects.txt")
