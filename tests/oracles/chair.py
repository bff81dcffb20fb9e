"""CHAIR from its definition: words to their singular, pairs of words to one, then counts in loops.

Provenance: written from the paper (Rohrbach et al. 2018, section 2.1) and from what its program
does to words (github.com/LisaAnne/Hallucination, utils/chair.py); independent of workers/.
"""

from collections.abc import Mapping, Sequence

_ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
DOUBLES = {
    **{word: word for word in ("air plane", "hot dog", "wine glass", "teddy bear", "home plate")},
    **{f"{age} {animal}": animal for age in ("baby", "adult") for animal in _ANIMALS},
    **{f"passenger {vehicle}": vehicle for vehicle in ("jet", "train")},
    "bow tie": "tie",
    "toilet seat": "toilet",
}


def mentions(caption: str, objects: str, singular: Mapping[str, str]) -> list[str]:
    """The first names of the objects that a caption mentions; `singular`: of each plural word."""
    first_of = {}
    for line in objects.splitlines():
        names = [name.strip() for name in line.split(",")]
        first_of |= dict.fromkeys(names, names[0])
    words = [singular.get(word, word) for word in caption.lower().split()]
    joined = []
    while words:
        pair = " ".join(words[:2])
        taken = 2 if pair in DOUBLES else 1
        joined.append(DOUBLES.get(pair, words[0]))
        words = words[taken:]
    if "toilet" in joined:
        joined = [word for word in joined if word != "seat"]
    return [first_of[word] for word in joined if word in first_of]


def chair(
    said: Sequence[Sequence[str]], there: Sequence[set[str]]
) -> tuple[float, float, list[float], list[int]]:
    """CHAIRi and CHAIRs, then both of each caption. `said`: the objects that each caption mentions;
    `there`: those of its image.
    """
    hallucinated = [
        [each for each in mentioned if each not in image]
        for mentioned, image in zip(said, there, strict=True)
    ]
    wrong, mentioned = (sum(map(len, each)) for each in (hallucinated, said))
    with_one = sum(1 for each in hallucinated if each)
    shares = [
        len(each) / len(of) if of else 0.0 for each, of in zip(hallucinated, said, strict=True)
    ]
    each = [int(bool(found)) for found in hallucinated]
    return wrong / mentioned, with_one / len(said), shares, each
