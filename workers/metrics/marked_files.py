"""Marked files: safetensors whose metadata name their content and its format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, UnknownMetric

T = TypeVar("T")
Tensors = dict[str, NDArray[Any]]


def read_marked_file(
    path: Path,
    mark: str,
    version: str,
    content: str,
    restore: Callable[[Mapping[str, str], Tensors], T],
) -> T:
    """Read a file by `restore`, from its metadata and tensors. Raises MetricFailed if the file does
    not hold `content` of this version, or if `restore` raises ValueError, KeyError, TypeError or
    UnknownMetric.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            found = metadata.get(mark)
            if found != version:
                raise MetricFailed(
                    f"expected {content} of format {version} in {path.name}, found "
                    f"{'none' if found is None else repr(found)[:60]}"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a file
        return restore(metadata, tensors)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, UnknownMetric) as error:
        raise MetricFailed(f"{path.name} is not {content}: {error}") from None
