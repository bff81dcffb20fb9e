"""Finished evaluations with all that exports write of them: scores, captions, references."""

import math
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel

from prescore.client import Client
from prescore.errors import InvalidArgument, Refused
from prescore.http.answers import translate_invalid
from prescore.models import Caption, DatasetPinned, Evaluation, Metric, Score

PAGE = 1000  # captions
NOT_FOUND = 404
MEAN_ERROR = 1e-9  # relative: a corpus score this close to the mean of its captions is their mean

References = Mapping[str, Sequence[str]]


class CaptionLine(BaseModel):
    """A line of a dataset's captions.jsonl."""

    image: str
    split: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class FinishedRun:
    """An evaluation that has succeeded. Captions, references and metrics are empty where a format
    does not need them, or there are none.
    """

    evaluation: Evaluation
    scores: Mapping[str, Score]
    captions: Sequence[Caption] = ()
    references: References = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # the catalogue

    @cached_property
    def values(self) -> dict[str, float]:
        """The scores that are numbers; infinite and undefined ones are null in answers."""
        values = {name: score.value for name, score in self.scores.items()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def without_value(self) -> list[str]:
        return [name for name in self.scores if name not in self.values]

    @property
    def model(self) -> str:
        """The digest of its checkpoint or of its columns; the run's id where there is neither."""
        return self.evaluation.checkpoint or self.evaluation.columns or self.evaluation.id

    def compute_standard_error(self, metric: str) -> float | None:
        """The standard deviation of the captions' scores by the root of their number. None where
        the score of the run is not the mean of its captions' scores, as BLEU.
        """
        scores = [caption.scores.get(metric) for caption in self.captions]
        known = [score for score in scores if score is not None]
        if len(known) < 2 or len(known) < len(scores) or metric not in self.values:
            return None
        if not math.isclose(statistics.fmean(known), self.values[metric], rel_tol=MEAN_ERROR):
            return None
        return statistics.stdev(known) / math.sqrt(len(known))


class RunReader:
    """Reads runs from the service, each when it is needed; references once for each split."""

    def __init__(self, client: Client, *, all_pregen: bool, with_samples: bool) -> None:
        self._client = client
        self._all_pregen = all_pregen
        self._with_samples = with_samples
        self._split = ""
        self._references: References = {}

    def read_runs(self, evaluations: Iterable[Evaluation]) -> Iterator[FinishedRun]:
        metrics = {each.name: each for each in self._client.metrics()} if self._with_samples else {}
        for evaluation in evaluations:
            _check_finished(evaluation)
            known = {**self._read_pregen(evaluation.id), **evaluation.scores}
            if not self._with_samples:
                yield FinishedRun(evaluation, known)
                continue
            captions = self._read_captions(evaluation.id)
            references = self._read_references(evaluation.dataset) if captions else {}
            yield FinishedRun(evaluation, known, captions, references, metrics)

    def _read_pregen(self, id_: str) -> Mapping[str, Score]:
        with _ignore_absence():
            return self._client.pregen(id_) if self._all_pregen else {}
        return {}

    def _read_captions(self, id_: str) -> Sequence[Caption]:
        with _ignore_absence():
            return list(self._client.captions(id_, page_size=PAGE))
        return ()

    def _read_references(self, dataset: DatasetPinned) -> References:
        if str(dataset) != self._split:
            with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
                path = Path(folder) / "captions.jsonl"
                self._client.fetch_captions(f"{dataset.name}@{dataset.version}", path)
                with translate_invalid(self._client.url, CaptionLine):
                    self._references = _parse_references(path, dataset.split)
            self._split = str(dataset)
        return self._references


def _parse_references(path: Path, split: str) -> References:
    with path.open("rb") as stream:
        lines = (CaptionLine.model_validate_json(line) for line in stream if line.strip())
        return {line.image: line.references for line in lines if line.split == split}


@contextmanager
def _ignore_absence() -> Iterator[None]:
    """Go on where the service says that a run has no such part, as no pre-gen scores."""
    try:
        yield
    except Refused as error:
        if error.status != NOT_FOUND:
            raise


def _check_finished(evaluation: Evaluation) -> None:
    if evaluation.status != "succeeded":
        raise InvalidArgument(
            f"expected a run that has succeeded, found {evaluation.id}, which is "
            f"{evaluation.status}: wait by `prescore watch`, or leave it out"
        )
