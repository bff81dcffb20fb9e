"""Training of `accord` from captions: weights that put right captions above wrong ones.

The loss is logistic in the difference of the two captions' sums, so that only contrasts count and
no caption is good or bad by itself. Every kind of contrast counts the same. No weight is negative.
The problem is convex, and its solution does not depend on where the search begins.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from service.contract.errors import MetricFailed, RequestRefused
from service.contract.metrics.objectives import CONTRAST
from workers.bench.judgements import JudgedPair
from workers.bench.judging import distractors
from workers.bench.learned import accord_contrasts
from workers.bench.learned.accord_contrasts import Contrast
from workers.bench.learned.accord_language import learn_language
from workers.bench.learned.nneval_fitting import Report, ignore_report
from workers.metrics import references
from workers.metrics.accord import caption_features
from workers.metrics.accord.language import AccordLanguage, TokenizedCaptions
from workers.metrics.accord.model import AccordWeights
from workers.metrics.accord.stems import ENGLISH, choose_stems
from workers.metrics.family import Floats, ScoreFamily, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import soundness
from workers.metrics.ngrams import Ints
from workers.metrics.tokens import Tokenizer, tokenize
from workers.metrics.vectors.sentences import list_distinct

_NOTHING = 1e-6  # weights of less together are rounding


@dataclass(frozen=True)
class AccordRecipe:
    """`beta`: the penalty on squared weights of standardised features, which is the largest within
    a standard error of the best on contrasts of other images. `most`: contrasts of each kind.
    """

    beta: float = 0.1
    most: int = 3000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class LearnedAccord:
    """A model, the contrasts that it was learned from, and the features of their captions."""

    model: AccordWeights
    contrasts: Sequence[Contrast]
    right: Floats
    wrong: Floats


def learn_accord(
    images: TokenizedCaptions,
    further: Iterable[Contrast],
    asked: "AccordTrainingOptions",
    *,
    about: Mapping[str, Any] | None = None,
    stems: str = ENGLISH,
) -> LearnedAccord:
    """Learn from images' tokens, and from `further` contrasts that others made of them."""
    recipe = asked.recipe
    known = learn_language(images, asked.tokenizer, stems)
    found = choose_contrasts(images, further, recipe, stems)
    right, wrong = measure_contrasts(found, known, asked)
    kinds = np.array([each.kind for each in found])
    weights, middle = fit_weights_and_middle(right, wrong, kinds, recipe.beta)
    described = {"images": len(images), "contrasts": count_contrasts(found), "recipe": vars(recipe)}
    model = AccordWeights(known, weights, middle, {**described, **(about or {})})
    return LearnedAccord(model, found, right, wrong)


def fit_weights_and_middle(
    right: Floats, wrong: Floats, kinds: NDArray[Any], beta: float
) -> tuple[Floats, float]:
    """The weights, and the sum of features at which right and wrong captions are as likely."""
    weights = fit_weights(right - wrong, kinds, beta)
    if weights.sum() < _NOTHING:
        raise MetricFailed(
            "no feature is higher of right captions than of wrong ones: expected captions that "
            "agree with their references more than those that they are preferred to"
        )
    return weights, float(_shares(kinds) @ ((right + wrong) @ weights)) / 2


def count_contrasts(given: Sequence[Contrast]) -> dict[str, int]:
    """Count the contrasts of each kind."""
    return dict(Counter(each.kind for each in given))


def choose_contrasts(
    images: TokenizedCaptions,
    further: Iterable[Contrast],
    recipe: AccordRecipe = AccordRecipe(),
    stems: str = ENGLISH,
) -> list[Contrast]:
    """The contrasts that are learned from."""
    corpus = accord_contrasts.ContrastCorpus.of(images, stems)
    made = accord_contrasts.make_contrasts(corpus, recipe.seed)
    return accord_contrasts.draw_contrasts([*made, *further], recipe.most, recipe.seed)


def measure_contrasts(
    given: Sequence[Contrast], known: AccordLanguage, asked: "AccordTrainingOptions"
) -> tuple[Floats, Floats]:
    """The features of the right and of the wrong captions."""
    captions = [each.right for each in given] + [each.wrong for each in given]
    sets, rows = list_distinct([each.references for each in given])
    found = measure_tokens(captions, np.tile(rows, 2), sets, known, asked)
    return found[: len(given)], found[len(given) :]


def measure_tokens(
    captions: Sequence[str],
    rows: Ints,
    reference_sets: Sequence[Sequence[str]],
    known: AccordLanguage,
    asked: "AccordTrainingOptions",
) -> Floats:
    """The features of captions, as tokens; rows[i] is the reference set of caption i."""
    task = ScoringInput(
        captions,
        rows,
        references.index_tokens(reference_sets, asked.tokenizer),
        asked.jvm,
        progress=partial(asked.report, "features"),
        tokenizer=asked.tokenizer,
        others=asked.score,
    )
    return caption_features.measure_features(task, known)


