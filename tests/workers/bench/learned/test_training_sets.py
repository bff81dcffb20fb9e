import numpy as np
import pytest

from service.contract.errors import RequestRefused
from workers.bench.learned import training_sets
from workers.bench.learned.training_sets import CaptionerOutputs

PEOPLE = {
    f"{number}.jpg": tuple(f"person {number} {place}" for place in range(5)) for number in range(40)
}


def _captioners(images=PEOPLE, count=4, **options):
    return [
        CaptionerOutputs(
            f"m{place}", {image: f"machine {place} {image}" for image in images}, **options
        )
        for place in range(count)
    ]


def _of(examples, image):
    return {
        (caption, against, human)
        for each, caption, against, human in zip(
            examples.images,
            examples.captions,
            examples.reference_sets,
            examples.human.tolist(),
            strict=True,
        )
        if each == image
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("123.jpg", "123_abc.jpg", True),
        ("folder/123.jpg", "123_9_z.png", True),
        ("COCO_val2014_000000000042.jpg", "000000000042.jpg", True),
        ("COCO_train2017_000000000042.jpg", "COCO_val2014_000000000042.jpg", True),
        ("shape.png", "shape.jpg", True),
        ("123.jpg", "1234.jpg", False),
        ("a_1.jpg", "a_2.jpg", False),
        ("123.jpg", "x123.jpg", False),
        ("1_a.jpg", "10.jpg", False),
    ],
)
def test_names_of_one_photo_are_known_as_such_and_no_others(one, other, same):
    photos = [training_sets.identify_photo(name) for name in (one, other)]
    assert (photos[0] == photos[1]) == same


def test_three_captions_of_either_kind_are_scored_against_as_many_people_of_their_image():
    examples = training_sets.build_examples(PEOPLE, _captioners(), seed=0)
    assert len(examples.images) == len(examples.captions) == 6 * len(PEOPLE)
    drawn = set()
    for image, said in PEOPLE.items():
        rows = _of(examples, image)
        people = {caption for caption, _, human in rows if human}
        machines = {caption for caption, _, human in rows if not human}
        assert len(people) == len(machines) == 3
        assert people < set(said)
        assert len({caption.split()[1] for caption in machines}) == 3
        for caption, against, human in rows:
            assert len(against) == len(set(against)) == 4
            if human:
                assert set(against) == set(said) - {caption}
            else:
                assert set(against) < set(said)
                drawn.add(said.index(next(iter(set(said) - set(against)))))
    assert drawn == set(range(5))


@pytest.mark.parametrize(("there", "scored"), [(3, 2), (4, 3), (7, 4)])
def test_the_number_of_references_does_not_tell_who_wrote_a_caption(there, scored):
    people = {"1.jpg": tuple(f"person {place}" for place in range(there))}
    examples = training_sets.build_examples(people, _captioners(people), seed=0)
    assert {len(each) for each in examples.reference_sets} == {scored}


def test_draws_are_the_seeds_and_the_photos_whatever_stands_beside_them():
    whole = training_sets.build_examples(PEOPLE, _captioners(), seed=3)
    few = {image: PEOPLE[image] for image in reversed(list(PEOPLE)[5:9])}
    part = training_sets.build_examples(few, _captioners(), seed=3)
    for image in few:
        assert _of(part, image) == _of(whole, image)
    alias = {"7_x.jpg": PEOPLE["7.jpg"]}  # the same photo
    renamed = training_sets.build_examples(alias, _captioners(alias), seed=3)
    places = [place for place, image in enumerate(whole.images) if image == "7.jpg"]
    assert list(renamed.reference_sets) == [whole.reference_sets[place] for place in places]
    other = training_sets.build_examples(PEOPLE, _captioners(), seed=4)
    assert any(_of(other, image) != _of(whole, image) for image in PEOPLE)


def test_a_captioner_that_was_trained_on_a_photo_is_refused_under_whatever_name():
    trained = frozenset({"7_of_another_set.jpg", "99.jpg"})
    with pytest.raises(RequestRefused, match=r"'m0' was not trained on, found 1 .*'7\.jpg'"):
        training_sets.build_examples(PEOPLE, _captioners(trained_on=trained), seed=0)
    training_sets.build_examples(PEOPLE, _captioners(trained_on=frozenset({"99_a.jpg"})), seed=0)


@pytest.mark.parametrize(
    ("people", "count", "complaint"),
    [
        ({"1.jpg": ("a", "b")}, 4, "3 references of '1.jpg', found 2"),
        ({"1.jpg": ("a", "b", "c")}, 2, "3 captioners' captions of '1.jpg', found 2"),
        ({"1.jpg": ("a", "b", "c"), "1_x.jpg": ("a", "b", "c")}, 4, "every photo once"),
    ],
)
def test_images_that_cannot_be_used_are_named(people, count, complaint):
    with pytest.raises(RequestRefused, match=complaint):
        training_sets.build_examples(people, _captioners(people, count), seed=0)


def test_photos_are_left_out_under_whatever_name():
    kept = training_sets.leave_out_photos(PEOPLE, ["7_of_another_set.jpg", "99999.jpg"])
    assert list(PEOPLE.keys() - kept.keys()) == ["7.jpg"]
    assert all(kept[image] is PEOPLE[image] for image in kept)


def test_a_photo_in_two_sets_is_found_under_another_name():
    sets = {"training": ["1.jpg", "2.jpg"], "stopping": ["3_a.jpg"], "test": ["4_b.jpg"]}
    training_sets.check_disjoint(sets)
    for planted in ("1_x.jpg", "2_7.jpg"):
        with pytest.raises(RequestRefused, match=f"training and test .* found 1; .*{planted}"):
            training_sets.check_disjoint({**sets, "test": ["4_b.jpg", planted]})
    with pytest.raises(RequestRefused, match="stopping and test"):
        training_sets.check_disjoint({**sets, "test": ["3.jpg"]})


def test_parts_hold_every_image_once_and_are_the_seeds():
    images = [f"{number}_x.jpg" for number in range(1000)]
    parts = training_sets.split_images(images, (8, 1, 1), seed=0)
    assert [len(part) for part in parts] == [800, 100, 100]
    assert sorted(image for part in parts for image in part) == sorted(images)
    assert training_sets.split_images(reversed(images), (8, 1, 1), seed=0) == parts
    assert training_sets.split_images(images, (8, 1, 1), seed=1) != parts
    assert np.mean([int(image.split("_")[0]) for image in parts[2]]) == pytest.approx(500, abs=100)
