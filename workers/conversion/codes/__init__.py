"""Public training codes that are known by the names of their tensors, and the maps for them.

What is said of a code was read in it: which equations it computes, which words are special, what it
does to features. What it leaves to options that no tensor shows is told as a warning.
"""

from collections.abc import Sequence

from service.contract.errors import RequestRefused
from workers.conversion.codes.code import Code, Found
from workers.conversion.codes.known import KNOWN
from workers.conversion.codes.unlike import UNLIKE
from workers.conversion.layers import Arrays


def recognised(arrays: Arrays, by_id: Sequence[str]) -> Code | None:
    """The first that fits. Raises RequestRefused, with what to do, for a code whose equations are
    none of ours.
    """
    found = Found(arrays, by_id)
    for known in KNOWN:
        code = known(found)
        if code is not None:
            return code
    for unlike in UNLIKE:
        if found.root(*unlike.marks) is not None:
            raise RequestRefused(unlike.sentence)
    return None
