"""prescore signal"""

from collections.abc import Sequence
from typing import Annotated

import typer

from prescore.cli import console, options, suggestions, text
from prescore.cli.suggestions import GivenNames
from prescore.models import EarlyDecision, MetricSignal, SignalCard
from prescore.models.signals import PERCENTS, SIGNAL_COLUMNS

_HEADING = (
    *("metric", "SNR", "seeds", "largest", "detectable"),
    *(f"at {percent} %" for percent in PERCENTS),
)


@options.expand_groups
def signal(
    split: options.WholeSplit,
    *,
    metrics: Annotated[
        list[str] | None,
        typer.Option(help="Only these, separated by commas or given one by one. Default: all."),
    ] = None,
    target: Annotated[
        str, typer.Option(help="The metric whose final order early scores should tell.")
    ] = "cider_d",
    last: Annotated[
        int, typer.Option(min=2, max=100, help="Last checkpoints that make the noise.")
    ] = 5,
    average: Annotated[
        int, typer.Option(min=1, max=100, help="Checkpoints whose mean is a score.")
    ] = 1,
    limit: Annotated[
        int,
        typer.Option(min=0, max=1000, help="Pre-gen metrics to show, besides the headline ones."),
    ] = 5,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show which metric can decide anything on a split.

    From evaluations with the labels run and step. SNR: how far apart trainings
    are (signal), divided by how much the last checkpoints of one differ (noise);
    "seeds": divided by how much trainings differ whose label recipe is the same
    and whose label seed is not. "largest": which noise is the largest.
    "detectable": the smallest difference that 95 of 100 paired tests would show.
    At 5 to 50 % of the steps: how often two trainings have the order that they
    have at the end by the target; the interval (95 %) reaches so far. --csv and
    --json have all numbers: signal, noises, both ends of intervals, pairs.

        prescore signal flickr8k/val
        prescore signal flickr8k/val --metrics perplexity,cider_d --average 3
        prescore signal flickr8k/val --target meteor --limit 700 --csv signal.csv

    Exit 0: printed. 2: usage, or refused. 3: too few trainings are labelled.
    4: no answer from the service.
    """
    names = console.split_names(metrics)
    with console.connect_client(connection, GivenNames(split, [target, *(names or ())])) as client:
        suggestions.check_metrics(client, names or ())
        most = limit if names is None else 1000
        card = client.signal(split, target, last=last, average=average, limit=most)
        if names is not None:
            card = _select_metrics(card, names)
        console.write_csv(csv_file, SIGNAL_COLUMNS, (list(one.cells()) for one in card.metrics))
    console.print_answer(card, _format_card, as_json=as_json)
    if card.none_because:
        console.end_failed(f"no signal: {card.none_because}")


def _select_metrics(card: SignalCard, names: Sequence[str]) -> SignalCard:
    found = {one.metric: one for one in card.metrics}
    if missing := [name for name in names if name not in found]:
        has = ", ".join(found) or "none"
        raise typer.BadParameter(
            f"--metrics: no {missing[0]!r:.100} at a training's end; there is {has:.500}"
        )
    return card.model_copy(update={"metrics": tuple(found[name] for name in names)})


def _format_card(card: SignalCard) -> list[str]:
    left_out = ", ".join(f"{many} with {reason}" for reason, many in card.left_out.items())
    facts = [
        ("on", str(card.dataset)),
        ("trainings", f"{len(card.trainings)}, checkpoints {sum(card.trainings.values())}"),
        ("target", f"{card.target} orders {card.pairs} pairs; {card.too_close} are too close"),
        ("left out", left_out),
    ]
    if not card.metrics:
        return text.align_facts(facts)
    rows = [_HEADING, *map(_format_row, card.metrics)]
    return [*text.align_facts(facts), "", *text.align_rows(rows)]


def _format_row(one: MetricSignal) -> Sequence[str]:
    decided = {each.percent: _format_decision(each) for each in one.decisions}
    return (
        *(one.metric, _format_ratio(one.snr), _format_ratio(one.seed_snr)),
        *(one.largest_noise or "-", text.format_number(one.detectable)),
        *(decided.get(percent, "-") for percent in PERCENTS),
    )


def _format_ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _format_decision(one: EarlyDecision) -> str:
    """Accuracy and the longer half of its interval, which is cut at 0 and 1."""
    if one.accuracy is None:
        return "-"
    if one.interval is None:
        return f"{one.accuracy:.2f}"
    low, high = one.interval
    return f"{one.accuracy:.2f} ±{max(one.accuracy - low, high - one.accuracy):.2f}"
