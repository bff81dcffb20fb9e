"""Scores of all captions of a file of judgements, each against its own references.

References and captions may repeat: each distinct reference set, and each distinct caption for it,
is analysed once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from service.contract.errors import MetricFailed, UnknownMetric
from service.contract.metrics import catalogue
from service.contract.metrics.families import FAMILIES, find_family_name
from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.metrics import postgen, references
from workers.metrics.family import FamilyScores, Floats, Idf, IdfImages, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import Ints
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import Tokenizer, tokenize
from workers.progress import Progress, ignore_progress

BringTools = Callable[[str, Progress], Mapping[str, Any]]  # a family, its progress -> its tools
FamilyProgress = Callable[[str], Progress]  # the name of a family -> what receives its progress


@dataclass(frozen=True, eq=False)
class JudgedCaptions:
    """Text i has the reference set rows[i]; `rated` and `pairs` (n, 2): texts of each line."""

    reference_sets: Sequence[tuple[str, ...]]
    texts: Sequence[str]
    rows: Ints
    rated: Ints
    pairs: Ints


@dataclass(frozen=True)
class JudgedScores:
    """Scores of `JudgedCaptions.texts` by metric; `missing` says why others have none."""

    values: Mapping[str, Floats]
    signatures: Mapping[str, str]
    missing: Mapping[str, MetricFailed]


def collect_captions(judgements: Judgements) -> JudgedCaptions:
    """Collect distinct captions and reference sets; the order in a set does not matter."""
    sets: dict[tuple[str, ...], int] = {}
    first: list[tuple[str, ...]] = []
    places: dict[tuple[str, int], int] = {}

    def place(texts: tuple[str, ...], people: tuple[str, ...]) -> list[int]:
        row = sets.setdefault(tuple(sorted(people)), len(sets))
        if row == len(first):
            first.append(people)
        return [places.setdefault((text, row), len(places)) for text in texts]

    rated = [place((each.candidate,), each.references)[0] for each in judgements.rated]
    pairs = [place((each.a, each.b), each.references) for each in judgements.pairs]
    return JudgedCaptions(
        reference_sets=first,
        texts=[text for text, _ in places],
        rows=np.array([row for _, row in places], np.int64),
        rated=np.array(rated, np.int64),
        pairs=np.array(pairs, np.int64).reshape(-1, 2),
    )


def choose_metrics(names: Iterable[str]) -> list[str]:
    """Expand groups and `all`; UnknownMetric if a metric needs more than captions."""
    scored = [name for row in FAMILIES.values() if row.is_judged for name in row.names]
    found = catalogue.expand_groups(
        each for name in names for each in (scored if name == "all" else [name])
    )
    for name in found:
        if find_family_name(name) not in scored:
            raise UnknownMetric(
                f"{name} does not compare a caption with references; expected one of "
                f"{', '.join(scored)}, or all"
            )
    return found


def score_captions(
    given: JudgedCaptions,
    names: Sequence[str],
    tokenizer: Tokenizer,
    jvm: Jvm,
    *,
    bring: BringTools = lambda _family, _progress: {},
    frequencies: Sequence[Sequence[str]] | None = None,
    told: FamilyProgress = lambda _: ignore_progress,
) -> JudgedScores:
    """Score captions by metrics, named as `metrics` returns them. `bring` gives what a family needs
    besides captions and references, by the names of its function's parameters: `parse`, `vectors`,
    `encoder`, `model`. Document frequencies are those of the file's own reference sets, or of the
    sets in `frequencies`. If a metric fails, the others are still computed.
    """
    bench = _CaptionBench(given, tokenizer, jvm, frequencies)
    found: dict[str, FamilyScores] = {}
    failed: dict[str, MetricFailed] = {}
    families = catalogue.list_metric_tasks(names)
    for family in families:
        if (expect := postgen.FAMILY_FUNCTIONS[find_family_name(family)].expect) is not None:
            with suppress(MetricFailed):  # it is reported when the family is measured
                expect(jvm)
    for family in families:
        progress = told(family)
        parts = FAMILIES[find_family_name(family)].made_of
        try:
            if parts and found.keys() >= set(parts):
                found[family] = bench.joined(family, {part: found[part] for part in parts})
            else:
                found[family] = bench.measured(family, bring(family, progress), progress)
        except MetricFailed as error:
            failed[family] = error
    there = {
        name: found[task] for name in names if (task := catalogue.find_metric_task(name)) in found
    }
    return JudgedScores(
        values={name: scores.captions[name] for name, scores in there.items()},
        signatures={name: bench.signed(scores.signatures[name]) for name, scores in there.items()},
        missing={
            name: failed[catalogue.find_metric_task(name)] for name in names if name not in there
        },
    )


@dataclass(frozen=True, eq=False)
class _CaptionBench:
    """Captions and references of a file, tokenised and indexed once, when a metric needs it."""

    given: JudgedCaptions
    tokenizer: Tokenizer
    jvm: Jvm
    frequencies: Sequence[Sequence[str]] | None

    def measured(self, name: str, needs: Mapping[str, Any], progress: Progress) -> FamilyScores:
        family, given = find_family_name(name), self.given
        reads, written = FAMILIES[family].reads, {}
        if reads != "tokens":
            written = {"people": given.reference_sets, "texts": given.texts}
        as_written = ScoringInput(given.texts, given.rows, None, self.jvm)
        task = as_written if reads == "texts" else self.tokens
        tools = {**written, **needs}
        return postgen.score_family(family, replace(task, tools=tools, progress=progress))

    def joined(self, family: str, parts: Mapping[str, FamilyScores]) -> FamilyScores:
        return postgen.join_scores(family, parts, self._prepared)

    def signed(self, signature: str) -> str:
        """The signature without reference sets that only give document frequencies."""
        if self.frequencies is None:
            return signature
        offsets = self._prepared.offsets[: len(self.given.reference_sets) + 1]
        own = replace(self._prepared, offsets=offsets)
        return signature.replace(self._prepared.signature, own.signature)

    @cached_property
    def _known(self) -> Mapping[str, str]:
        """Each distinct caption, with its tokens."""
        texts = chain(self.given.texts, *self._people)
        distinct = list(dict.fromkeys(texts))
        tokens = tokenize(distinct, self.tokenizer, self.jvm)
        return dict(zip(distinct, tokens, strict=True))

    @property
    def _people(self) -> list[Sequence[str]]:
        return [*self.given.reference_sets, *(self.frequencies or ())]

    @cached_property
    def _prepared(self) -> PreparedReferences:
        people = [[self._known[text] for text in texts] for texts in self._people]
        return references.index_tokens(people, self.tokenizer)

    @cached_property
    def tokens(self) -> ScoringInput:
        idf: Idf = "dataset"
        if self.frequencies is not None:
            idf = IdfImages(np.arange(self._prepared.images) >= len(self.given.reference_sets))
        captions = [self._known[text] for text in self.given.texts]
        rows, tokenizer = self.given.rows, self.tokenizer
        return ScoringInput(captions, rows, self._prepared, self.jvm, idf, tokenizer=tokenizer)


@dataclass(frozen=True)
class ImageClusters:
    """The number of each line's image, which it shares with others."""

    rated: Ints
    pairs: Ints


def cluster_lines(judgements: Judgements, given: JudgedCaptions) -> ImageClusters:
    lines: list[RatedCaption | JudgedPair] = [*judgements.rated, *judgements.pairs]
    rows = np.concatenate([given.rows[given.rated], given.rows[given.pairs[:, 0]]]).tolist()
    images: dict[int, str] = {}
    for row, line in zip(rows, lines, strict=True):
        if line.image is not None:
            images.setdefault(row, line.image)
    numbers: dict[str | int, int] = {}
    found = [
        numbers.setdefault(line.image or images.get(row, row), len(numbers))
        for row, line in zip(rows, lines, strict=True)
    ]
    many = len(judgements.rated)
    return ImageClusters(np.array(found[:many], np.int64), np.array(found[many:], np.int64))
