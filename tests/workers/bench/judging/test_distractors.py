import pytest

from workers.bench.judging import distractors, phrases

IMAGES = [
    ("A man in a red hat walks on the beach .", "A man strolls on the sand .", "someone outside"),
    ("Two young boys play in the snow .", "Two boys in the snow", "The boys throw snowballs ."),
    ("a woman reads in a kitchen", "A lady at home, in a small kitchen, with a book"),
    ("A woman rides along a city street .", "A woman on a bicycle on the road ."),
    ("Two girls run through a green park .", "Three girls are outside in the park"),
    ("A man climbs on the beach .", "The guy on a rock"),
    ("A dog runs in the snow .",),
    ("A man sleeps .",),
]


@pytest.mark.parametrize(
    ("caption", "person", "scene"),
    [
        (
            "A young man in a blue shirt walks along a busy city street .",
            "A young man",
            "a busy city street",
        ),
        ("In the park, two little girls play.", "two little girls", "the park"),
        ("a large group of young men on stage", "a large group of young men", "stage"),
        ("A dog jumps into the swimming pool!", None, "the swimming pool"),
        ("There are 2 women", "2 women", None),
        ("Three construction workers eat", None, None),  # but the end of a phrase
        ("A girl sits on a lawn chair", "A girl", None),
        ("Skiers on a snow covered mountain", None, "a snow covered mountain"),
        ("The beach is empty", None, None),  # a scene stands behind a preposition
        ("He said: woman, water", "woman", None),
        ("", None, None),
    ],
)
def test_the_first_person_and_scene_of_a_caption(caption, person, scene):
    for found, expected in (
        (phrases.find_person(caption), person),
        (phrases.find_scene(caption), scene),
    ):
        assert (found and found.text) == expected
        assert found is None or caption[found.start : found.end] == expected


def _made(seed=0):
    return list(distractors.make_distractors(IMAGES, seed))


def _sides(pair):
    return (pair.a, pair.b) if pair.preferred == "a" else (pair.b, pair.a)


def test_all_six_categories_are_made_and_the_right_caption_is_the_images_own():
    """An image of one caption gives no task."""
    assert {pair.category for pair in _made()} == set(distractors.CATEGORIES)
    for pair in _made():
        right, wrong = _sides(pair)
        (image,) = [each for each in IMAGES if right in each]
        assert sorted((*pair.references, right)) == sorted(image)
        assert wrong not in image
    assert list(distractors.make_distractors([("A man on the beach .",)], 0)) == []


def test_the_right_one_is_a_or_b_by_lot():
    sides = [pair.preferred for seed in range(20) for pair in _made(seed)]
    assert 0.4 < sides.count("a") / len(sides) < 0.6


def _of(category, starting, seeds=30):
    pairs = (pair for seed in range(seeds) for pair in _made(seed) if pair.category == category)
    return {wrong for right, wrong in map(_sides, pairs) if right.startswith(starting)}


def test_a_person_is_exchanged_for_one_whom_no_caption_of_the_image_names():
    wrong = _of("replace-person", "A man in a red hat")
    assert wrong == {
        "A woman in a red hat walks on the beach .",
        "A lady in a red hat walks on the beach .",
    }
    assert _of("replace-person", "Two young boys") == {
        "Two girls play in the snow .",
        "Three girls play in the snow .",
    }


def test_a_scene_is_exchanged_for_one_behind_the_same_preposition_that_cannot_be_the_same_place():
    """Not for a kitchen (in), nor for a road's sand; a beach may have snow, but none is "on" it."""
    assert _of("replace-scene", "A man in a red hat") == {
        "A man in a red hat walks on a rock .",
        "A man in a red hat walks on the road .",
    }
    assert _of("replace-scene", "a woman reads") == {
        "a woman reads in the snow",
        "a woman reads in the park",
    }


def test_a_caption_of_another_image_shares_the_same_phrase():
    assert _of("share-person", "A man in a red hat") == {
        "A man climbs on the beach .",
        "A man sleeps .",
    }
    assert _of("share-scene", "A man in a red hat") == {"A man climbs on the beach ."}


def test_the_phrase_alone():
    assert _of("just-person", "A man in a red hat") == {"A man"}
    assert _of("just-scene", "A man in a red hat") == {"the beach"}


def test_pairs_carry_the_names_of_their_images():
    """The references of two pairs of one image differ: without names they would hang together no
    more.
    """
    names = [f"{at}.jpg" for at in range(len(IMAGES))]
    for pair in distractors.make_distractors(IMAGES, 0, names):
        right, _ = _sides(pair)
        assert right in IMAGES[names.index(pair.image)]
    assert {pair.image for pair in _made()} == {None}