def fit_weights(differences: Floats, kinds: NDArray[Any], beta: float) -> Floats:
    """The weights of features, from the differences of right and wrong captions."""
    spread = differences.std(axis=0)
    scale = np.where(spread > 0, spread, 1)
    scaled, shares = differences / scale, _shares(kinds)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = scaled @ weights
        slopes = shares * 0.5 * (1 - np.tanh(margins / 2))
        value = shares @ np.logaddexp(0, -margins) + beta / 2 * (weights @ weights)
        return float(value), beta * weights - slopes @ scaled

    found = minimize(
        loss,
        np.full(len(scale), 0.1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(scale),
        options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9},
    )
    weights: Floats = found.x / scale
    return weights


def _shares(kinds: NDArray[Any]) -> Floats:
    """Weigh contrasts: all kinds count the same, 1 together."""
    _, places, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    shares: Floats = 1 / counts[places] / len(counts)
    return shares


FEWEST = 50  # images with several captions: with fewer, hardly a word is known
MOST = 20_000  # images that are learned from: their captions stand beside each other in memory

CaptionsByImage = Mapping[str, Sequence[str]]  # an image's name -> its captions


@dataclass(frozen=True, eq=False)
class AccordTrainingOptions:
    """`score` scores captions by any family; `inputs` are digests, for the record."""

    jvm: Jvm
    score: ScoreFamily
    tokenizer: Tokenizer
    recipe: AccordRecipe = field(default_factory=AccordRecipe)
    inputs: Mapping[str, str] = field(default_factory=dict)
    report: Report = ignore_report

    def tokens(self, texts: Iterable[str]) -> dict[str, str]:
        """Each text with its tokens."""
        distinct = sorted(set(texts))
        told = partial(self.report, "tokens")
        return dict(
            zip(distinct, tokenize(distinct, self.tokenizer, self.jvm, progress=told), strict=True)
        )


@dataclass(frozen=True, eq=False)
class TokenizedImages:
    """Captions of images as texts and as tokens; `stems`: how words are made stems."""

    texts: Sequence[Sequence[str]]
    said: Mapping[str, str]
    images: TokenizedCaptions
    stems: str

    @classmethod
    def of(cls, people: CaptionsByImage, asked: AccordTrainingOptions) -> "TokenizedImages":
        """Tokenize MOST images, drawn by name. Raises RequestRefused if few have two captions."""
        texts = [tuple(said) for said in _few_enough(people, asked.recipe.seed).values()]
        several = sum(len(said) > 1 for said in texts)
        if several < FEWEST:
            raise RequestRefused(
                f"expected at least {FEWEST} images with two captions or more to learn from, found "
                f"{several}: each caption is compared with the image's others"
            )
        said = asked.tokens(text for image in texts for text in image)
        images = [tuple(said[text] for text in image) for image in texts]
        return cls(texts, said, images, choose_stems(said.values()))


def _few_enough(people: CaptionsByImage, seed: int) -> CaptionsByImage:
    def drawn(image: str) -> bytes:
        return hashlib.sha256(f"{seed} {image}".encode("utf-8", "surrogatepass")).digest()

    if len(people) <= MOST:
        return people
    kept = set(sorted(people, key=drawn)[:MOST])
    return {image: said for image, said in people.items() if image in kept}


_TIE = 1e-10  # scores that are nearer than this are the same


def learn_from_captions(people: CaptionsByImage, asked: AccordTrainingOptions) -> AccordWeights:
    """Learn from images' captions, of which each is compared with the image's others. Raises
    RequestRefused if there are too few, MetricFailed if what was learned says nothing of captions,
    Canceled as metrics do.
    """
    spoken = TokenizedImages.of(people, asked)
    in_english = spoken.texts if spoken.stems == ENGLISH else []
    pairs = list(distractors.make_distractors(in_english, asked.recipe.seed))
    said = {**spoken.said, **asked.tokens(text for pair in pairs for text in (pair.a, pair.b))}
    learned = learn_accord(
        spoken.images,
        make_distractor_contrasts(pairs, said),
        asked,
        stems=spoken.stems,
        about={"objective": CONTRAST, "inputs": dict(asked.inputs)},
    )
    about = {**learned.model.about, "judged": None, "right": _right(learned), "agreement": None}
    model = replace(learned.model, about=about)
    soundness.check_model(model, asked.score)
    return model


def make_distractor_contrasts(
    pairs: Iterable[JudgedPair], said: Mapping[str, str]
) -> Iterator[Contrast]:
    """The tasks of `prescore judge` as contrasts; `said` has the tokens of all texts."""
    for pair in pairs:
        right, wrong = (pair.a, pair.b) if pair.preferred == "a" else (pair.b, pair.a)
        others = tuple(said[text] for text in pair.references)
        yield Contrast(str(pair.category), said[right], said[wrong], others)


def _right(learned: LearnedAccord) -> dict[str, float]:
    """Share by kind of the training contrasts that the model puts right; ties count half."""
    better, worse = learned.model(learned.right), learned.model(learned.wrong)
    solved = (better > worse + _TIE) + 0.5 * (np.abs(better - worse) <= _TIE)
    kinds = np.array([each.kind for each in learned.contrasts])
    return {
        str(kind): round(float(solved[kinds == kind].mean()), 4)
        for kind in dict.fromkeys(kinds.tolist())
    }
