"""`prescore probe`: test metrics with a dataset's own references."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prescore.files import captions
from prescore.models.probes import legend
from service.contract import plain_text, settings
from service.contract.metrics import tokenizers
from service.contract.plan.assets import Places
from workers.cli.console import (
    NAMES,
    USUAL,
    AsJson,
    Home,
    KeyFile,
    TableOut,
    Url,
    errors,
    names,
    one_of,
    progresses,
    say_reasons,
    show,
    show_json,
)
from workers.jobs.toolbox import Toolbox
from workers.offline import sources

if TYPE_CHECKING:
    from service.contract.api.probes import ProbeRow
    from workers.offline.probes import Probed

_ALL = "human,frequent,rare,swap,random,single"
_INCOMPLETE = 3  # a metric is unavailable
_COLUMNS = ("probe", "row", "share", "metric", "score", "sd", "drop", "text", "reason")


def probe(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET/SPLIT", help="A local bundle, or NAME[@VERSION]/SPLIT of a service."
        ),
    ],
    probes: Annotated[
        list[str] | None, typer.Option(help=f"{NAMES}, see below.", show_default=_ALL)
    ] = None,
    metrics: Annotated[list[str] | None, typer.Option(help=f"{NAMES}.", show_default=USUAL)] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--captions",
            metavar="OUTPUTS.json",
            help="A system's captions, to compare with people's.",
        ),
    ] = None,
    tokenizer: Annotated[
        str,
        one_of(
            tokenizers.names,
            "ptb: for English; regex: words and punctuation; none: tokens already.",
        ),
    ] = tokenizers.USUAL,
    frequent: Annotated[
        str | None,
        typer.Option(help="Words, or how many of the most frequent words. Default: the paper's."),
    ] = None,
    swap: Annotated[str | None, typer.Option(help="Pairs of words: woman=man,dog=cat.")] = None,
    objective: Annotated[
        str, typer.Option(help="The metric that the single sentence should score highest in.")
    ] = "bleu_4",
    as_json: AsJson = False,
    csv_out: TableOut = None,
    home: Home = None,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Show which changes of captions metrics reward or do not see on a dataset.

    human     each column of references scored against the others (RvR);
              a system's captions scored against these (SvR)
    frequent  the first references with one frequent word made unknown
    rare      the first references with words seen fewer than 30, 20, 10, 5 times in
              training made unknown
    swap      the first references with one word replaced everywhere (woman -> man)
    random    the first references with tokens replaced at random
    single    the training sentence that scores best when used for every image

    `rare` and `single` need the dataset's training split, `train`. Tables are kept and
    not computed again.

        prescore probe flickr8k/test
        prescore probe coco.tar/test --probes human --captions results.json
        prescore probe multi30k-de/test --tokenizer regex --probes human,frequent

    Exit 0: done. 2: usage, or refused. 3: some metrics are not available, or all.
    """
    from workers.offline import probes as work

    with errors(), progresses() as told:
        chosen = settings.load().at(home)
        source = sources.find(dataset, Places.of(chosen), url, key_file)
        given = None
        if outputs is not None:
            given = [(one["image"], one["caption"]) for one in captions.read(outputs)]
        options = _options(frequent, swap, objective)
        asked = work.Asked(names(*probes or [_ALL]), names(*metrics or [USUAL]), tokenizer, options)
        with closing(Toolbox.of(chosen)) as toolbox:
            found = work.probe(source, asked, given, toolbox, told)
        if csv_out is not None:
            _write_csv(csv_out, found)
    say_reasons("unavailable", found.missing)
    if as_json:
        about = {"name": source.name, "split": source.split, "digest": source.digest}
        document = {"dataset": about, "tokenizer": tokenizer}
        rows = {name: [row.model_dump() for row in rows] for name, rows in found.rows.items()}
        health = {name: each.model_dump() for name, each in found.health.items()}
        show_json({**document, "probes": rows, "health": health})
    else:
        _show(found)
    if found.missing:
        raise typer.Exit(_INCOMPLETE)


def _options(frequent: str | None, swap: str | None, objective: str) -> dict[str, dict[str, Any]]:
    """The options by probe, without those that have their default."""
    options: dict[str, dict[str, Any]] = {"single": {"objective": objective}}
    if frequent is not None:
        count = frequent.strip()
        options["frequent"] = {"frequent": int(count) if count.isdecimal() else names(count)}
    if swap is not None:
        pairs = [pair.split("=") for pair in names(swap)]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise typer.BadParameter(f"--swap: expected woman=man, found {swap!r:.60}")
        options["swap"] = {"swaps": pairs}
    return options


def _show(found: "Probed") -> None:
    for name, rows in found.rows.items():
        show(name)
        for row in rows:
            show(f"  {_line(row)}")
    show(*filter(None, [legend(row.name for rows in found.rows.values() for row in rows)]))
    show("health")
    for metric, health in found.health.items():
        known = [
            f"{what} {value:.3f}"
            for what, value in health.model_dump().items()
            if value is not None
        ]
        show(f"  {metric}: {', '.join(known) or 'nothing known'}")


def _line(row: "ProbeRow") -> str:
    if row.reason:
        return f"{row.name}: {row.reason}"
    share = "" if row.share is None else f" ({row.share:.2%} of tokens)"
    scores = [f"{metric} {_value(row, metric)}" for metric in row.scores]
    notes = [note for note in (row.text, row.note) if note]
    return "; ".join([f"{row.name}{share}: {', '.join(scores)}", *notes])


def _value(row: "ProbeRow", metric: str) -> str:
    value, spread, lost = (of.get(metric) for of in (row.scores, row.sd, row.drop))
    text = "-" if value is None else f"{value:.4f}"
    text += "" if spread is None else f" ± {spread:.4f}"
    return text + ("" if lost is None else f" ({-lost:+.4f})")


def _write_csv(path: Path, found: "Probed") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        plain_text.write_table(file, chain([_COLUMNS], _rows(found)))


def _rows(found: "Probed") -> Iterator[Sequence[object]]:
    for name, rows in found.rows.items():
        for row in rows:
            for metric in row.scores or [""]:
                values = [of.get(metric) for of in (row.scores, row.sd, row.drop)]
                about = [name, row.name, row.share, metric]
                yield [*about, *values, row.text, row.reason]
