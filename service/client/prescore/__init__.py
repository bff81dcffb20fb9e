"""Client of Prescore, the evaluator that a captioning team shares.

with prescore.Client() as client:
    digest = client.upload_checkpoint("epoch-08.safetensors")
    evaluation = client.submit("flickr8k/test", checkpoint=digest)
    print(client.wait(evaluation.id).scores)

Each name is imported when it is first used: the service needs `prescore.models` without httpx, and
only `Recorder` needs numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prescore.client import AsyncClient, Client
    from prescore.errors import (
        InvalidArgument,
        PrescoreClientError,
        Refused,
        ServiceError,
        TimedOut,
        Unreachable,
    )
    from prescore.models import (
        Checkpoint,
        Columns,
        Comparison,
        Dataset,
        Evaluation,
        Event,
        Problem,
        RunTask,
        Score,
    )
    from prescore.recording.recorder import Recorder
    from prescore.training.results import Result
    from prescore.training.watch import Watch, watch

__all__ = [
    "AsyncClient",
    "Checkpoint",
    "Client",
    "Columns",
    "Comparison",
    "Dataset",
    "Evaluation",
    "Event",
    "InvalidArgument",
    "PrescoreClientError",
    "Problem",
    "Recorder",
    "Refused",
    "Result",
    "RunTask",
    "Score",
    "ServiceError",
    "TimedOut",
    "Unreachable",
    "Watch",
    "watch",
]
_MODULES = {
    "prescore.client": ("AsyncClient", "Client"),
    "prescore.errors": (
        *("InvalidArgument", "PrescoreClientError", "Refused"),
        *("ServiceError", "TimedOut", "Unreachable"),
    ),
    "prescore.models": (
        *("Checkpoint", "Columns", "Comparison", "Dataset", "Evaluation"),
        *("Event", "Problem", "RunTask", "Score"),
    ),
    "prescore.recording.recorder": ("Recorder",),
    "prescore.training.results": ("Result",),
    "prescore.training.watch": ("Watch", "watch"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("errors", "models"):
        return import_module(f"{__name__}.{name}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if name != "Recorder":
            raise
        raise ModuleNotFoundError(
            "prescore.Recorder needs numpy: pip install 'prescore-client[recorder]'",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return __all__
