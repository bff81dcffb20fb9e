"""A dataset's images, read from their file by place and by name, are those of the bundle."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.contract_files import line, tar, tar_entry
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.stored import judge_process, splits

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = st.lists(
    st.tuples(
        st.sampled_from(["train", "test", "dev"]),
        st.lists(TEXT, min_size=1, max_size=3),
        st.sampled_from(["none", "number", "name"]),
    ),
    min_size=1,
    max_size=40,
)


def _bundle(folder, lines):
    path = folder / "bundle.tar"
    path.write_bytes(tar(tar_entry(b"captions.jsonl", b"".join(lines))))
    return path


def _written(path, images):
    asked = {"question": "dataset", "path": str(path), "images": str(images)}
    return judge_process.answer_question(asked)


@pytest.mark.long
@settings(max_examples=50)
@given(LINES, st.data())
def test_every_image_is_found_by_place_and_by_name(tmp_path_factory, lines, data):
    folder = tmp_path_factory.mktemp("bundle")
    ids = {"none": lambda n: {}, "number": lambda n: {"id": n}, "name": lambda n: {"id": f"é{n}"}}
    made = [
        json.dumps({"image": f"{at}.jpg", "split": split, "references": people, **ids[id_](at)})
        for at, (split, people, id_) in enumerate(lines)
    ]
    path = _bundle(folder, [f"{each}\n".encode() for each in made])
    facts = _written(path, folder / "images")["facts"]
    assert list(facts["splits"]) == bundles.list_splits(path)
    for name, counts in facts["splits"].items():
        items = bundles.read_split(path, name)
        references = sum(len(item.references) for item in items)
        words = sum(len(text.split()) for item in items for text in item.references)
        assert counts == {"images": len(items), "references": references, "words": words}
        found = splits.open_split(folder / "images", name)
        assert list(found.items) == items
        with found.places() as places:
            assert dict(places) == bundles.index_images(items)
        assert list(splits.ReferenceTexts(found.items)) == [item.references for item in items]
        some = data.draw(st.lists(st.integers(0, len(items) - 1)))
        assert [*found.items.names(some)] == [(items[at].image, items[at].id) for at in some]
        assert [found.items[at] for at in some] == [items[at] for at in some]


def test_names_of_other_splits_and_of_nothing_are_not_found(tmp_path):
    path = _bundle(tmp_path, [line("a", split="train"), line("b", split="test")])
    _written(path, tmp_path / "images")
    with splits.open_split(tmp_path / "images", "test").places() as places:
        found = [places.get(name) for name in ("a", "b", "x", "\ud800", "\0")]
    assert found == [None, 0, None, None, None]
    with pytest.raises(InvalidBundle, match="a split named 'dev', found train, test"):
        splits.open_split(tmp_path / "images", "dev")


@pytest.mark.parametrize(
    ("second", "field"), [({"image": "a"}, "image"), ({"image": "c", "id": "a"}, "id")]
)
def test_a_name_that_two_images_have_is_refused_with_both_lines(tmp_path, second, field):
    lines = [line("a"), line("b"), line(**second)]
    answer = _written(_bundle(tmp_path, lines), tmp_path / "images")
    with pytest.raises(InvalidBundle) as caught:
        list(bundles.read_items(tmp_path / "bundle.tar"))
    assert answer["refused"] == "InvalidBundle"
    assert answer["detail"] == caught.value.detail == f"line 3, {field}: 'a' is taken by line 1"
    assert answer["at"] == caught.value.pointer
