"""Scores of a training run as scalars of TensorBoard, at the steps of their checkpoints."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from prescore.errors import InvalidArgument

PREFIX = "prescore"  # of tags: prescore/cider_d
WRITERS = ("torch.utils.tensorboard", "tensorboardX")


class EventWriter:
    """Writes scalars to a log directory, or by somebody's own SummaryWriter, which stays open.

    TensorBoard keeps scalars with 32 bits.
    """

    def __init__(self, target: Any) -> None:
        self._is_ours = isinstance(target, str | Path)
        self._writer = _open_writer(target) if self._is_ours else target
        if not callable(getattr(self._writer, "add_scalar", None)):
            raise InvalidArgument(
                "tensorboard: expected a log directory or a SummaryWriter, found "
                f"{type(target).__name__}"
            )

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(f"{PREFIX}/{name}", value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._is_ours:
            self._writer.close()


def _open_writer(folder: str | Path) -> Any:
    for module in WRITERS:
        try:
            writer = import_module(module).SummaryWriter
        except ImportError:  # torch has the module, which needs the package
            continue
        try:
            return writer(str(folder))
        except OSError as error:
            raise InvalidArgument(
                f"tensorboard: {folder} cannot be written: {error.strerror}"
            ) from None
    raise InvalidArgument(
        "tensorboard: expected the package tensorboard beside torch, or tensorboardX, found "
        "neither: pip install tensorboard"
    )
