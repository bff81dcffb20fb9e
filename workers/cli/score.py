"""`prescore score`: score captions on this machine, without a service."""

import json
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prescore import warned
from prescore.cli.options import file_to_write
from prescore.files import captions
from prescore.models import Idf
from service.contract import plain_text, settings
from service.contract.errors import MetricUnavailable
from service.contract.metrics import catalogue, families, tokenizers
from service.contract.plan import assets
from service.contract.plan.assets import Places
from service.contract.wording import counted
from workers.cli.console import (
    USUAL,
    AsJson,
    Home,
    JsonOut,
    KeyFile,
    Metrics,
    Split,
    Tokens,
    Url,
    errors,
    names,
    progresses,
    say,
    say_missing,
    say_reasons,
    show,
    show_json,
)
from workers.jobs.toolbox import Toolbox
from workers.offline import sources
from workers.offline.sources import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workers.offline.outputs import Scored

_INCOMPLETE = 3  # a metric has no score
_SHOWN = 20  # warnings


def score(
    outputs: Annotated[
        Path,
        typer.Argument(
            metavar="CAPTIONS",
            help='A JSON list of {"image" or "image_id", "caption"}, pycocoevalcap\'s dictionary, '
            "JSON Lines or CSV.",
        ),
    ],
    dataset: Split,
    metrics: Metrics = None,
    tokenizer: Tokens = tokenizers.USUAL,
    subset: Annotated[
        bool, typer.Option("--subset", help="Accept captions for a part of the split.")
    ] = False,
    idf: Annotated[
        Idf,
        typer.Option(
            help="CIDEr's document frequencies: of the whole split, or of images with captions."
        ),
    ] = Idf.DATASET,
    as_json: AsJson = False,
    json_out: JsonOut = None,
    csv_out: Annotated[
        Path | None,
        file_to_write("Write every caption with its own scores to a CSV file.", "--csv"),
    ] = None,
    home: Home = None,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Score captions on this machine, with the same scores as a service.

    Prepared references are kept, so that the next captions for the same dataset take
    less time; METEOR's program starts anew each time. bleu, rouge_l and cider_d are quick.

        prescore score results.json --dataset flickr8k/
        prescore score results.json --dataset coco.tar/val --metrics cider_d,spice
        prescore score results.json --dataset flickr8k@v1/test --json

    Metrics: bleu (bleu_1 to bleu_4), rouge_l, cider_d, cider, meteor, spice, spider,
    wmd, wmd_unit, chair, bertscore, refscore, nneval (nneval@DIGEST: with a certain
    model), accord, accord_large, variety. Some need files that `prescore assets` adds;
    `all` leaves out those whose files are not here, and nneval, which has to be asked for.

    Exit 0: every metric has a score. 2: usage, or refused. 3: some have no score.
    """
    from workers.offline import outputs as work

    with errors(), progresses() as told:
        chosen = settings.load().at(home)
        given = [(one["image"], one["caption"]) for one in captions.read(outputs)]
        source = sources.find(dataset, Places.of(chosen), url, key_file)
        wanted = names(*metrics or [USUAL])
        absent: Mapping[str, str] = {}
        if "all" in wanted:
            of_models = [name for name in wanted if "@" in name]
            shown = catalogue.POSTGEN.keys() - set(wanted)
            aside = {name: why for name, why in families.aside().items() if name in shown}
            absent = aside | assets.lacking(catalogue.POSTGEN, Places.of(chosen))
            wanted = [name for name in catalogue.POSTGEN if name not in absent] + of_models
            named = {families.kind_of(name) for name in of_models}
            absent = {name: why for name, why in absent.items() if name not in named}
        asked = work.Asked(wanted, tokenizer, subset, idf.value)
        with closing(Toolbox.of(chosen)) as toolbox:
            found = work.score(given, source, asked, toolbox, told)
        document = _document(source, found, absent)
        if json_out is not None:
            json_out.write_text(json.dumps(document), "utf-8")
        if csv_out is not None:
            _write_csv(csv_out, found)
    say_reasons("left out", absent)
    _show(document, source, found, as_json=as_json, is_written=as_json or json_out is not None)
    if found.missing:
        raise typer.Exit(_INCOMPLETE)


def _document(source: Source, found: "Scored", absent: "Mapping[str, str]") -> dict[str, object]:
    missing = {name: MetricUnavailable(reason) for name, reason in absent.items()}
    return {
        "dataset": {"name": source.name, "split": source.split, "digest": source.digest},
        "captions": len(found.captions),
        "scores": {name: one.model_dump(mode="json") for name, one in found.scores.items()},
        "missing": {
            name: {"code": error.code, "detail": error.detail}
            for name, error in {**missing, **found.missing}.items()
        },
        "warnings": [warning.model_dump() for warning in found.warnings],
    }


def _show(
    document: object, source: Source, found: "Scored", *, as_json: bool, is_written: bool
) -> None:
    told = warned.rows((one.code, one.detail, one.image) for one in found.warnings)
    for code, image, detail in told[:_SHOWN]:
        where = f" {image}:" if image else ""
        say(f"warning: {code}:{where} {detail}")
    if len(told) > _SHOWN:
        where = "" if is_written else ", see --json"
        say(f"warning: {len(told) - _SHOWN} more{where}")
    say_missing(found.missing)
    if as_json:
        show_json(document)
        return
    known = any(one.interval for one in found.scores.values())
    brackets = ", 95 % intervals in brackets" * known
    show(f"{source}, {counted(len(found.captions), 'caption')}{brackets}")
    width = max(map(len, found.scores), default=0)
    for name, one in found.scores.items():
        value = "-" if one.value is None else f"{one.value:.4f}"
        sure = "[{:.4f}, {:.4f}]".format(*one.interval) if one.interval else ""
        show(f"{name:{width}}  {value:>9}  {sure:18}  {one.signature}")


def _write_csv(path: Path, found: "Scored") -> None:
    metrics: Sequence[str] = list(found.captions[0][2]) if found.captions else []
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = (
            [image, caption, *(own[name] for name in metrics)]
            for image, caption, own in found.captions
        )
        plain_text.write_table(file, chain([["image", "caption", *metrics]], rows))
