"""Requests for what is known of a split: leaderboards, histories, correlations, health."""

from collections.abc import Mapping, Sequence

from prescore.http import paging
from prescore.http.addresses import Address
from prescore.http.steps import Steps, segment
from prescore.models import Correlations, Probes, Scored
from prescore.routes import asking

USUAL_PROBES = frozenset({"human", "frequent", "rare", "swap", "random", "single"})
PROBES_A_PAGE = 20
PROBE_PAGES = 10  # that are looked through


def board(
    address: Address,
    model: type[Scored],
    dataset: str,
    of: str,
    *,
    metric: str,
    unnamed: Sequence[object] = (),
    metrics: Sequence[str] = (),
    split: str | None,
    signature: str | None,
    labels: Mapping[str, str] | None,
    page_size: int | None = None,
) -> Steps[None]:
    """Pages of a leaderboard or a history; `dataset` may name the split too. `metrics`: others that
    are shown beside it; `unnamed`: arguments that are not to be there.
    """
    if unnamed:
        raise TypeError(_too_many(of, dataset, metric, *unnamed))
    name, _, named = dataset.partition("/")
    beside = ",".join(metrics) or None
    params = asking.given(
        metric=metric,
        metrics=beside,
        split=split or named or None,
        signature=signature,
        limit=page_size,
    )
    place = f"/v1/datasets/{segment(name)}/{of}"
    return paging.pages(address, model, place, params | asking.labelled(labels))


def _too_many(of: str, *given: object) -> str:
    found = ", ".join(f"{one!r:.60}" for one in given)
    return (
        f'{of}: expected a dataset and a metric, {of}("flickr8k/test", "cider_d"), and all others '
        f'by name, as labels={{"branch": "main"}}; found {of}({found:.300})'
    )


def correlations(
    address: Address, dataset: str, *, idf: str | None, limit: int | None
) -> Steps[Correlations]:
    name, _, split = dataset.partition("/")
    params = asking.given(split=split or None, idf=idf, limit=limit)
    place = f"/v1/datasets/{segment(name)}/correlations"
    return asking.gotten(address, Correlations, place, params)


def latest_probes(address: Address, dataset: str) -> Steps[Probes | None]:
    """The latest probes of a split that have succeeded and tell the health of metrics."""
    params = asking.given(dataset=dataset, status="succeeded", limit=PROBES_A_PAGE)
    for _ in range(PROBE_PAGES):
        page = yield from paging.page(address, Probes, Probes.PLACE, params)
        for found in page.items:
            if _tells_health(found):
                return found  # type: ignore[no-any-return]
        if page.next is None:
            break
        params["cursor"] = page.next
    return None


def _tells_health(found: Probes) -> bool:
    return bool(found.health) and {work.name for work in found.works} >= USUAL_PROBES
