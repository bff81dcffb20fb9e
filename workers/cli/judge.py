"""`prescore judge`: measure the agreement of metrics with people's judgements."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prescore.cli.options import file_to_write
from prescore.files import captions
from service.contract import assets, settings
from service.contract.assets import AssetFolders
from service.contract.errors import MetricUnavailable, RequestRefused
from service.contract.metrics import tokenizers
from service.contract.metrics.families import find_family_name
from service.contract.plan.metric_requests import resolve_models
from service.contract.wording import count_noun
from workers.cli.console import (
    USUAL,
    AsJson,
    Home,
    JsonOut,
    KeyFile,
    Metrics,
    TableOut,
    Tokens,
    Url,
    print_json,
    print_lines,
    print_missing,
    report_errors,
    show_progress_steps,
    split_names,
)
from workers.jobs.toolbox import Toolbox
from workers.offline import sources

if TYPE_CHECKING:
    from service.contract.formats.bundles import BundleItem
    from workers.bench.judgements import JudgedPair, Judgements
    from workers.bench.judging.scoring import JudgedScores
    from workers.progress import Progress

_DATASET = "DATASET[/SPLIT]"


def judge(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Judgements, one per line.")],
    metrics: Metrics = None,
    raters: Annotated[
        Literal["flat", "mean", "mode"],
        typer.Option(
            help="flat: every rating counts; mean, mode: one rating per line (lowest mode)."
        ),
    ] = "flat",
    tokenizer: Tokens = tokenizers.USUAL,
    idf: Annotated[
        str | None,
        typer.Option(metavar=_DATASET, help="The dataset for CIDEr's document frequencies."),
    ] = None,
    distractors: Annotated[
        str | None,
        typer.Option(metavar=_DATASET, help="First write FILE, with tasks made from this dataset."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The random seed of these tasks.")] = 0,
    against: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="Test every metric against it. Default: the best."),
    ] = None,
    as_json: AsJson = False,
    json_out: JsonOut = None,
    csv_out: TableOut = None,
    plot: Annotated[Path | None, file_to_write("Write the table as a picture (SVG).")] = None,
    report: Annotated[
        Path | None,
        file_to_write("Write agreement beside robustness, as Markdown."),
    ] = None,
    machine: Annotated[
        Path | None,
        typer.Option("--captions", help="A system's captions of the report's images."),
    ] = None,
    home: Home = None,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Measure how well metrics agree with people's judgements of captions.

    FILE has rated lines, pair lines, or both:

    {"candidate": "…", "references": ["…", "…"], "ratings": [3, 4, 4]}
    {"references": ["…", "…"], "a": "…", "b": "…", "preferred": "a", "category": "HM"}

    (or "rating": 3.5). Rated captions give correlations (Pearson, Spearman, Kendall's
    tau b and c) with p and 95 % intervals; pairs give how often the preferred caption
    has the higher score: by category, over all pairs, on average over categories, and
    in the worst category, once with ties as wrong and once as half. Every metric is
    tested against the best one on the same lines. Lines hang together by "image",
    else by their references; with "system", agreement over systems is told. CIDEr's
    document frequencies are of FILE's distinct reference sets, unless --idf is given.
    --csv and --json have every line's scores. --report sets beside the agreement how
    often each metric prefers a person's caption to one that is wrong by construction:
    of the images of --distractors, else of those of FILE; and, where rated lines name a
    "system" that is "human", or with --captions, to a machine's.

        prescore judge expert.jsonl --metrics cider_d,bleu_4,spice
        prescore judge tasks.jsonl --distractors flickr8k/test --metrics all

    The second example first writes tasks.jsonl: correct captions in pairs with captions
    that have another person or scene, are of another image, or name only the person or
    scene.

    Exit 0: judged; unavailable metrics are listed on stderr. Exit 2: usage, or
    refused. Exit 3: no metric could be computed.
    """
    from workers.bench import judgements
    from workers.bench.judgements import Judgements
    from workers.bench.judging import scoring
    from workers.bench.judging.report import format_report
    from workers.bench.judging.verdict import judge_metrics

    outputs = {"json": json_out, "csv": csv_out, "svg": plot}
    if machine is not None and report is None:
        raise typer.BadParameter("--captions: expected with --report alone")
    if not (asked := split_names(*metrics or [USUAL])):
        raise typer.BadParameter("expected names of metrics separated by commas, or all")
    asked += [against] if against else []
    with report_errors(), closing(Toolbox.of(settings.load_settings().at(home))) as toolbox:
        asked, models = resolve_models(asked, assets.list_registered_models(toolbox.places))
        against = asked[-1] if against else None
        wanted = scoring.choose_metrics(asked)
        if against is not None and against not in wanted:
            raise typer.BadParameter(f"--against: expected one metric, {against} is several")
        items = partial(_items, places=toolbox.places, url=url, key_file=key_file)
        if distractors is not None:
            _make(file, items(distractors), seed)
        judged = judgements.read_judgements(file)
        given = scoring.collect_captions(judged)
        with show_progress_steps() as steps:
            score = partial(
                scoring.score_captions,
                tokenizer=tokenizer,
                jvm=toolbox.jvm(),
                bring=partial(_bring, toolbox=toolbox, models=models),
                frequencies=None if idf is None else [each.references for each in items(idf)],
                told=steps.begin,
            )
            scored = score(given, wanted)
            _tell_missing(scored)
            found = judge_metrics(judged, given, scored, raters, against)
            if distractors is not None:
                found["distractors"] = {"dataset": distractors, "seed": seed}
            if report is not None:
                source = items(distractors) if distractors else None
                tasks = _tasks(judged, source, seed, machine)
                robust = None
                if tasks:
                    made = Judgements(pairs=tasks)
                    texts = scoring.collect_captions(made)
                    robust = judge_metrics(made, texts, score(texts, list(scored.values)), raters)
                report.write_text(format_report(file.name, found, robust), "utf-8")
        for kind, path in outputs.items():
            if path is not None:
                path.write_text(_written(kind, found), "utf-8")
    if as_json:
        print_json(found)
    else:
        print_lines(*_written("text", found).removesuffix("\n").split("\n"))


