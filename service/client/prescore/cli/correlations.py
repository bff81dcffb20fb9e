"""prescore correlations"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import typer

from prescore.cli import console, options, submissions, suggestions, text
from prescore.cli.progress import follow_computation
from prescore.cli.suggestions import GivenNames
from prescore.client import Client
from prescore.models import Correlated, Correlation, Correlations, Study
from prescore.plain_text import format_count

_COLUMNS = ("postgen", "place", "pregen", "r", "r2", "p", "spearman", "spearman_p", "models")
_HEADING = ("", "pre-gen metric", "r", "R2", "p", "rho", "p", "models")


@options.expand_groups
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
    names = console.split_names(metrics)
    with console.connect_client(connection, GivenNames(split, names or ())) as client:
        suggestions.check_metrics(client, names or ())
        if compute:
            split = submissions.complete_split(client, split)
            _compute(client, split, idf, limit, timeout)
        answer = client.correlations(split, idf=idf, limit=limit)
        study = answer.study
        if study is not None:
            study = _select_metrics(study, names)
            answer = answer.model_copy(update={"study": study})
            console.write_csv(csv_file, _COLUMNS, _build_csv_rows(study))
    console.print_answer(answer, _format_correlations, as_json=as_json)
    if study is None:
        console.end_failed(_explain_none(answer, split))


def _compute(
    client: Client, split: str, idf: str | None, limit: int, timeout: float | None
) -> None:
    compute = partial(client.compute_study, split, idf=idf, limit=limit, timeout=timeout)
    run = follow_computation(compute)
    if run.status != "succeeded":
        why = "" if run.error is None else f": {run.error.detail or run.error.code}"
        console.end_failed(f"{run.id} {run.status}{why}")


def _select_metrics(study: Study, metrics: list[str] | None) -> Study:
    if metrics is None:
        return study
    if unknown := [name for name in metrics if name not in study.metrics]:
        has = ", ".join(study.metrics) or "none"
        raise typer.BadParameter(
            f"--metrics: no {unknown[0]!r:.100} in the study; it has {has:.500}"
        )
    return study.model_copy(update={"metrics": {name: study.metrics[name] for name in metrics}})


def _explain_none(answer: Correlations, split: str) -> str:
    if answer.none_because:
        return f"no study of {split}: {answer.none_because}"
    under_way = answer.under_way
    if under_way is None:
        return text.advise_computing(split, "studied", "correlations")
    error = under_way.error
    reason = f": {error.detail or error.code}" if error is not None else ""
    return f"no study of {split} yet; one is {under_way.status}{reason}"


def _format_correlations(answer: Correlations) -> list[str]:
    study = answer.study
    if study is None:
        return []
    models = format_count(len(study.evaluations), "model")
    facts = (
        str(answer.dataset),
        models,
        format_count(study.rows, "row"),
        text.format_moment(study.finished_at),
    )
    lines = text.align_rows([facts])
    for name, one in study.metrics.items():
        lines += text.align_rows([(name, one.reason or _describe_variance(one))])
        if one.correlations:
            lines += text.align_rows([_HEADING, *map(_format_row, one.correlations)], indent="  ")
    left_out = [(one.evaluation, one.metric or "", one.reason) for one in study.left_out]
    return [*lines, *(["left out"] if left_out else []), *text.align_rows(left_out, indent="  ")]


def _describe_variance(one: Correlated) -> str:
    if one.of_images is None:
        return ""
    return f"{one.of_images:.0%} of its variance lies between images, not between models"


def _format_row(one: Correlation) -> tuple[str, ...]:
    numbers = [_format_coefficient(one.r), _format_coefficient(one.r2), _format_chance(one.p)]
    whole = [_format_coefficient(one.spearman), _format_chance(one.spearman_p), str(one.models)]
    return f"{one.place}.", one.metric, *numbers, *whole


def _format_coefficient(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _format_chance(p: float | None) -> str:
    return "-" if p is None else f"{p:.2g}"


def _build_csv_rows(study: Study) -> Iterator[tuple[object, ...]]:
    for name, metric in study.metrics.items():
        for one in metric.correlations:
            shown = one.r, one.r2, one.p, one.spearman, one.spearman_p, one.models
            yield name, one.place, one.metric, *shown
