"""The metric that is asked of a list, which has the scores of some."""

from collections.abc import Collection

from service.contract.errors import NotFound, UnknownMetric
from service.contract.metrics import catalogue


def metric(name: str, there: Collection[str], parameter: str, *, unknown: str, absent: str) -> str:
    """The full name of a metric that is `there`. `unknown`: what is said beside the catalogue's own
    words where no metric is called so; `absent`: where there is one, and it is not there.
    """
    try:
        full = catalogue.find_metric(name).name
    except UnknownMetric as error:
        told = f"{error.detail}; {unknown}"
        raise UnknownMetric(told, pointer=f"/query/{parameter}", name=name) from None
    if full not in there:
        raise NotFound(absent)
    return full
