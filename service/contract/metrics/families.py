"""One row for every family of metrics of captions: the metrics that one task computes together.

A row has all facts of a family: its metrics, what it needs, its queue, and whether it is probed,
judged, studied or estimated. Requests, plans and workers follow from it. The code that computes a
family is under the same name in `workers.metrics.postgen.FAMILY_FUNCTIONS`. A new family is a row
here, an entry there, and a module.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

INFINITY = float("inf")

# What a family needs besides captions:
#   references  people's captions of the same images, as tokens
#   tuples      the scene graphs that a parser finds in captions and references
#   vectors     word vectors, which users register
#   encoder     a language model
#   embedded    the vectors of the references' tokens in that model
#   sentences   the vectors of the references' sentences in that model
#   objects     a list of objects with their names, which users bring
#   model       a trained metric: the shipped one, a registered one, or one that a name tells by its
#               digits (`nneval@…`); with all that its features need
#   training    the captions of the training split, where the dataset has one
Need = Literal[
    "references",
    "tuples",
    "vectors",
    "encoder",
    "embedded",
    "sentences",
    "objects",
    "model",
    "training",
]


@dataclass(frozen=True)
class MetricRow:
    """`higher_is_better`: None where no direction is better, as for a caption's length."""

    name: str
    definition: str
    highest: float = 1.0
    lowest: float = 0.0
    higher_is_better: bool | None = True
    is_feature: bool = False  # a learned metric can use it as a feature


@dataclass(frozen=True)
class LearnedFamily:
    """A metric with a model. `asset`: under which a model is registered; `shipped`: the first
    digits of the SHA-256 of the shipped one, where these are part of tasks' keys and the version is
    not;
    `is_composed`: models are made of other metrics' scores, their features.
    """

    title: str
    asset: str
    shipped: str | None = None
    is_composed: bool = False


@dataclass(frozen=True)
class MetricFamily:
    """`version` counts changes of the code that change results; it is part of every key.

    `made_of` names other families, whose scores of the same captions are joined to this family's
    scores; its statistics have their names.
    """

    metrics: tuple[MetricRow, ...]
    version: int
    needs: tuple[Need, ...] = ("references",)
    made_of: tuple[str, ...] = ()
    reads: Literal["tokens", "texts", "both"] = "tokens"  # captions as tokens, or as written
    encoder: str | None = None  # the asset that its encoder has to be; None: any encoder will do
    queue: Literal["metrics", "parsing"] = "metrics"  # parsing: tasks that may take long
    seconds: int = 900  # the longest that one attempt may take
    caption: float = 1e-4  # seconds that one takes, roughly
    pair: float = 0.0  # more for each pair of a word of a caption and a word of its references
    is_group: bool = False  # the family's name requests all its metrics
    is_usual: bool = False  # computed where a request names no metrics
    is_counted: bool = False  # scores come from summed counts, others from means
    is_weighted: bool = False  # weighted by document frequencies, of the split or of a part
    compares: bool = True  # compares captions with references; else describes captions
    needs_blanks: bool = False  # unavailable for text without blanks between words
    is_probed: bool = True
    is_judged: bool = True  # compared with people's ratings of single captions
    is_studied: bool = True  # correlated with pre-gen scores
    is_searched: bool = False  # the sentence with the highest score can be searched exactly
    advice: str = ""  # what `prescore doctor` says beside it
    learned: LearnedFamily | None = None
    is_relearned: bool = False  # its shipped model changed after probes had it
    estimated: int | None = None  # its place in the order of families estimated during decoding

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)


def _metric(
    name: str,
    definition: str,
    highest: float = 1.0,
    lowest: float = 0.0,
    *,
    is_feature: bool = False,
) -> tuple[MetricRow]:
    return (MetricRow(name, definition, highest, lowest, is_feature=is_feature),)


def _bleu(n: int) -> MetricRow:
    return MetricRow(
        f"bleu_{n}",
        f"The geometric mean of the 1- to {n}-gram precisions of all captions, clipped by the "
        "references, times the brevity penalty against the closest reference length.",
        is_feature=True,
    )


def _word_movers(name: str, vectors: str, *, is_feature: bool = False) -> tuple[MetricRow, ...]:
    moved = (
        "the least distance that the words of a caption, less stop words and words without a "
        "vector, have to travel to those of the nearest reference"
    )
    return (
        MetricRow(
            name,
            f"The mean over captions of exp(-d), d being {moved}; word vectors {vectors}. "
            "Where a side has no words left it is 0.",
            is_feature=is_feature,
        ),
        MetricRow(
            f"{name}_distance",
            f"The mean over captions of {moved}; word vectors {vectors}. Captions are left out "
            "where a side has no words left.",
            highest=INFINITY,
            higher_is_better=False,
        ),
    )


def _described(name: str, definition: str, highest: float = 1.0) -> MetricRow:
    """A metric that describes captions, with no better direction."""
    return MetricRow(name, definition, highest, higher_is_better=None)


