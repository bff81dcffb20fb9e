"""prescore health"""

from functools import partial

from prescore.cli import console, options, submissions, text
from prescore.cli.progress import follow_computation
from prescore.cli.suggestions import GivenNames
from prescore.models import MetricHealth, Probes

_COLUMNS = tuple(MetricHealth.model_fields)
_SHARE = "of people: the sentence by the references of people's captions, one fewer of each image"
_OF_RARE = ("R1 unchanged", "T = 30")  # the rows that may say why nothing is known of rare words


@options.expand_groups
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
    with console.connect_client(connection, GivenNames(split)) as client:
        split = submissions.complete_split(client, split)
        if compute:
            follow_computation(partial(client.compute_probes, split, timeout=timeout))
        probes = client.latest_probes(split)
        if probes is not None:
            rows = (
                (name, *one.model_dump().values()) for name, one in (probes.health or {}).items()
            )
            console.write_csv(csv_file, ("metric", *_COLUMNS), rows)
    if probes is None:
        console.end_failed(text.advise_computing(split, "probed", "health"))
    if as_json:
        health = probes.health or {}
        console.print_json({name: one.model_dump() for name, one in health.items()})
    else:
        console.print_lines(format_health(probes))


def format_health(probes: Probes) -> list[str]:
    heading = ("metric", "people", "one sentence", "of people", "lost with rare words")
    rows = [(name, *_format_row(one)) for name, one in (probes.health or {}).items()]
    when = text.format_moment(probes.finished_at)
    return [
        *text.align_rows([(probes.id, str(probes.dataset), when)]),
        *text.align_rows([heading, *rows]),
        _SHARE,
        *_explain_unknown(probes),
    ]


def _explain_unknown(probes: Probes) -> list[str]:
    """Say why no metric tells what is lost with rare words, if the probe does."""
    if any(one.rare_of_human is not None for one in (probes.health or {}).values()):
        return []
    rows = [row for row in probes.probes.get("rare", ()) if row.name in _OF_RARE]
    reason = rows[-1].reason or rows[-1].note if rows else ""
    return text.align_rows([(f"lost with rare words: {reason}",)]) if reason else []


def describe_health(one: MetricHealth) -> str:
    people, constant, share, rare = _format_row(one)
    parts = [
        f"people score {people}" if one.human is not None else "",
        f"the best single sentence {constant}" if one.constant is not None else "",
        f"{share} of people by the same references" if one.constant_of_human is not None else "",
        f"{rare} is lost with the rare words" if one.rare_of_human is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _format_row(one: MetricHealth) -> tuple[str, str, str, str]:
    shares = (one.constant_of_human, one.rare_of_human)
    share, rare = ("-" if each is None else f"{each:.0%}" for each in shares)
    return text.format_number(one.human), text.format_number(one.constant), share, rare
