"""Calls about whole splits: leaderboards, comparisons, studies, probes, trainings."""
# ruff: noqa: A002  `id` is the contract's word

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack

from prescore.client.lists import Board, Listing
from prescore.client.requests import (
    Calls,
    Parameter,
    ProbeChoices,
    TrainingChoices,
    build_label_params,
    build_probe_fields,
    build_query,
    build_run_path,
    build_training_fields,
    check_names,
)
from prescore.http.downloads import fetch_file
from prescore.http.transport import HttpRequest
from prescore.http.uploads import build_dataset_path
from prescore.models import (
    AttentionItem,
    CaptionerTraining,
    Comparison,
    Correlations,
    Learned,
    MetricHealth,
    Moved,
    Probes,
    Run,
    Scored,
    SignalCard,
    Standing,
    StudyRun,
    SweepRanking,
    WordExchanges,
)

USUAL_PROBES = frozenset({"human", "frequent", "rare", "swap", "random", "single"})
PROBES_A_PAGE = 20
PROBES_SEEN = 200  # runs that are looked through

R = TypeVar("R", bound=Run)
S = TypeVar("S", bound=Scored)


class AnalysisCalls(Calls):
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
        order: str | None = None,
        page_size: int | None = None,
    ) -> Board[Standing]:
        """A dataset's evaluations, the best first, fetched page by page during the iteration.

        By default of the latest score's `signature`; `head.others` has the other ones. `order`:
        "newest", "oldest" or "name" instead of "rank".
        """
        params: dict[str, Parameter] = {"split": split, "signature": signature, "limit": page_size}
        params |= {"metrics": ",".join(metrics) or None, **build_label_params(labels)}
        params |= {"order": order}
        return self._board(Standing, "leaderboard", (dataset, metric, *unnamed), params)

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
        params: dict[str, Parameter] = {"split": split, "signature": signature, "limit": page_size}
        params |= {"metrics": ",".join(metrics) or None, **build_label_params(labels)}
        return self._board(Scored, "history", (dataset, metric, *unnamed), params)

    # Comparisons

    def compare(
        self, a: str, b: str, *, metrics: Sequence[str] | None = None, timeout: float | None = None
    ) -> Comparison:
        """Compare two evaluations of the same images; returns the comparison when it has ended.

        By default all metrics that both have. Raises `TimedOut` after `timeout` seconds.
        """
        fields = {"a": a, "b": b, "metrics": check_names("metrics", metrics)}
        return self._compute(Comparison, fields, timeout)

    def comparison(self, id: str) -> Comparison:
        return self._get(Comparison, build_run_path(Comparison, id))

    def comparisons(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[Comparison]:
        return self._runs(Comparison, "comparisons", dataset, status)

    def compared_images(
        self,
        id: str,
        *,
        metric: str | None = None,
        sort: str | None = None,
        page_size: int | None = None,
    ) -> Listing[Moved]:
        """Every image of a comparison, with both captions and their scores by one metric, by
        default the comparison's first.

        `sort`: "difference", "a" or "b", after a `-` the highest first; by default the dataset's
        order.
        """
        path, params = f"{build_run_path(Comparison, id)}/images", {"metric": metric, "sort": sort}
        return self._list(Moved, f"images of {id}", path, **params, limit=page_size)

    def exchanged_words(
        self, id: str, *, metric: str | None = None, limit: int | None = None
    ) -> WordExchanges:
        """Content words that `a` of a comparison says in the place of words of `b`, the largest
        excess over the reverse first.
        """
        path = f"{build_run_path(Comparison, id)}/words"
        return self._get(WordExchanges, path, metric=metric, limit=limit)

    # Correlations of pre-gen with post-gen metrics

    def correlations(
        self, dataset: str, *, idf: str | None = None, limit: int | None = None
    ) -> Correlations:
        """The last finished study of a split, NAME[@VERSION][/SPLIT]. This computes nothing."""
        name, _, split = dataset.partition("/")
        path = f"{build_dataset_path(name)}/correlations"
        return self._get(Correlations, path, split=split or None, idf=idf, limit=limit)

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
        fields = {"dataset": dataset, "idf": idf, "limit": limit}
        return self._compute(StudyRun, fields, timeout, on_change)

    def study(self, id: str) -> StudyRun:
        return self._get(StudyRun, build_run_path(StudyRun, id))

    def studies(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[StudyRun]:
        return self._runs(StudyRun, "studies", dataset, status)

    # Signal and noise

    def signal(
        self,
        dataset: str,
        target: str = "cider_d",
        *,
        last: int | None = None,
        average: int | None = None,
        limit: int | None = None,
    ) -> SignalCard:
        """The card of a split, NAME[@VERSION][/SPLIT]: what each metric can decide there, by
        trainings that are labelled `run` and `step`.

        `target`: the metric whose final order early scores should tell. `last`: checkpoints that
        make the noise. `average`: checkpoints whose mean is a score. `limit`: pre-gen metrics
        besides the headline ones.
        """
        name, _, split = dataset.partition("/")
        path = f"{build_dataset_path(name)}/signal"
        params: dict[str, Parameter] = {"last": last, "average": average, "limit": limit}
        return self._get(SignalCard, path, split=split or None, target=target, **params)

    def rank(
        self,
        dataset: str,
        labels: Mapping[str, str],
        target: str = "cider_d",
        *,
        at: float | None = None,
        steps: int | None = None,
        sure: float | None = None,
        average: int | None = None,
    ) -> SweepRanking:
        """Rank the runs with these labels on a split, NAME[@VERSION][/SPLIT], before they have
        ended: which can be stopped, and with which probability the best one is kept.

        `target`: the metric whose final score decides. `at`: percent of the steps up to which
        scores count, by default what all runs have reached. `steps`: the end of each run. `sure`:
        the least probability. `average`: checkpoints whose mean is a score.
        """
        name, _, split = dataset.partition("/")
        path = f"{build_dataset_path(name)}/ranking"
        params: dict[str, Parameter] = {"at": at, "steps": steps, "sure": sure, "average": average}
        params |= build_label_params(labels)
        return self._get(SweepRanking, path, split=split or None, target=target, **params)

    # Overviews

    def attention(self, *, limit: int | None = None) -> Listing[AttentionItem]:
        """The team's latest evaluations that need attention, the one that ended last first: failed
        ones, those whose gates failed, that say one caption for most images, or whose scores fell.
        """
        return self._list(AttentionItem, "attention", "/v1/attention", limit=limit)

    def captioner_trainings(
        self, *, dataset: str | None = None, metric: str | None = None, limit: int | None = None
    ) -> Listing[CaptionerTraining]:
        """Trainings of captioners, by evaluations that are labelled `run` and `step` or `epoch`,
        the latest first, with their scores over steps. `dataset`: NAME[@VERSION][/SPLIT].
        """
        params: dict[str, Parameter] = {"dataset": dataset, "metric": metric, "limit": limit}
        return self._list(CaptionerTraining, "captioner trainings", "/v1/trainings", **params)

    # Probes

    def health(self, dataset: str) -> dict[str, MetricHealth] | None:
        """Trust in each metric on a split; None before it has been probed.

        From the latest run of all the usual probes on NAME[@VERSION]/SPLIT.
        """
        latest = self.latest_probes(dataset)
        return None if latest is None else latest.health

    def latest_probes(self, dataset: str) -> Probes | None:
        """The latest run of all the usual probes on NAME[@VERSION]/SPLIT that has succeeded."""
        runs = self._runs(Probes, "probes", dataset, "succeeded", PROBES_A_PAGE)
        for run in islice(runs, PROBES_SEEN):
            if run.health and {task.name for task in run.tasks} >= USUAL_PROBES:
                return run
        return None

    def compute_probes(
        self,
        dataset: str,
        *,
        timeout: float | None = None,
        on_change: Callable[[Probes], None] | None = None,
        **choices: Unpack[ProbeChoices],
    ) -> Probes:
        """Probe metrics on a split, NAME[@VERSION]/SPLIT; returns the probes when they have ended.

        Also: `probes` and `metrics` (names), `tokenizer`, `options`, `deadline`; `evaluation` (an
        id) or `captions` to compare with people's. Raises `TimedOut` after `timeout` seconds.
        """
        return self._compute(Probes, build_probe_fields(dataset, choices), timeout, on_change)

    def probe(self, id: str) -> Probes:
        return self._get(Probes, build_run_path(Probes, id))

    def probes(self, *, dataset: str | None = None, status: str | None = None) -> Listing[Probes]:
        return self._runs(Probes, "probes", dataset, status)

    # Learned metrics

    def train_learned(
        self,
        dataset: str,
        captioners: Sequence[Mapping[str, Any]] | None = None,
        *,
        timeout: float | None = None,
        on_change: Callable[[Learned], None] | None = None,
        **choices: Unpack[TrainingChoices],
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
        fields = build_training_fields(dataset, captioners, choices)
        return self._compute(Learned, fields, timeout, on_change)

    def training(self, id: str) -> Learned:
        return self._get(Learned, build_run_path(Learned, id))

    def trainings(
        self, *, dataset: str | None = None, status: str | None = None
    ) -> Listing[Learned]:
        return self._runs(Learned, "trainings", dataset, status)

    def fetch_model(self, id: str, path: str | Path) -> None:
        """Download a trained metric's model to `path`."""
        request = HttpRequest("GET", f"{build_run_path(Learned, id)}/model")
        fetch_file(self._transport, request, Path(path))

    def _board(
        self, model: type[S], kind: str, given: Sequence[str], params: dict[str, Parameter]
    ) -> Board[S]:
        """A leaderboard or a history of a dataset, which may name the split too, by a metric."""
        dataset, metric, *unnamed = given
        if unnamed:
            raise TypeError(_describe_arguments(kind, given))
        name, _, split = dataset.partition("/")
        params |= {"metric": metric, "split": params["split"] or split or None}
        path = f"{build_dataset_path(name)}/{kind}"
        return Board(self._transport, f"{metric} on {dataset}", model, path, build_query(params))

    def _runs(
        self,
        model: type[R],
        name: str,
        dataset: str | None,
        status: str | None,
        page_size: int | None = None,
    ) -> Listing[R]:
        params: dict[str, Parameter] = {"dataset": dataset, "status": status, "limit": page_size}
        return self._list(model, name, model.PLACE, **params)


def _describe_arguments(kind: str, given: Sequence[object]) -> str:
    found = ", ".join(f"{one!r:.60}" for one in given)
    return (
        f'{kind}: expected a dataset and a metric, {kind}("flickr8k/test", "cider_d"), and all '
        f'others by name, as labels={{"branch": "main"}}; found {kind}({found:.300})'
    )