def _items(
    dataset: str, places: AssetFolders, url: str | None, key_file: Path | None
) -> Sequence["BundleItem"]:
    return sources.find_source(dataset, places, url, key_file).items


def _make(file: Path, items: Sequence["BundleItem"], seed: int) -> None:
    from workers.bench import judgements
    from workers.bench.judging import distractors

    if file.exists():
        raise RequestRefused(f"expected the name of a new file for the tasks, but {file} exists")
    people, names = [each.references for each in items], [each.image for each in items]
    pairs = list(distractors.make_distractors(people, seed, names))
    if not pairs:
        raise RequestRefused(
            "expected images with several captions, in English, that name people or scenes; found "
            f"none among {count_noun(len(items), 'image')}"
        )
    judgements.write_pairs(file, pairs, seed=seed)


def _tasks(
    judged: "Judgements", source: Sequence["BundleItem"] | None, seed: int, machine: Path | None
) -> "list[JudgedPair]":
    """List robustness pairs of the dataset's images, or else of the file's images."""
    from workers.bench.judging import robustness

    images = (
        robustness.list_images(judged)
        if source is None
        else [robustness.ImageReferences(each.image, each.references) for each in source]
    )
    if machine is not None:
        theirs = {one["image"]: one["caption"] for one in captions.read_captions(machine)}
        if not any(image.name in theirs for image in images):
            raise RequestRefused(f"{machine} has no caption of an image that the report knows")
        images = robustness.add_machine_captions(images, theirs)
    there = {pair.category for pair in judged.pairs if pair.category is not None}
    return [
        *robustness.make_robustness_pairs(images, seed, there),
        *robustness.pair_with_machines(judged),
    ]


def _bring(
    task: str, progress: "Progress", toolbox: Toolbox, models: Mapping[str, str]
) -> dict[str, Any]:
    asked, family = assets.list_asset_parameters(task, toolbox.places), find_family_name(task)
    if task not in models:
        return toolbox.bring(family, asked, progress)
    path = assets.list_registered_models(toolbox.places)[family, models[task]]
    return toolbox.named(family, models[task], path, asked, progress)


def _tell_missing(scored: "JudgedScores") -> None:
    print_missing(scored.missing)
    if not scored.values:
        raise MetricUnavailable("none of these metrics could be computed")


def _written(kind: str, found: Mapping[str, Any]) -> str:
    from workers.bench.judging import verdict_formats

    if kind == "json":
        return json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n"
    if kind == "csv":
        return verdict_formats.format_verdict_csv(found)
    return (
        verdict_formats.draw_verdict(found)
        if kind == "svg"
        else verdict_formats.format_verdict(found) + "\n"
    )
