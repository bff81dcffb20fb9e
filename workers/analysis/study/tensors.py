"""One model's rows as a safetensors file, which is the result of a task of strata."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed
from workers.analysis.study.rows import Rows
from workers.files import tensor_files

_SIDES = ("pregen", "postgen")
_OWN = ("datasets", "models", "strata", "stratum", "idf")


def write(path: Path, rows: Rows) -> None:
    content = asdict(rows)
    tensors = {side: np.stack(list(content[side].values())) for side in _SIDES}
    own = {name: content[name] for name in _OWN} | {side: list(content[side]) for side in _SIDES}
    metadata = {name: json.dumps(value) for name, value in own.items()}
    tensor_files.write(path, tensors, {"prescore_rows": "1", **metadata})


def read(path: Path) -> Rows:
    """Read a file that `write` wrote. Raises MetricFailed if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            content: dict[str, Any] = {name: json.loads(metadata[name]) for name in _OWN}
            for side in _SIDES:
                names = json.loads(metadata[side])
                content[side] = dict(zip(names, file.get_tensor(side), strict=True))
    except (SafetensorError, ValueError, KeyError) as error:
        raise MetricFailed(f"{path.name} is no file of rows: {error}") from None
    return Rows(**content)
