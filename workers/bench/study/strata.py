"""One model's rows: its images, sorted by their own CIDEr-D, in 1 to 5 equal strata.

If there are n images and k strata, a stratum has n // k images; the best images, which are left
over, are dropped. Stratum 0 is the worst.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.contract.errors import MetricFailed
from service.contract.metrics.families import FAMILIES
from service.contract.plan.planning import SORTED_BY, STRATA
from workers.bench.study.rows import StratumRows
from workers.inference.columns import ProbabilityColumns
from workers.metrics import ngrams, postgen, pregen
from workers.metrics.family import FamilyScores, Floats
from workers.metrics.ngrams import Ints

Rescore = Callable[[str, Ints], Mapping[str, float]]  # scores of a family, of these images alone


@dataclass(frozen=True)
class StratifiedModel:
    """A model's columns and the scores of its captions, by family: one caption for each image, in
    their order. If `rescore` is given, CIDEr uses the document frequencies of each stratum's
    images, as in the published table; else a stratum's score is that of its captions in the whole
    set.
    """

    columns: ProbabilityColumns
    scores: Mapping[str, FamilyScores]
    rescore: Rescore | None = None

    def __post_init__(self) -> None:
        if SORTED_BY not in self.scores:
            raise MetricFailed(
                f"expected scores by {SORTED_BY}, by which images are sorted into strata"
            )
        images = len(self.columns.image_offsets) - 1
        for family, found in self.scores.items():
            lengths = {len(each) for each in found.statistics.values()}
            if lengths != {images}:
                raise MetricFailed(
                    f"expected {family} of one caption for each of {images} images, "
                    f"found {sorted(lengths)}"
                )


def make_stratum_rows(model: StratifiedModel, dataset: str, name: str) -> StratumRows:
    """A model's 15 rows. Raises MetricFailed if there are fewer images than strata."""
    own = model.scores[SORTED_BY].captions[SORTED_BY]
    if len(own) < STRATA:
        raise MetricFailed(f"{STRATA} strata need as many images, found {len(own)}")
    order = np.argsort(own, kind="stable")
    columns = _in_order(model.columns, order)
    found = [
        (count, number, _pregen(columns, start, stop), _postgen(model, order[start:stop]))
        for count, number, start, stop in _cuts(len(own))
    ]
    return StratumRows(
        datasets=[dataset] * len(found),
        models=[name] * len(found),
        strata=[count for count, *_ in found],
        stratum=[number for _, number, *_ in found],
        pregen=_table([scores for _, _, scores, _ in found]),
        postgen=_table([scores for *_, scores in found]),
        idf="dataset" if model.rescore is None else "stratum",
    )


def _cuts(images: int) -> Iterator[tuple[int, int, int, int]]:
    for count in range(1, STRATA + 1):
        size = images // count
        for number in range(count):
            yield count, number, number * size, (number + 1) * size


def _in_order(columns: ProbabilityColumns, images: Ints) -> ProbabilityColumns:
    """The columns of these images, in this order."""
    captions = _spread(columns.image_offsets, images)
    tokens = _spread(columns.caption_offsets, captions)
    return ProbabilityColumns(
        logp=columns.logp[tokens],
        rank=columns.rank[tokens],
        caption_offsets=_offsets(np.diff(columns.caption_offsets)[captions]),
        image_offsets=_offsets(np.diff(columns.image_offsets)[images]),
        top_ids=columns.top_ids[tokens],
        top_logp=columns.top_logp[tokens],
    )


def _spread(offsets: Ints, chosen: Ints) -> Ints:
    return ngrams.spread_runs(offsets[chosen], np.diff(offsets)[chosen])


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)])


def _pregen(columns: ProbabilityColumns, start: int, stop: int) -> dict[str, float]:
    image_offsets = columns.image_offsets[start : stop + 1]
    caption_offsets = columns.caption_offsets[image_offsets[0] : image_offsets[-1] + 1]
    tokens = slice(caption_offsets[0], caption_offsets[-1])
    return pregen.scores(
        columns.logp[tokens],
        columns.rank[tokens],
        caption_offsets - caption_offsets[0],
        image_offsets - image_offsets[0],
    )


def _postgen(model: StratifiedModel, images: Ints) -> dict[str, float]:
    found: dict[str, float] = {}
    for family, scores in model.scores.items():
        row = FAMILIES[scores.family]
        if model.rescore is not None and row.is_weighted:
            found |= model.rescore(family, images)
        else:
            statistics = {name: values[images] for name, values in scores.statistics.items()}
            if model.rescore is not None:
                statistics |= _rescored(model.rescore, row.made_of, images)
            found |= postgen.compute_corpus_scores(scores.family, statistics)
    return found


def _rescored(rescore: Rescore, parts: Sequence[str], images: Ints) -> dict[str, Floats]:
    """Scores of these images, in place of each one's, for parts with document frequencies."""
    weighted = [part for part in parts if FAMILIES[part].is_weighted]
    return {part: np.array([rescore(part, images)[part]]) for part in weighted}


def _table(found: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    return {name: np.array([scores[name] for scores in found]) for name in found[0]}