_LISTED = "objects and their names are those of a list that a user brings"

FAMILIES: dict[str, MetricFamily] = {
    "bleu": MetricFamily(
        (_bleu(1), _bleu(2), _bleu(3), _bleu(4)),
        version=1,
        is_group=True,
        is_usual=True,
        is_counted=True,
        is_searched=True,
        estimated=2,
    ),
    "rouge_l": MetricFamily(
        _metric(
            "rouge_l",
            "The mean over captions of the F-measure (beta 1.2) of the longest common "
            "subsequence, precision and recall each the best over the references.",
        ),
        version=2,
        is_usual=True,
        is_searched=True,
        estimated=3,
    ),
    "cider_d": MetricFamily(
        _metric(
            "cider_d",
            "Ten times the mean over captions of their clipped tf-idf similarity in 1- to "
            "4-grams to the references, with a penalty on length (sigma 6); document "
            "frequencies count the images of the whole split.",
            highest=10.0,
            is_feature=True,
        ),
        version=2,
        is_usual=True,
        is_weighted=True,
        is_searched=True,
        estimated=1,
    ),
    "cider": MetricFamily(
        _metric(
            "cider",
            "CIDEr proper: ten times the mean over captions of the cosine of tf-idf vectors "
            "of 1- to 4-grams with each reference's, neither clipped nor penalised for "
            "length; the words are not stemmed. What is usually reported as CIDEr is cider_d.",
            highest=10.0,
        ),
        version=1,
        is_weighted=True,
    ),
    "meteor": MetricFamily(
        _metric(
            "meteor",
            "METEOR 1.5 (English, normalised): the harmonic mean of precision and recall of "
            "words aligned by form, stem, synonym or paraphrase to the best reference, less "
            "a penalty on fragmentation.",
            is_feature=True,
        ),
        version=1,
        caption=1e-3,
        pair=4e-7,
        needs_blanks=True,
        is_usual=True,
        is_counted=True,
        estimated=4,
    ),
    "spice": MetricFamily(
        _metric(
            "spice",
            "SPICE 1.0: the mean over captions of the F-score of the objects, attributes and "
            "relations that a parser finds in them, against those of all references "
            "together; synonyms match.",
            is_feature=True,
        ),
        version=1,
        needs=("references", "tuples"),
    ),
    "spider": MetricFamily(
        _metric("spider", "Half of SPICE and half of CIDEr-D.", highest=5.5),
        version=1,
        made_of=("spice", "cider_d"),
    ),
    "wmd": MetricFamily(
        _word_movers("wmd", "as they are stored", is_feature=True),
        version=1,
        caption=1e-3,
        needs=("references", "vectors"),
    ),
    "wmd_unit": MetricFamily(
        _word_movers("wmd_unit", "of unit length"),
        version=1,
        caption=1e-3,
        needs=("references", "vectors"),
        advice="recommended: for languages other than English, with word vectors of the language "
        "(Kendall's tau c on Flickr8k-Expert, in English, .486; wmd .433, CIDEr-D .438)",
    ),
    "chair": MetricFamily(
        (
            MetricRow(
                "chair_i",
                "CHAIRi: of all mentions of objects in captions, the share of those whose object "
                f"no reference of the image mentions; {_LISTED}.",
                higher_is_better=False,
            ),
            MetricRow(
                "chair_s",
                "CHAIRs: the share of captions that mention an object which no reference of the "
                f"image mentions; {_LISTED}.",
                higher_is_better=False,
            ),
        ),
        version=1,
        needs=("references", "objects"),
        is_group=True,
        is_counted=True,
    ),
    "bertscore": MetricFamily(
        _metric(
            "bertscore",
            "The mean over captions of the F-measure of a greedy matching, by cosine, of "
            "their words' vectors in a language model with those of the best reference.",
            lowest=-INFINITY,  # where a baseline is rescaled to 0
        ),
        version=1,
        caption=0.005,
        needs=("encoder", "embedded"),
        reads="texts",
        queue="parsing",
        advice="recommended, by MiniLM (`prescore assets add minilm`): it agrees with people "
        "better than every metric of words (Kendall's tau c on Flickr8k-Expert .547; CIDEr-D .438)",
        seconds=3600,
    ),
    "refscore": MetricFamily(
        _metric(
            "refscore",
            "The mean over captions of the highest cosine of a caption's sentence vector with "
            "those of its references; a sentence vector is the mean of the vectors that a "
            "language model gives to a sentence's tokens. Pictures are not looked at.",
            lowest=-1.0,
        ),
        version=1,
        caption=0.005,
        needs=("encoder", "sentences"),
        reads="texts",
        queue="parsing",
        advice="recommended: for how people rate single captions, by MiniLM (`prescore assets add "
        "minilm`; Kendall's tau c on Flickr8k-Expert .552; CIDEr-D .438)",
        seconds=3600,
    ),
    "nneval": MetricFamily(
        _metric(
            "nneval",
            "NNEval: how likely a person wrote a caption, on average, by a small network "
            "over other metrics' scores of it. The signature names the model.",
        ),
        version=1,
        caption=1e-3,
        needs=("references", "model"),
        seconds=1800,
        learned=LearnedFamily("NNEval", "learned", shipped="0d07c27d6364", is_composed=True),
    ),
    "accord": MetricFamily(
        _metric(
            "accord",
            "The mean over captions of how far a caption agrees with its references: a "
            "weighted sum of eight features (words, like words, order, CIDEr-D), "
            "squashed into [0, 1]. The weights were learned from right captions against "
            "wrong ones, not from judgements of people; no score falls if a feature rises.",
        ),
        version=2,  # also changes with the shipped model
        needs=("references", "model"),
        learned=LearnedFamily("accord", "accord"),
        is_relearned=True,
        caption=6e-4,
        advice="recommended: for English; of the metrics without a language model it agrees best "
        "with people (Kendall's tau c on Flickr8k-Expert .502; CIDEr-D .438)",
    ),
    "accord_large": MetricFamily(
        _metric(
            "accord_large",
            "The mean over captions of how far a caption agrees with its references: a "
            "weighted sum of what `accord` finds and of four comparisons of words and "
            "sentences by all-MiniLM-L6-v2, squashed into [0, 1]. The weights were learned as "
            "those of `accord`; no score falls if a feature rises.",
        ),
        version=4,  # also changes with the shipped weights
        is_relearned=True,
        caption=6e-3,
        needs=("references", "encoder", "embedded"),
        reads="both",
        encoder="minilm",
        queue="parsing",
        advice="recommended: for pairs of captions and for wrong details, by MiniLM (of 17 kinds "
        "of contrasts on COCO it puts 90.8 % right; BERTScore 87.3 %)",
        seconds=3600,
    ),
    "variety": MetricFamily(
        (
            _described("caption_length", "Words in a caption, on average.", INFINITY),
            _described("words_used", "Different words.", INFINITY),
            *(
                _described(
                    f"distinct_{n}", f"The share of different {n}-grams among all {n}-grams."
                )
                for n in range(1, 5)
            ),
            *(
                _described(
                    f"entropy_{n}",
                    f"The entropy of the {n}-grams of all captions, in bits.",
                    INFINITY,
                )
                for n in range(1, 3)
            ),
            _described(
                "from_training",
                "The share of captions that are, word for word, one of the dataset's training "
                "split (`train`), where there is one.",
            ),
        ),
        version=1,
        needs=("training",),
        is_group=True,
        compares=False,
        is_probed=False,
        is_judged=False,
        is_studied=False,  # it is of all captions together, not of parts
    ),
}


