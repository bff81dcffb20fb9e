"""How the sandbox's child opens malicious files: as Prescore does, and as nobody should."""

import contextlib
import pickle

import torch

from workers.conversion import pytorch
from workers.sandbox.child import InputRefused

RAN = []  # by the payloads


def safely(inputs, outputs, parameters):
    """What Prescore's converter says of each file; None where it takes it."""
    found = {}
    for path in inputs:
        try:
            pytorch.convert_state_dict([path], outputs, {"most_bytes": 10**8})
        except InputRefused as refused:
            found[path.name] = str(refused)[:300]
        except MemoryError:
            found[path.name] = "memory"
        else:
            found[path.name] = None
    return {"said": found, "ran": RAN}


def carelessly(inputs, outputs, parameters):
    """Which files ran something, with the safe reader left out."""
    ran = []
    for path in inputs:
        RAN.clear()
        for opened in (_by_torch, _by_pickle):
            with contextlib.suppress(BaseException):  # the payload's own errors, of any kind
                opened(path)
        if RAN:
            ran.append(path.name)
    return {"ran": ran}


def _by_torch(path):
    torch.load(path, weights_only=False)


def _by_pickle(path):
    with path.open("rb") as file:
        pickle.load(file)  # noqa: S301
