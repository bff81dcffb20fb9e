"""Adapters among stored checkpoints: each is bound to a registered base model."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import InvalidCheckpoint, MetricUnavailable
from service.contract.formats import model_formats


def bind_base(
    description: Mapping[str, Any], places: AssetFolders, asked: str | None = None
) -> dict[str, Any]:
    """The description of a checkpoint: of an adapter with the facts of its base, or with the reason
    `unbound`. The base is the one that is `asked` for by its name, else the one that the adapter
    names. Other descriptions stay as they are.
    """
    if description.get("format") != "adapter":
        return dict(description)
    try:
        name, base = assets.find_base(asked or description["base"]["name"], places)
        facts = _read_facts(base.path, base.sha256)
    except (MetricUnavailable, InvalidCheckpoint) as error:
        return {**description, "unbound": error.detail}
    bound = {"name": name, "digest": f"sha256:{base.sha256}"}
    return {**facts, "format": description["format"], "base": bound}


@lru_cache(maxsize=16)
def _read_facts(path: Path, sha256: str) -> model_formats.Facts:  # noqa: ARG001  a key
    return model_formats.read_package_facts(path)
