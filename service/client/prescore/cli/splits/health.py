"""prescore health"""

from collections.abc import Iterator, Mapping
from functools import partial

from prescore.cli import asking, console, options, text
from prescore.cli.follow import computed
from prescore.cli.nearly import Meant
from prescore.models import MetricHealth, Probes

_COLUMNS = tuple(MetricHealth.model_fields)
_SHARE = "of people: the sentence by the references of people's captions, one fewer of each image"
_OF_RARE = ("R1 unchanged", "T = 30")  # the rows that may say why nothing is known of rare words


@options.spread
def health(
    split: options.WholeSplit,
    *,
    compute: options.Compute = False,
    timeout: options.Timeout = None,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show how far each metric can be trusted on a split.

    From the latest probes: what people's own captions score, what the best single
    sentence for all images scores (by all references; its share of people's is by the
    same references as theirs), and how much of the score is lost with the rare words,
    if there are any. A metric in which the constant sentence is as good as people says little.
    Gates look at probes with the default words and tokenizer alone.

        prescore health flickr8k/test
        prescore health flickr8k/test --compute
        prescore health flickr8k/test --json | jq .cider_d.constant_of_human

    Exit 0: printed. 2: usage, or refused. 3: there are no probes yet, or they failed.
    4: no answer from the service.
    """
    with console.connected(connection, Meant(split)) as client:
        split = asking.whole(client, split)
        if compute:
            computed(partial(client.compute_probes, split, timeout=timeout))
        found = client.latest_probes(split)
        if found is not None and csv_file is not None:
            console.write_csv(csv_file, ("metric", *_COLUMNS), _csv_rows(found.health or {}))
    if found is None:
        console.fail(text.not_yet(split, "probed", "health"))
    if as_json:
        told = found.health or {}
        console.print_json({name: one.model_dump() for name, one in told.items()})
    else:
        console.show(lines(found))


def lines(found: Probes) -> list[str]:
    heading = ("metric", "people", "one sentence", "of people", "lost with rare words")
    rows = [(name, *_row(one)) for name, one in (found.health or {}).items()]
    when = text.moment(found.finished_at)
    return [
        *text.aligned([(found.id, str(found.dataset), when)]),
        *text.aligned([heading, *rows]),
        _SHARE,
        *_not_known(found),
    ]


def _not_known(found: Probes) -> list[str]:
    """Why no metric says what is lost with rare words, if the probe does."""
    if any(one.rare_of_human is not None for one in (found.health or {}).values()):
        return []
    told = [row.reason or row.note for row in found.probes.get("rare", ()) if row.name in _OF_RARE]
    return text.aligned([(f"lost with rare words: {told[-1]}",)]) if told and told[-1] else []


def sentence(one: MetricHealth) -> str:
    people, constant, share, rare = _row(one)
    told = [
        f"people score {people}" if one.human is not None else "",
        f"the best single sentence {constant}" if one.constant is not None else "",
        f"{share} of people by the same references" if one.constant_of_human is not None else "",
        f"{rare} is lost with the rare words" if one.rare_of_human is not None else "",
    ]
    return ", ".join(filter(None, told))


def _row(one: MetricHealth) -> tuple[str, str, str, str]:
    shares = (one.constant_of_human, one.rare_of_human)
    share, rare = ("-" if each is None else f"{each:.0%}" for each in shares)
    return text.number(one.human), text.number(one.constant), share, rare


def _csv_rows(found: Mapping[str, MetricHealth]) -> Iterator[tuple[object, ...]]:
    for name, one in found.items():
        yield name, *(getattr(one, column) for column in _COLUMNS)
