"""One row for every metric that Prescore knows: name, direction, range, definition, needs."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from service.contract.errors import UnknownMetric

Family = Literal["pregen", "postgen"]
INFINITY = float("inf")

FILTERS: Mapping[str, str] = {
    "none": "all tokens of a caption",
    "filter0": "its tokens of rank 0 (the model's own first choice)",
    "prefix0": "its longest prefix whose tokens all have rank 0",
    "miss0": "its tokens of rank other than 0",
}
CAPTION_SCORES: Mapping[str, str] = {
    "prob": "the product of the probabilities",
    "pplx": "the perplexity 2^(-mean log2 p)",
    "count": "the number",
    "normcount": "the number, divided by the caption's length with END,",
}
AGGREGATES: Mapping[str, str] = {
    "sum": "sum",
    "mean": "mean",
    "median": "median",
    "geomean": "geometric mean",
    "max": "maximum",
    "min": "minimum",
}
JOIN = "join"
ALIASES: Mapping[str, str] = {"perplexity": "geomean_join_pplx_none"}
WORKS: Mapping[str, tuple[str, ...]] = {  # the post-gen metrics that one work computes together
    "bleu": ("bleu_1", "bleu_2", "bleu_3", "bleu_4"),
    "wmd": ("wmd", "wmd_distance"),
    "wmd_unit": ("wmd_unit", "wmd_unit_distance"),
    "variety": (
        *("caption_length", "words_used", "distinct_1", "distinct_2", "distinct_3", "distinct_4"),
        *("entropy_1", "entropy_2", "from_training"),
    ),
}
GROUPS = {name: WORKS[name] for name in ("bleu", "variety")}  # asked for by one name
LEARNED = "nneval"
MODEL = "nneval@(?:sha256:)?([0-9a-f]{12,64})"  # its metric by a certain model
SUMMED = ("sum", "mean", "geomean")  # over images: what the other pre-gen metrics are not
WEIGHTED = ("cider_d", "cider")  # works that weigh by document frequencies
HEADLINE = ("mean_max_normcount_prefix0", "perplexity", "mean_join_normcount_filter0")


@dataclass(frozen=True)
class MetricSpec:
    name: str
    family: Family
    higher_is_better: bool | None  # None: neither (a caption's length, a product of all hits)
    range: tuple[float, float]
    definition: str
    needs: tuple[str, ...]


def metric(name: str) -> MetricSpec:
    """The row of a metric, aliases resolved; UnknownMetric suggests the nearest names."""
    digits = model_of(name)
    if digits is not None:
        return replace(METRICS[LEARNED], name=learned(digits))
    try:
        return METRICS[ALIASES.get(name, name)]
    except KeyError:
        near = difflib.get_close_matches(name[:100], [*METRICS, *ALIASES, *GROUPS], n=3, cutoff=0.6)
        advice = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownMetric(f"no metric is called {name!r:.100}{advice}") from None


def model_of(name: str) -> str | None:
    """The first digits of the SHA-256 of the model that a learned metric is to be computed with;
    None where the name says none.
    """
    if not name.startswith(f"{LEARNED}@"):
        return None
    found = re.fullmatch(MODEL, name)
    if found is None:
        raise UnknownMetric(
            f"expected {LEARNED}@ and the first 12 or more hex digits of a model's SHA-256, found "
            f"{name!r:.100}"
        )
    return found[1]


def learned(digest: str) -> str:
    """What the metric of a model is called, by the SHA-256 of its file."""
    return f"{LEARNED}@{digest.removeprefix('sha256:')[:12]}"


def names_of(name: str) -> list[str]:
    """All that a metric is called."""
    full = metric(name).name
    return [full, *(alias for alias, of in ALIASES.items() if of == full)]


def is_summed(name: str) -> bool:
    """Whether two evaluations can be compared by it, image by image."""
    spec = metric(name)
    return spec.family == "postgen" or spec.name.split("_")[0] in SUMMED


def expand(names: Iterable[str]) -> list[str]:
    """Each name once, in order, a group (`bleu`) as its metrics; aliases keep their own name."""
    found = dict.fromkeys(full for name in names for full in GROUPS.get(name, (name,)))
    for name in found:
        metric(name)
    return list(found)


def work_of(name: str) -> str:
    """What the work is called that computes a post-gen metric."""
    full = metric(name).name
    return next((work for work, members in WORKS.items() if full in members), full)


def works_of(names: Iterable[str]) -> list[str]:
    """The works that compute these, each once."""
    return list(dict.fromkeys(map(work_of, names)))


def kind_of(work: str) -> str:
    """A work is called as its kind is; where a model is named, with it."""
    return work.partition("@")[0]


def pregen_name(dataset: str, image: str, caption: str, chosen: str) -> str:
    """A name is read from tier 4 to tier 1."""
    return f"{dataset}_{image}_{caption}_{chosen}"


def _higher_is_better(caption: str, chosen: str) -> bool | None:
    if caption == "pplx":
        return False
    if caption == "prob":  # more hits are more factors below 1: their product says neither
        return None if chosen in ("filter0", "prefix0") else True
    return {"none": None, "filter0": True, "prefix0": True, "miss0": False}[chosen]


def _range(dataset: str, image: str, caption: str) -> tuple[float, float]:
    low = 1.0 if caption == "pplx" else 0.0
    bounded = caption in ("prob", "normcount") and "sum" not in (dataset, image)
    return low, 1.0 if bounded else INFINITY


def _definition(dataset: str, image: str, caption: str, chosen: str) -> str:
    over = (
        f"{AGGREGATES[dataset]} over all captions"
        if image == JOIN
        else f"{AGGREGATES[dataset]} over images of the {AGGREGATES[image]} over their captions"
    )
    return f"The {over} of {CAPTION_SCORES[caption]} of {FILTERS[chosen]}."


def _pregen() -> Iterable[MetricSpec]:
    tiers = product(AGGREGATES, (*AGGREGATES, JOIN), CAPTION_SCORES, FILTERS)
    for dataset, image, caption, chosen in tiers:
        instant = chosen == "prefix0" and caption in ("count", "normcount")
        yield MetricSpec(
            name=pregen_name(dataset, image, caption, chosen),
            family="pregen",
            higher_is_better=_higher_is_better(caption, chosen),
            range=_range(dataset, image, caption),
            definition=_definition(dataset, image, caption, chosen),
            needs=("prefix",) if instant else ("columns",),
        )


def _postgen() -> Iterable[MetricSpec]:
    for n in range(1, 5):
        yield _captioned(
            f"bleu_{n}",
            f"The geometric mean of the 1- to {n}-gram precisions of all captions, clipped by the "
            "references, times the brevity penalty against the closest reference length.",
        )
    yield _captioned(
        "rouge_l",
        "The mean over captions of the F-measure (beta 1.2) of the longest common subsequence, "
        "precision and recall each the best over the references.",
    )
    yield _captioned(
        "cider_d",
        "Ten times the mean over captions of their clipped tf-idf similarity in 1- to 4-grams to "
        "the references, with a penalty on length (sigma 6); document frequencies count the images "
        "of the whole split.",
        highest=10.0,
    )
    yield _captioned(
        "cider",
        "CIDEr proper: ten times the mean over captions of the cosine of tf-idf vectors of 1- to "
        "4-grams with each reference's, neither clipped nor penalised for length; the words are "
        "not stemmed. What is usually reported as CIDEr is cider_d.",
        highest=10.0,
    )
    yield _captioned(
        "meteor",
        "METEOR 1.5 (English, normalised): the harmonic mean of precision and recall of words "
        "aligned by form, stem, synonym or paraphrase to the best reference, less a penalty on "
        "fragmentation.",
    )
    yield _captioned(
        "spice",
        "SPICE 1.0: the mean over captions of the F-score of the objects, attributes and relations "
        "that a parser finds in them, against those of all references together; synonyms match.",
    )
    yield _captioned(
        "spider",
        "Half of SPICE and half of CIDEr-D.",
        highest=5.5,
    )
    yield from _word_movers()
    yield _captioned(
        "bertscore",
        "The mean over captions of the F-measure of a greedy matching, by cosine, of their words' "
        "vectors in a language model with those of the best reference.",
        lowest=-INFINITY,  # where a baseline is 0
    )
    yield _captioned(
        "nneval",
        "NNEval: how likely a person wrote a caption, on average, by a small network over other "
        "metrics' scores of it. The signature names the model.",
    )
    yield from _variety()


def _word_movers() -> Iterable[MetricSpec]:
    moved = (
        "the least distance that the words of a caption, less stop words and words without a "
        "vector, have to travel to those of the nearest reference"
    )
    for name, vectors in (("wmd", "as they are stored"), ("wmd_unit", "of unit length")):
        yield _captioned(
            name,
            f"The mean over captions of exp(-d), d being {moved}; word vectors {vectors}. "
            "Where a side has no words left it is 0.",
        )
        yield _captioned(
            f"{name}_distance",
            f"The mean over captions of {moved}; word vectors {vectors}. Captions are left out "
            "where a side has no words left.",
            highest=INFINITY,
            higher_is_better=False,
        )


def _variety() -> Iterable[MetricSpec]:
    sizes = {"caption_length": "Words in a caption, on average.", "words_used": "Different words."}
    for name, definition in sizes.items():
        yield _described(name, definition, INFINITY)
    for n in range(1, 5):
        yield _described(f"distinct_{n}", f"The share of different {n}-grams among all {n}-grams.")
    for n in range(1, 3):
        definition = f"The entropy of the {n}-grams of all captions, in bits."
        yield _described(f"entropy_{n}", definition, INFINITY)
    yield _described(
        "from_training",
        "The share of captions that are, word for word, one of the dataset's training split "
        "(`train`), where there is one.",
    )


def _captioned(
    name: str,
    definition: str,
    highest: float = 1.0,
    lowest: float = 0.0,
    *,
    higher_is_better: bool | None = True,
    needs: tuple[str, ...] = ("captions", "references"),
) -> MetricSpec:
    return MetricSpec(
        name=name,
        family="postgen",
        higher_is_better=higher_is_better,
        range=(lowest, highest),
        definition=definition,
        needs=needs,
    )


def _described(name: str, definition: str, highest: float = 1.0) -> MetricSpec:
    """What captions are like, which is neither good nor bad."""
    return _captioned(name, definition, highest, higher_is_better=None, needs=("captions",))


PREGEN: Mapping[str, MetricSpec] = {spec.name: spec for spec in _pregen()}
POSTGEN: Mapping[str, MetricSpec] = {spec.name: spec for spec in _postgen()}
METRICS: Mapping[str, MetricSpec] = {**PREGEN, **POSTGEN}
