"""Inputs of probes: a split's captions as tokens, reference sets, options, rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from service.contract.errors import MetricFailed
from workers.bench.probing import scoring
from workers.bench.probing.scoring import ProbeScores, ProbeTableRow, Scorer
from workers.metrics import references as reference_sets
from workers.metrics.families import wmd
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import Tokenizer, tokenize
from workers.progress import Progress


@dataclass(eq=False)
class ProbeMaterial:
    """Tokens of people's captions by image, of a system's, and of training captions."""

    tokenizer: Tokenizer
    references: Sequence[Sequence[str]]
    outputs: Sequence[str] | None = None
    training: Sequence[str] | None = None
    _rest: dict[int, PreparedReferences] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        images = len(self.references)
        if self.outputs is not None and len(self.outputs) != images:
            raise MetricFailed(
                f"expected a caption for each of {images} images, found {len(self.outputs)}"
            )

    @cached_property
    def several(self) -> list[int]:
        """The images with at least two references, so that one can be compared with the rest."""
        return [image for image, found in enumerate(self.references) if len(found) > 1]

    @property
    def columns(self) -> int:
        """The lowest number of references among the images in `several`."""
        return min((len(self.references[image]) for image in self.several), default=0)

    @cached_property
    def complete(self) -> PreparedReferences:
        return reference_sets.index_tokens(self.references, self.tokenizer)

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of times that each token occurs in all references."""
        return count_tokens(caption for captions in self.references for caption in captions)

    def column(self, number: int) -> list[str]:
        return [self.references[image][number] for image in self.several]

    def rest(self, number: int) -> PreparedReferences:
        """The reference sets of the images in `several`, without a column."""
        if number not in self._rest:
            chosen = (self.references[image] for image in self.several)
            left = [[*found[:number], *found[number + 1 :]] for found in chosen]
            self._rest[number] = reference_sets.index_tokens(left, self.tokenizer)
        return self._rest[number]


def prepare_material(
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    jvm: Jvm,
    *,
    outputs: Sequence[str] | None = None,
    training: Sequence[str] | None = None,
) -> ProbeMaterial:
    """Make the material from captions as they were written."""
    flat = [caption for captions in references for caption in captions]
    tokens = iter(tokenize(flat, tokenizer, jvm))
    people = [[next(tokens) for _ in captions] for captions in references]
    said, learned = (
        None if texts is None else tokenize(texts, tokenizer, jvm) for texts in (outputs, training)
    )
    return ProbeMaterial(tokenizer, people, said, learned)


def count_tokens(captions: Iterable[str]) -> Counter[str]:
    return Counter(token for caption in captions for token in split_tokens(caption))


def split_tokens(caption: str) -> list[str]:
    return caption.split(" ") if caption else []


Trial = tuple[Sequence[str], int | None]  # captions, and the column of references to leave out


@dataclass(frozen=True)
class ProbeArguments:
    """`columns`: how many references take their turn as the candidate; None: as many as every image
    has. `frequent`: the words, or how many of the most frequent ones. `share`: the share of tokens
    to replace at random; None: the share that the word `like` has. `state`: a file that keeps the
    progress of the search for a single sentence.
    """

    columns: int | None = None
    frequent: Sequence[str] | int = ("people", "standing", "sitting", "man", "a")
    thresholds: Sequence[int] = (30, 20, 10, 5)
    swaps: Sequence[tuple[str, str]] = (("woman", "man"),)
    share: float | None = None
    like: str = "a"
    stop_list: frozenset[str] = wmd.STOP_WORDS
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    objective: str = "bleu_4"
    state: Path | None = None


@dataclass(frozen=True)
class ProbeContext:
    material: ProbeMaterial
    score: Scorer
    options: ProbeArguments
    progress: Progress

    def scores(self, trials: Sequence[Trial]) -> list[ProbeScores]:
        """Score captions against the references without a column, or against all of them (None)."""
        found: list[ProbeScores] = []
        for captions, column in trials:
            material = self.material
            references = material.complete if column is None else material.rest(column)
            found.append(self.score(captions, references))
            self.progress(len(found), len(trials))
        return found


def make_probe_row(
    probe: str,
    name: str,
    scored: Sequence[ProbeScores],
    first: ProbeTableRow | None = None,
    *,
    share: float | None = None,
    text: str = "",
    note: str = "",
) -> ProbeTableRow:
    """Make a row: means and deviations of scores, and the drop from the table's first row."""
    scores = scoring.average_scores(scored)
    return ProbeTableRow(
        probe,
        name,
        share=share,
        scores=scores,
        drop=scoring.compute_drops(first.scores, scores) if first else {},
        sd=scoring.compute_deviations(scored) if len(scored) > 1 else {},
        signatures=scored[0].signatures,
        text=text,
        note=note,
    )


def explain_single_references(material: ProbeMaterial) -> str | None:
    """Explain why one reference cannot be compared with the others; None if it can."""
    if not material.references:
        return "no images"
    if not material.several:
        return "no image has two references: comparing one with the rest needs two"
    return None


def describe_left_out(material: ProbeMaterial) -> str:
    total = len(material.references)
    missing = total - len(material.several)
    return f"left out: {missing} of {total} images, with one reference" if missing else ""
