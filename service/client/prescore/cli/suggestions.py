"""Suggestions of near names, for names in a command that the service does not have."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from prescore.client import Client
from prescore.errors import PrescoreClientError
from prescore.names import check_known, suggest_name
from prescore.plain_text import quoted

MOST_DATASETS = 1000
MOST_RUNS = 200
SHOWN = 10  # datasets, or splits of one
OTHER_NAMES = ("perplexity",)  # that the list of metrics does not tell
GROUPS = ("bleu", "chair", "variety")  # each stands for several metrics
_MANY = ("all", "none")  # in the place of metrics
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class GivenNames:
    """Names in a command's arguments."""

    dataset: str = ""  # NAME[@VERSION][/SPLIT]
    metrics: Sequence[str] = ()
    texts: Sequence[str] = ()  # with metrics in them, such as gates


def suggest_names(client: Client, names: GivenNames) -> list[str]:
    """Give a sentence for each name that the service lacks and that is near to one it has."""
    sentences: list[str] = []
    with suppress(PrescoreClientError):
        sentences += _suggest_dataset(client, names.dataset)
    with suppress(PrescoreClientError):
        sentences += _suggest_metrics(client, names)
    return sentences


def suggest_labels(client: Client, dataset: str, labels: Mapping[str, str]) -> list[str]:
    """Give a sentence for each label that the latest runs on a dataset lack but nearly have."""
    if not labels:
        return []
    with suppress(PrescoreClientError):
        runs = client.evaluations(dataset=dataset or None, page_size=MOST_RUNS)
        known = [f"{n}={v}" for run in islice(runs, MOST_RUNS) for n, v in run.labels.items()]
        wanted = [f"{name}={value}" for name, value in labels.items()]
        missing = [label for label in wanted if label not in known]
        return [line for label in missing for line in _suggest(label, known)]
    return []


def check_metrics(client: Client, wanted: Sequence[str]) -> None:
    """Raise for a metric that the service does not know, before an empty column is shown."""
    if named := _drop_models(wanted):
        known = [*(metric.name for metric in client.metrics()), *OTHER_NAMES]
        check_known("metric", named, known)


def split_metrics(client: Client, wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split names of metrics into pre-gen and post-gen ones. Raises for a metric that the service
    does not know.
    """
    metrics = client.metrics()
    pregen = [*OTHER_NAMES, *(metric.name for metric in metrics if metric.family == "pregen")]
    others = [metric.name for metric in metrics if metric.name not in pregen]
    check_known("metric", _drop_models(wanted), [*GROUPS, *others, *pregen])
    return (
        [name for name in wanted if name in pregen],
        [name for name in wanted if name not in pregen],
    )


def _drop_models(names: Sequence[str]) -> list[str]:
    return [name for name in names if "@" not in name]  # a model's name has its digest


def _suggest_dataset(client: Client, reference: str) -> Iterator[str]:
    if not reference:
        return
    whole, _, split = reference.partition("/")
    name = whole.partition("@")[0]
    splits = {one.name: one.splits for one in islice(client.datasets(), MOST_DATASETS)}
    if name not in splits:
        question = suggest_name(name, splits)
        if question or len(splits) < MOST_DATASETS:
            yield f"{quoted(name)}: {question or _list_existing('dataset', splits)}"
    elif split and split not in splits[name]:
        question = suggest_name(split, splits[name])
        yield f"{quoted(split)}: {question or _list_existing('split', splits[name])}"


def _list_existing(kind: str, names: Collection[str]) -> str:
    if not names:
        return f"no such {kind}; there is none yet: `prescore datasets add NAME FOLDER` adds one"
    shown = ", ".join(map(quoted, sorted(names)[:SHOWN]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"no such {kind}; there {'is' if len(names) == 1 else 'are'} {shown}{more}"


def _suggest_metrics(client: Client, names: GivenNames) -> Iterator[str]:
    words = [*names.metrics, *(word for text in names.texts for word in _WORD.findall(text))]
    if not words:
        return
    known = [metric.name for metric in client.metrics()]
    for name in dict.fromkeys(words):
        if name not in known and name not in GROUPS and name not in _MANY:
            yield from _suggest(name, known)


def _suggest(name: str, known: Iterable[str]) -> Iterator[str]:
    if question := suggest_name(name, known):
        yield f"{quoted(name)}: {question}"
