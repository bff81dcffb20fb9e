"""For a refused request: the names that were probably meant."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from prescore.client import Client
from prescore.errors import PrescoreClientError
from prescore.names import check_known, hint
from prescore.plain_text import quoted

MOST_DATASETS = 1000
MOST_RUNS = 200
SHOWN = 10  # datasets, or splits of one
OTHER_NAMES = ("perplexity",)  # that the list of metrics does not tell
GROUPS = ("bleu", "chair", "variety")  # each stands for several metrics
_MANY = ("all", "none")  # in the place of metrics
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Meant:
    """Names in a command's arguments."""

    dataset: str = ""  # NAME[@VERSION][/SPLIT]
    metrics: Sequence[str] = ()
    texts: Sequence[str] = ()  # with metrics in them, such as gates


def hints(client: Client, meant: Meant) -> list[str]:
    """A sentence for each name that the service does not have and that is near to one it has."""
    found: list[str] = []
    with suppress(PrescoreClientError):
        found += _of_dataset(client, meant.dataset)
    with suppress(PrescoreClientError):
        found += _of_metrics(client, meant)
    return found


def check_metrics(client: Client, wanted: Sequence[str]) -> None:
    """Raise for a metric that the service does not know, before an empty column is shown."""
    if named := [name for name in wanted if "@" not in name]:  # a model's name has its digest
        known = [*(metric.name for metric in client.metrics()), *OTHER_NAMES]
        check_known("metric", named, known)


def split_metrics(client: Client, wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The pre-gen and the post-gen ones of these names. Raises for a metric that the service does
    not know.
    """
    found = client.metrics()
    pregen = [*OTHER_NAMES, *(metric.name for metric in found if metric.family == "pregen")]
    named = [name for name in wanted if "@" not in name]  # a model's name has its digest
    known = [metric.name for metric in found if metric.name not in pregen]
    check_known("metric", named, [*GROUPS, *known, *pregen])
    return (
        [name for name in wanted if name in pregen],
        [name for name in wanted if name not in pregen],
    )


def labels(client: Client, dataset: str, wanted: Mapping[str, str]) -> list[str]:
    """A sentence for each label that the latest runs on a dataset do not have, but a near one."""
    if not wanted:
        return []
    with suppress(PrescoreClientError):
        runs = client.evaluations(dataset=dataset or None, page_size=MOST_RUNS)
        known = [f"{n}={v}" for run in islice(runs, MOST_RUNS) for n, v in run.labels.items()]
        asked = [f"{name}={value}" for name, value in wanted.items()]
        return [line for one in asked if one not in known for line in _told(one, known)]
    return []


def _of_dataset(client: Client, reference: str) -> Iterator[str]:
    if not reference:
        return
    whole, _, split = reference.partition("/")
    name = whole.partition("@")[0]
    splits = {one.name: one.splits for one in islice(client.datasets(), MOST_DATASETS)}
    if name not in splits:
        question = hint(name, splits)
        if question or len(splits) < MOST_DATASETS:
            yield f"{quoted(name)}: {question or _no_such('dataset', splits)}"
    elif split and split not in splits[name]:
        yield f"{quoted(split)}: {hint(split, splits[name]) or _no_such('split', splits[name])}"


def _no_such(what: str, there: Collection[str]) -> str:
    if not there:
        return f"no such {what}; there is none yet: `prescore datasets add NAME FOLDER` adds one"
    shown = ", ".join(map(quoted, sorted(there)[:SHOWN]))
    more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
    return f"no such {what}; there {'is' if len(there) == 1 else 'are'} {shown}{more}"


def _of_metrics(client: Client, meant: Meant) -> Iterator[str]:
    asked = [*meant.metrics, *(word for text in meant.texts for word in _WORD.findall(text))]
    if not asked:
        return
    known = [metric.name for metric in client.metrics()]
    for name in dict.fromkeys(asked):
        if name not in known and name not in GROUPS and name not in _MANY:
            yield from _told(name, known)


def _told(name: str, known: Iterable[str]) -> Iterator[str]:
    if question := hint(name, known):
        yield f"{quoted(name)}: {question}"