def find_family_name(task: str) -> str:
    """The kind of a metric's task: its name without the model (`nneval@…` is `nneval`)."""
    return task.partition("@")[0]


def list_joined_families(task: str) -> tuple[str, ...]:
    """The families whose scores a task joins; empty for most."""
    row = FAMILIES.get(find_family_name(task))
    return () if row is None else row.made_of


def list_needs(task: str) -> tuple[Need, ...]:
    """List the needs of a family, with those of the families that it joins, each once."""
    row = FAMILIES.get(find_family_name(task))
    own = () if row is None else row.needs
    return tuple(
        dict.fromkeys(
            [*own, *(need for part in list_joined_families(task) for need in list_needs(part))]
        )
    )


def list_learned_families() -> dict[str, LearnedFamily]:
    """The families of learned metrics, whose models are named in requests: `nneval@…`."""
    return {name: row.learned for name, row in FAMILIES.items() if row.learned is not None}


def list_usual_families() -> list[str]:
    """The families computed where a request names no metrics."""
    return [name for name, row in FAMILIES.items() if row.is_usual]


def list_estimated_families() -> list[str]:
    """Families that are estimated while captions are decoded. Their order is part of a key."""
    places = {name: row.estimated for name, row in FAMILIES.items() if row.estimated is not None}
    return sorted(places, key=places.__getitem__)


def list_searched_metrics() -> list[str]:
    """The metrics for which the sentence with the highest score can be searched."""
    return [name for row in FAMILIES.values() if row.is_searched for name in row.names]


def list_features() -> dict[str, str]:
    """The metrics that a learned metric can use as features, with their families."""
    return {
        metric.name: family
        for family, row in FAMILIES.items()
        for metric in row.metrics
        if metric.is_feature
    }


def list_feature_families(names: Iterable[str]) -> list[str]:
    """The families of these features, each once; other names are ignored."""
    known = list_features()
    return list(dict.fromkeys(known[name] for name in names if name in known))


def list_usual_features() -> list[str]:
    """The features that need no assets."""
    return [
        name for name, family in list_features().items() if list_needs(family) == ("references",)
    ]
