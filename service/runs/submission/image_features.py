"""Image features for a checkpoint: the dataset's own, or made of its pictures by an encoder."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from service.contract import assets
from service.contract.api.evaluations import EvaluationRequest
from service.contract.assets import AssetFolders
from service.contract.errors import AssetRefused, InvalidRequest
from service.contract.formats import encoder_header
from service.contract.formats.bundles.features import (
    INPUT_TEXTS,
    describe_other_inputs,
    describe_other_size,
)
from service.contract.wording import count_noun
from service.engine.service_parts import ServiceParts
from service.stored import datasets
from service.stored.datasets import PinnedSplit

# The setting's name and not the folder: whoever reaches the service reads this.
_ADVICE = (
    f"`prescore assets add {assets.IMAGE_ENCODER} FILE` registers one, with the service's own "
    "`--home` or PRESCORE_HOME: no other home is searched"
)
_MOST_NAMED = 5


@dataclass(frozen=True)
class _RegisteredEncoder:
    """An encoder of pictures that is registered."""

    sha256: str
    makes: Mapping[str, Any]  # as a dataset tells its features


def choose_features(
    parts: ServiceParts, request: EvaluationRequest, pinned: PinnedSplit, model: Mapping[str, Any]
) -> tuple[PinnedSplit, str | None]:
    """The split that has the features of the checkpoint: where no version is named, of the latest
    one with them, among those that have the latest one's captions. Else the split that has the
    pictures, and the SHA-256 of the encoder that makes features of them. Raises where there is
    neither. A checkpoint that looks at pictures itself needs no encoder.
    """
    if model.get("inputs") == "pixels":
        return _with_pictures(parts, request, pinned), None
    config = model.get("config") or model
    inputs = model.get("inputs", "features")
    needed = {"encoder": model["encoder"], "size": config.get("feature_size"), "inputs": inputs}
    is_latest = _names_no_version(request)
    if is_latest:
        pinned = datasets.pin_with_features(parts.records, pinned, needed)
    if _fits(pinned.features, needed):
        return pinned, None
    here = _find_encoders(parts.places)
    if is_latest:
        pinned = datasets.pin_with_pictures(parts.records, pinned)
    fitting = next((each for each in here if _fits(each.makes, needed)), None)
    if fitting is not None and pinned.has_pictures:
        return pinned, fitting.sha256
    raise _refusal(needed, pinned, here)


def _with_pictures(
    parts: ServiceParts, request: EvaluationRequest, pinned: PinnedSplit
) -> PinnedSplit:
    if _names_no_version(request):
        pinned = datasets.pin_with_pictures(parts.records, pinned)
    if not pinned.has_pictures:
        raise _refused(
            f"the checkpoint looks at pictures, and dataset {pinned} has those of "
            f"{pinned.pictures:,} of its {count_noun(pinned.images, 'image')}: "
            "`prescore datasets images NAME FOLDER` adds them",
            "expected a dataset with all pictures",
        )
    return pinned


def _names_no_version(request: EvaluationRequest) -> bool:
    return "@" not in request.dataset.partition("/")[0]


def _fits(features: Mapping[str, Any] | None, needed: Mapping[str, Any]) -> bool:
    """A checkpoint that is not converted yet has no size."""
    if features is None or features["encoder"] != needed["encoder"]:
        return False
    is_alike = needed["inputs"] == features.get("inputs", "features")
    return is_alike and needed["size"] in (None, features["size"])


def _find_encoders(places: AssetFolders) -> list[_RegisteredEncoder]:
    found = []
    for asset in assets.list_image_encoders(places):
        with suppress(AssetRefused):
            header = encoder_header.read_encoder_header(asset.path)
            encoder = header.identity(asset.sha256).model_dump()
            found.append(
                _RegisteredEncoder(asset.sha256, {"encoder": encoder, "size": header.size})
            )
    return found


def _refusal(
    needed: Mapping[str, Any], pinned: PinnedSplit, every: Sequence[_RegisteredEncoder]
) -> InvalidRequest:
    wanted = _told(needed["encoder"])
    if pinned.pictures and needed["inputs"] == "features":
        here = next((each for each in every if each.makes["encoder"] == needed["encoder"]), None)
        if here is None:
            return _refused(
                f"the checkpoint was trained on features of {wanted}, and dataset {pinned} has "
                f"pictures; features are made of them by a registered encoder, and {_those(every)} "
                f"registered: {_ADVICE}",
                "expected a dataset with features of this encoder",
            )
        if _fits(here.makes, needed):
            return _refused(
                f"dataset {pinned} has the pictures of {pinned.pictures:,} of its "
                f"{count_noun(pinned.images, 'image')}: a checkpoint needs all",
                "expected a dataset with all pictures",
            )
        return _refused(
            describe_other_size(needed["size"], here.makes["size"]), _SIZE.format(needed["size"])
        )
    if pinned.features is None:
        return _refused(
            f"dataset {pinned} has captions alone: a checkpoint needs its image features",
            "expected a dataset with features",
        )
    if needed["encoder"] != pinned.features["encoder"]:
        return _refused(
            f"the checkpoint was trained on features of {wanted}, "
            f"the dataset has those of {_told(pinned.features['encoder'])}",
            "expected the checkpoint's encoder",
        )
    found = pinned.features.get("inputs", "features")
    if needed["inputs"] != found:
        wanted = INPUT_TEXTS[needed["inputs"]]
        return _refused(
            describe_other_inputs(needed["inputs"], found), f"expected a dataset with {wanted}"
        )
    return _refused(
        describe_other_size(needed["size"], pinned.features["size"]), _SIZE.format(needed["size"])
    )


def _those(every: Sequence[_RegisteredEncoder]) -> str:
    """Names of encoders, with the verb that follows."""
    names = [_told(each.makes["encoder"]) for each in every[:_MOST_NAMED]]
    if len(every) > _MOST_NAMED:
        names.append(f"{len(every) - _MOST_NAMED} more")
    return f"{' and '.join(names) or 'none'} {'are' if len(names) > 1 else 'is'}"


_SIZE = "expected features of size {}"


def _refused(detail: str, expected: str) -> InvalidRequest:
    return InvalidRequest(detail, [("/dataset", expected)])


def _told(encoder: Mapping[str, str]) -> str:
    return f"{encoder['name']} ({encoder['digest']})"
