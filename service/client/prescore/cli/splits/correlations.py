"""prescore correlations"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import typer

from prescore.cli import asking, console, nearly, options, text
from prescore.cli.follow import computed
from prescore.cli.nearly import Meant
from prescore.client import Client
from prescore.counts import counted
from prescore.models import Correlated, Correlation, Correlations, Study

_COLUMNS = ("postgen", "place", "pregen", "r", "r2", "p", "spearman", "spearman_p", "models")
_HEADING = ("", "pre-gen metric", "r", "R2", "p", "rho", "p", "models")


@options.spread
def correlations(
    split: options.WholeSplit,
    *,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Post-gen metrics, separated by commas or given one by one. Default: all."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=0, max=1000, help="Pre-gen metrics for each, besides the headline ones."),
    ] = 5,
    idf: Annotated[
        str | None, typer.Option(help="CIDEr's document frequencies: dataset, or stratum.")
    ] = None,
    compute: options.Compute = False,
    timeout: options.Timeout = None,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show which pre-gen scores tell which post-gen scores on a split.

    From the last study of the split's models. r, R2 and p are over strata of images of
    all models; rho says whether the pre-gen metric ranks whole models as the post-gen
    metric does (p from five models on).

        prescore correlations flickr8k/test
        prescore correlations flickr8k/test --metrics cider_d --limit 20
        prescore correlations flickr8k/test --compute --csv study.csv

    Exit 0: printed. 2: usage, or refused. 3: there is no study yet, it failed or has
    not ended in time. 4: no answer from the service. 130: Ctrl-C.
    """
    names = console.names(metrics)
    with console.connected(connection, Meant(split, names or ())) as client:
        nearly.check_metrics(client, names or ())
        if compute:
            split = asking.whole(client, split)
            _compute(client, split, idf, limit, timeout)
        found = client.correlations(split, idf=idf, limit=limit)
        study = found.study
        if study is not None:
            study = _only(study, names)
            found = found.model_copy(update={"study": study})
        if study is not None and csv_file is not None:
            console.write_csv(csv_file, _COLUMNS, _csv_rows(study))
    if as_json:
        console.show_json(found)
    elif study is not None:
        console.show(_lines(found, study))
    if study is None:
        console.fail(_why(found, split))


def _compute(
    client: Client, split: str, idf: str | None, limit: int, timeout: float | None
) -> None:
    run = computed(partial(client.compute_study, split, idf=idf, limit=limit, timeout=timeout))
    if run.status != "succeeded":
        why = "" if run.error is None else f": {run.error.detail or run.error.code}"
        console.fail(f"{run.id} {run.status}{why}")


def _only(study: Study, metrics: list[str] | None) -> Study:
    if metrics is None:
        return study
    if unknown := [name for name in metrics if name not in study.metrics]:
        has = ", ".join(study.metrics) or "none"
        raise typer.BadParameter(
            f"--metrics: no {unknown[0]!r:.100} in the study; it has {has:.500}"
        )
    return study.model_copy(update={"metrics": {name: study.metrics[name] for name in metrics}})


def _why(found: Correlations, split: str) -> str:
    if found.none_because:
        return f"no study of {split}: {found.none_because}"
    under_way = found.under_way
    if under_way is None:
        return text.not_yet(split, "studied", "correlations")
    why = under_way.error
    said = f": {why.detail or why.code}" if why is not None else ""
    return f"no study of {split} yet; one is {under_way.status}{said}"


def _lines(found: Correlations, study: Study) -> list[str]:
    models = counted(len(study.evaluations), "model")
    facts = (str(found.dataset), models, counted(study.rows, "row"), text.moment(study.finished_at))
    lines = text.aligned([facts])
    for name, one in study.metrics.items():
        lines += text.aligned([(name, one.reason or _of_images(one))])
        if one.correlations:
            lines += text.aligned([_HEADING, *map(_row, one.correlations)], indent="  ")
    left_out = [(one.evaluation, one.metric or "", one.reason) for one in study.left_out]
    return [*lines, *(["left out"] if left_out else []), *text.aligned(left_out, indent="  ")]


def _of_images(one: Correlated) -> str:
    if one.of_images is None:
        return ""
    return f"{one.of_images:.0%} of its variance lies between images, not between models"


def _row(one: Correlation) -> tuple[str, ...]:
    numbers = [_short(one.r), _short(one.r2), _chance(one.p)]
    whole = [_short(one.spearman), _chance(one.spearman_p), str(one.models)]
    return f"{one.place}.", one.metric, *numbers, *whole


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _chance(p: float | None) -> str:
    return "-" if p is None else f"{p:.2g}"


def _csv_rows(study: Study) -> Iterator[tuple[object, ...]]:
    for name, metric in study.metrics.items():
        for one in metric.correlations:
            shown = one.r, one.r2, one.p, one.spearman, one.spearman_p, one.models
            yield name, one.place, one.metric, *shown
