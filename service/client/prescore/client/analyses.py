"""What `Client` asks of a whole split: leaderboards, comparisons, studies, probes, trainings."""
# ruff: noqa: A002  `id` is the contract's word

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack

from prescore.client.listing import Board, Listing
from prescore.http.addresses import Address
from prescore.http.steps import Steps
from prescore.http.transport import Transport
from prescore.models import (
    Comparison,
    Correlations,
    Learned,
    MetricHealth,
    Probes,
    Run,
    Scored,
    Standing,
    StudyRun,
)
from prescore.routes import analyses, asking, splits
from prescore.routes.analyses import ProbesAsked, TrainingAsked

R = TypeVar("R", bound=Run)
S = TypeVar("S", bound=Scored)
T = TypeVar("T")


class Analyses:
    _address: Address
    _transport: Transport

    # Leaderboards

    def leaderboard(
        self,
        dataset: str,
        metric: str = "cider_d",
        *unnamed: Never,
        metrics: Sequence[str] = (),
        split: str | None = None,
        signature: str | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int | None = None,
    ) -> Board[Standing]:
        """A dataset's evaluations, the best first, fetched page by page during the iteration.

        By default of the latest score's `signature`; `head.others` has the other ones.
        """
        wanted: dict[str, Any] = {
            "metric": metric,
            "unnamed": unnamed,
            "metrics": metrics,
            "split": split,
            "signature": signature,
            "labels": labels,
        }
        return self._board(Standing, "leaderboard", dataset, page_size=page_size, **wanted)

    def history(
        self,
        dataset: str,
        metric: str = "cider_d",
        *unnamed: Never,
        metrics: Sequence[str] = (),
        split: str | None = None,
        signature: str | None = None,
        labels: Mapping[str, str] | None = None,
        page_size: int | None = None,
    ) -> Board[Scored]:
        """A dataset's evaluations with a metric's score, the latest first."""
        wanted: dict[str, Any] = {
            "metric": metric,
            "unnamed": unnamed,
            "metrics": metrics,
            "split": split,
            "signature": signature,
            "labels": labels,
        }
        return self._board(Scored, "history", dataset, page_size=page_size, **wanted)

    # Comparisons

    def compare(
        self,
        a: str,
        b: str,
        *,
        metrics: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Comparison:
        """Compare two evaluations of the same images; returns the comparison when it has ended.

        By default all metrics that both have. Raises `TimedOut` after `timeout` seconds.
        """
        return self._run(analyses.compared(self._address, a, b, metrics, timeout))

    def comparison(self, id: str) -> Comparison:
        return self._gotten(Comparison, id)

    def comparisons(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[Comparison]:
        return self._listed(Comparison, "comparisons", dataset, status)

    # Correlations of pre-gen with post-gen metrics

    def correlations(
        self, dataset: str, *, idf: str | None = None, limit: int | None = None
    ) -> Correlations:
        """The last finished study of a split, NAME[@VERSION][/SPLIT]. This computes nothing."""
        return self._run(splits.correlations(self._address, dataset, idf=idf, limit=limit))

    def compute_study(
        self,
        dataset: str,
        *,
        idf: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        on_change: Callable[[StudyRun], None] | None = None,
    ) -> StudyRun:
        """Study all models of a split, NAME[@VERSION]/SPLIT; returns the study when it has ended.

        Raises `TimedOut` after `timeout` seconds.
        """
        asked = {"idf": idf, "limit": limit}
        return self._run(analyses.studied(self._address, dataset, asked, timeout, on_change))

    def study(self, id: str) -> StudyRun:
        return self._gotten(StudyRun, id)

    def studies(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[StudyRun]:
        return self._listed(StudyRun, "studies", dataset, status)

    # Probes

    def health(self, dataset: str) -> dict[str, MetricHealth] | None:
        """How far each metric can be trusted on a split; None before it has been probed.

        From the latest run of all the usual probes on NAME[@VERSION]/SPLIT.
        """
        found = self.latest_probes(dataset)
        return None if found is None else found.health

    def latest_probes(self, dataset: str) -> Probes | None:
        """The latest run of all the usual probes on NAME[@VERSION]/SPLIT that has succeeded."""
        return self._run(splits.latest_probes(self._address, dataset))

    def compute_probes(
        self,
        dataset: str,
        *,
        timeout: float | None = None,
        on_change: Callable[[Probes], None] | None = None,
        **asked: Unpack[ProbesAsked],
    ) -> Probes:
        """Probe metrics on a split, NAME[@VERSION]/SPLIT; returns the probes when they have ended.

        Also: `probes` and `metrics` (names), `tokenizer`, `options`, `deadline`; `evaluation` (an
        id) or `captions` to compare with people's. Raises `TimedOut` after `timeout` seconds.
        """
        return self._run(analyses.probed(self._address, dataset, asked, timeout, on_change))

    def probe(self, id: str) -> Probes:
        return self._gotten(Probes, id)

    def probes(self, *, dataset: str | None = None, status: str | None = None) -> Listing[Probes]:
        return self._listed(Probes, "probes", dataset, status)

    # Learned metrics

    def train_learned(
        self,
        dataset: str,
        captioners: Sequence[Mapping[str, Any]] | None = None,
        *,
        timeout: float | None = None,
        on_change: Callable[[Learned], None] | None = None,
        **asked: Unpack[TrainingAsked],
    ) -> Learned:
        """Train a learned metric; returns the training when it has ended.

            client.train_learned("flickr8k/train", [{"name": "a", "evaluation": "ev_1"}, …])
            client.train_learned("ours/train", objective="contrast")
            client.train_learned("ours/train", objective="judged", judgements=[…])

        Each captioner has a `name` and an `evaluation` (an id) or `captions`; at least three.
        Judgements are as `prescore judge` reads them from lines. Also: `further` (splits),
        `features`, `epochs`, `seed`, `stopping` and others of the request. Raises
        `TimedOut` after `timeout` seconds.
        """
        steps = analyses.trained(self._address, dataset, captioners, asked, timeout, on_change)
        return self._run(steps)

    def training(self, id: str) -> Learned:
        return self._gotten(Learned, id)

    def trainings(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[Learned]:
        return self._listed(Learned, "trainings", dataset, status)

    def fetch_model(self, id: str, path: str | Path) -> None:
        """Download a trained metric's model to `path`."""
        self._run(analyses.fetched_model(self._address, id, Path(path)))

    def _run(self, steps: Steps[T]) -> T:
        return self._transport.run(steps)

    def _gotten(self, model: type[R], id_: str) -> R:
        return self._run(asking.gotten(self._address, model, asking.of(model, id_)))

    def _board(self, model: type[S], kind: str, dataset: str, **wanted: Any) -> Board[S]:
        steps = splits.board(self._address, model, dataset, kind, **wanted)
        return Board(self._transport, f"{wanted['metric']} on {dataset}", steps)

    def _listed(
        self, model: type[R], name: str, dataset: str | None, status: str | None
    ) -> Listing[R]:
        steps = analyses.listed(self._address, model, dataset=dataset, status=status)
        return Listing(self._transport, name, steps)
