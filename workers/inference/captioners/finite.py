"""The values of a captioner's tensors."""

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint


def check(name: str, tensor: Tensor) -> None:
    wrong = int((~torch.isfinite(tensor)).sum())
    if wrong:
        raise UnusableCheckpoint(
            f"tensor {name}: {wrong} of {tensor.numel()} values are not finite numbers; "
            "did the training diverge?",
            pointer=f"/{name}",
        )
