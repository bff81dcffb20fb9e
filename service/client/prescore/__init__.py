"""Client of Prescore, the evaluator that a captioning team shares.

with prescore.Client() as client:
    digest = client.upload_checkpoint("epoch-08.safetensors")
    evaluation = client.submit("flickr8k/test", checkpoint=digest)
    print(client.wait(evaluation.id).scores)
"""

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

__all__ = [
    "AsyncClient",
    "Checkpoint",
    "Client",
    "Comparison",
    "Dataset",
    "Evaluation",
    "Event",
    "InvalidArgument",
    "PrescoreClientError",
    "Problem",
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
