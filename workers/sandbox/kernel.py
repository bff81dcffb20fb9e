"""Calls of the kernel that Python has no function for."""

import ctypes
import os
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_MOST_ARGUMENTS = 6


def call(number: int, *arguments: Any) -> int:
    """Raises OSError with the kernel's error. Arguments are numbers, and pointers of ctypes."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    nothing = [ctypes.c_long(0)] * (_MOST_ARGUMENTS - len(given))
    result = int(_LIBC.syscall(ctypes.c_long(number), *given, *nothing))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def prctl(option: int, value: int) -> None:
    """Raises OSError with the kernel's error."""
    nothing = [ctypes.c_ulong(0)] * 3
    if _LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), *nothing) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def error_name(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
