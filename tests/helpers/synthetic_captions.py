"""Images by what three people say of them, in a small English or an invented language."""

import numpy as np

THINGS = ["dog", "cat", "boat", "ship", "man", "girl", "kite", "horse"]
PLACES = ["beach", "street", "field", "room"]
COLOURS = ["red", "blue", "green", "white"]


def images(count=120):
    """Three captions of a thing of a colour that does something somewhere."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        one, other = rng.choice(THINGS, 2, replace=False)
        where = rng.choice(["on", "behind", "above", "under", "near"])
        place, colour = rng.choice(PLACES), rng.choice(COLOURS)
        verb, number = rng.choice(["riding", "watching", "holding"]), rng.choice(["two", "three"])
        found.append(
            (
                f"a {colour} {one} {verb} a {other} {where} the {place}",
                f"the {one} is {verb} the {other} {where} a {place}",
                f"{number} people with a {colour} {one} and a {other} {where} the {place}",
            )
        )
    return found


def invented(count=120):
    """The same images, in words that no English list has."""
    return [
        tuple(" ".join(f"{word[::-1]}u" for word in said.split()) for said in image)
        for image in images(count)
    ]
