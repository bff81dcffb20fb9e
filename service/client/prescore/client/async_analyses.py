"""What `AsyncClient` asks of a whole split; `analyses` explains its methods."""
# ruff: noqa: A002, ASYNC109  `id` is the contract's word, `timeout` is that of `Client`

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack

from prescore.client.listing import AsyncBoard, AsyncListing
from prescore.http.addresses import Address
from prescore.http.async_transport import AsyncTransport
from prescore.http.steps import Steps
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


class AsyncAnalyses:
    _address: Address
    _transport: AsyncTransport

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
    ) -> AsyncBoard[Standing]:
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
    ) -> AsyncBoard[Scored]:
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

    async def compare(
        self,
        a: str,
        b: str,
        *,
        metrics: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Comparison:
        return await self._run(analyses.compared(self._address, a, b, metrics, timeout))

    async def comparison(self, id: str) -> Comparison:
        return await self._gotten(Comparison, id)

    def comparisons(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> AsyncListing[Comparison]:
        return self._listed(Comparison, "comparisons", dataset, status)

    # Correlations of pre-gen with post-gen metrics

    async def correlations(
        self, dataset: str, *, idf: str | None = None, limit: int | None = None
    ) -> Correlations:
        return await self._run(splits.correlations(self._address, dataset, idf=idf, limit=limit))

    async def compute_study(
        self,
        dataset: str,
        *,
        idf: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        on_change: Callable[[StudyRun], None] | None = None,
    ) -> StudyRun:
        asked = {"idf": idf, "limit": limit}
        return await self._run(analyses.studied(self._address, dataset, asked, timeout, on_change))

    async def study(self, id: str) -> StudyRun:
        return await self._gotten(StudyRun, id)

    def studies(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> AsyncListing[StudyRun]:
        return self._listed(StudyRun, "studies", dataset, status)

    # Probes

    async def health(self, dataset: str) -> dict[str, MetricHealth] | None:
        found = await self.latest_probes(dataset)
        return None if found is None else found.health

    async def latest_probes(self, dataset: str) -> Probes | None:
        return await self._run(splits.latest_probes(self._address, dataset))

    async def compute_probes(
        self,
        dataset: str,
        *,
        timeout: float | None = None,
        on_change: Callable[[Probes], None] | None = None,
        **asked: Unpack[ProbesAsked],
    ) -> Probes:
        return await self._run(analyses.probed(self._address, dataset, asked, timeout, on_change))

    async def probe(self, id: str) -> Probes:
        return await self._gotten(Probes, id)

    def probes(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> AsyncListing[Probes]:
        return self._listed(Probes, "probes", dataset, status)

    # Learned metrics

    async def train_learned(
        self,
        dataset: str,
        captioners: Sequence[Mapping[str, Any]] | None = None,
        *,
        timeout: float | None = None,
        on_change: Callable[[Learned], None] | None = None,
        **asked: Unpack[TrainingAsked],
    ) -> Learned:
        steps = analyses.trained(self._address, dataset, captioners, asked, timeout, on_change)
        return await self._run(steps)

    async def training(self, id: str) -> Learned:
        return await self._gotten(Learned, id)

    def trainings(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> AsyncListing[Learned]:
        return self._listed(Learned, "trainings", dataset, status)

    async def fetch_model(self, id: str, path: str | Path) -> None:
        await self._run(analyses.fetched_model(self._address, id, Path(path)))

    async def _run(self, steps: Steps[T]) -> T:
        return await self._transport.run(steps)

    async def _gotten(self, model: type[R], id_: str) -> R:
        return await self._run(asking.gotten(self._address, model, asking.of(model, id_)))

    def _board(self, model: type[S], kind: str, dataset: str, **wanted: Any) -> AsyncBoard[S]:
        steps = splits.board(self._address, model, dataset, kind, **wanted)
        return AsyncBoard(self._transport, f"{wanted['metric']} on {dataset}", steps)

    def _listed(
        self, model: type[R], name: str, dataset: str | None, status: str | None
    ) -> AsyncListing[R]:
        steps = analyses.listed(self._address, model, dataset=dataset, status=status)
        return AsyncListing(self._transport, name, steps)
