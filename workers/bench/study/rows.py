"""The data of a correlation study: scores of strata of images, one row for each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prescore.models.studies import StudyIdf
from service.contract.errors import RequestRefused
from service.contract.metrics import catalogue
from workers import tensor_files
from workers.metrics.family import Floats
from workers.metrics.marked_files import Tensors, read_marked_file

RowMask = NDArray[np.bool_]


@dataclass(frozen=True)
class StratumRows:
    """`stratum` of `strata` says which images of its dataset a row is about: stratum 0 has those
    that the model describes worst, and if there is 1 stratum, it has all of them. A score that a
    row does not have is NaN; a pre-gen score may be infinite. `idf` says in which images CIDEr's
    document frequencies were counted, if that is known.
    """

    datasets: Sequence[str]
    models: Sequence[str]
    strata: Sequence[int]
    stratum: Sequence[int]
    pregen: Mapping[str, Floats]
    postgen: Mapping[str, Floats]
    idf: StudyIdf | None = None

    def __len__(self) -> int:
        return len(self.datasets)

    @property
    def parts(self) -> dict[str, RowMask]:
        """Masks of the rows of each dataset, by its name."""
        names = np.array(self.datasets)
        return {name: names == name for name in dict.fromkeys(self.datasets)}

    @property
    def whole(self) -> RowMask:
        """Mask of the rows about all images of their dataset."""
        return np.equal(self.strata, 1)

    @property
    def cells(self) -> list[tuple[str, int, int]]:
        """The cell of each row: rows that differ only in their model have the same."""
        return list(zip(self.datasets, self.strata, self.stratum, strict=True))


def join_rows(parts: Sequence[StratumRows]) -> StratumRows:
    """Join rows; scores that a part lacks are NaN. RequestRefused if they are not alike."""
    idfs = {part.idf for part in parts}
    if len(idfs) > 1:
        found = ", ".join(sorted(idf or "not known" for idf in idfs))
        raise RequestRefused(
            f"expected rows whose CIDEr counts documents in the same images, found idf: {found}"
        )
    names = {
        side: catalogue.sort_metric_names({name for part in parts for name in getattr(part, side)})
        for side in ("pregen", "postgen")
    }
    return StratumRows(
        datasets=[name for part in parts for name in part.datasets],
        models=[name for part in parts for name in part.models],
        strata=[number for part in parts for number in part.strata],
        stratum=[number for part in parts for number in part.stratum],
        pregen={name: _column(parts, "pregen", name) for name in names["pregen"]},
        postgen={name: _column(parts, "postgen", name) for name in names["postgen"]},
        idf=idfs.pop(),
    )


def _column(parts: Sequence[StratumRows], side: str, name: str) -> Floats:
    return np.concatenate(
        [getattr(part, side).get(name, np.full(len(part), np.nan)) for part in parts]
    )


_SIDES = ("pregen", "postgen")
_OWN = ("datasets", "models", "strata", "stratum", "idf")


def write_rows_file(path: Path, rows: StratumRows) -> None:
    content = asdict(rows)
    tensors = {side: np.stack(list(content[side].values())) for side in _SIDES}
    own = {name: content[name] for name in _OWN} | {side: list(content[side]) for side in _SIDES}
    metadata = {name: json.dumps(value) for name, value in own.items()}
    tensor_files.write_tensors(path, tensors, {"prescore_rows": "1", **metadata})


def read_rows_file(path: Path) -> StratumRows:
    """Read a file that `write` wrote. Raises MetricFailed if the file is something else."""

    def restore_rows(metadata: Mapping[str, str], tensors: Tensors) -> StratumRows:
        content: dict[str, Any] = {name: json.loads(metadata[name]) for name in _OWN}
        for side in _SIDES:
            content[side] = dict(zip(json.loads(metadata[side]), tensors[side], strict=True))
        return StratumRows(**content)

    return read_marked_file(path, "prescore_rows", "1", "a file of rows", restore_rows)
