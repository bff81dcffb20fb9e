"""Client of Prescore, the evaluator that a captioning team shares.

with prescore.Client() as client:
    digest = client.upload_checkpoint("epoch-08.safetensors")
    evaluation = client.submit("flickr8k/test", checkpoint=digest)
    print(client.wait(evaluation.id).scores)
"""

from typing import TYPE_CHECKING, Any

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
    Score,
    Work,
)
from prescore.training.watched import Result
from prescore.training.watching import Watch, watch

if TYPE_CHECKING:
    from prescore.recording.recorder import Recorder

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
    "Score",
    "ServiceError",
    "TimedOut",
    "Unreachable",
    "Watch",
    "Work",
    "watch",
]


def __getattr__(name: str) -> Any:
    """`Recorder` alone needs numpy, so it is imported where it is used."""
    if name != "Recorder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from prescore.recording.recorder import Recorder
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "prescore.Recorder needs numpy: pip install 'prescore-client[recorder]'",
            name=error.name,
        ) from error
    return Recorder
