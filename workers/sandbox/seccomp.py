"""A seccomp filter: which calls of the kernel a process may still make, for good and without
privileges.
"""

import ctypes
import errno
import struct

from workers.sandbox import calls, kernel, machine
from workers.sandbox.calls import Allowed, Only

_SET_FILTER, _ASK_ACTION = 1, 2
_ALL_THREADS = 1
_NO_NEW_PRIVILEGES = 38  # of prctl

# Instructions of the kernel's filters (linux/bpf_common.h).
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST = 0x15, 0x35
_INSTRUCTION = struct.Struct("=HBBI")
_CALL, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where they are in what a filter sees

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_UNKNOWN = 0x00050000 | errno.ENOSYS
_X32 = 0x40000000  # the bit of the calls of x86_64 with short pointers


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def missing() -> str | None:
    """What this machine lacks, as a sentence; None if nothing."""
    action = ctypes.c_uint32(_KILL)
    try:
        kernel.call(machine.number("seccomp"), _ASK_ACTION, 0, ctypes.byref(action))
    except OSError as error:
        return f"this kernel has no seccomp filters, or forbids them ({kernel.error_name(error)})"
    return None


def forbid_new_privileges() -> None:
    """The kernel asks for it before a process without privileges confines itself."""
    kernel.prctl(_NO_NEW_PRIVILEGES, 1)


def restrict(allowed: Allowed) -> None:
    """Refuse this process, and all that it starts, every other call: it fails with EPERM, and one
    that is newer than our tables as if there were none (ENOSYS). A program of another machine is
    killed. To be called after `forbid_new_privileges`. Raises OSError; then nothing is refused, and
    the caller must not go on.
    """
    compiled = program(allowed, machine.name())
    filter_ = _Program(len(compiled) // _INSTRUCTION.size, compiled)
    number = machine.number("seccomp")
    kernel.call(number, _SET_FILTER, _ALL_THREADS, ctypes.byref(filter_))


def program(allowed: Allowed, of: str) -> bytes:
    """The filter of a machine, in the kernel's format."""
    numbers = machine.numbers(of)
    steps = [_load(_ARCHITECTURE), _if(machine.ARCHITECTURES[of], 1, 0), _return(_KILL)]
    steps.append(_load(_CALL))
    if of == "x86_64":
        steps += [_step(_IF_AT_LEAST, _X32, 0, 1), _return(_KILL)]
    for name, only in allowed.items():
        if name in numbers:
            steps += _allow(numbers[name], only)
    for name in calls.ENDS:
        steps += [_if(numbers[name], 0, 1), _return(_UNKNOWN)]
    steps += [_step(_IF_AT_LEAST, machine.LAST + 1, 0, 1), _return(_UNKNOWN), _return(_REFUSE)]
    return b"".join(steps)


def _allow(number: int, only: Only | None) -> list[bytes]:
    if only is None:
        return [_if(number, 0, 1), _return(_ALLOW)]
    steps = [_load(_ARGUMENTS + 8 * only.argument), _step(_AND, only.mask)]
    for value in only.values:
        steps += [_if(value, 0, 1), _return(_ALLOW)]
    steps.append(_return(_REFUSE))
    return [_if(number, 0, len(steps)), *steps]


def _load(place: int) -> bytes:
    return _step(_LOAD, place)


def _if(value: int, then: int, otherwise: int) -> bytes:
    """Skip as many instructions where the loaded number is this value, or is not."""
    return _step(_IF_EQUAL, value, then, otherwise)


def _return(action: int) -> bytes:
    return _step(_RETURN, action)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, then, otherwise, value)
