"""Landlock: restricts a process to some files and forbids TCP, for good and without privileges.

It also keeps the process from tracing others, and from version 6 on from signals and abstract
sockets of others. It says nothing about UDP, other sockets, and the mode, owner and times of files:
seccomp does (`seccomp_filter.py`).
"""

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from service.kernel import system_calls

NEEDED = 4  # the version that knows TCP: Linux 6.7
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine
_ASK_VERSION = 1
_PATH_BENEATH = 1
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals
_SCOPES_SINCE = 6

# The kernel's bits, in their order.
_NAMES = (
    *("execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file"),
    *("make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym"),
    *("refer", "truncate", "ioctl_dev"),
)
_BIT = {name: 1 << at for at, name in enumerate(_NAMES)}
_SINCE = {"ioctl_dev": 5}
_OF_FILES = ("execute", "write_file", "read_file", "truncate", "ioctl_dev")

READ = frozenset({"read_file", "read_dir"})
WRITE = frozenset({"read_file", "write_file", "truncate"})
# `refer`: files may be renamed from one such folder to another, which has no more rights.
WORK = READ | WRITE | {"make_reg", "make_dir", "remove_file", "remove_dir", "refer"}


@dataclass(frozen=True)
class LandlockRule:
    """Rights on a file, or on all below a folder."""

    path: Path
    rights: frozenset[str]


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def read_landlock_version() -> int:
    """Read the version of the kernel's Landlock. Raises OSError where there is none."""
    return system_calls.call_kernel(_CREATE, None, 0, _ASK_VERSION)


def explain_missing_landlock() -> str | None:
    """Explain what this machine lacks, as a sentence; None if nothing."""
    try:
        found = read_landlock_version()
    except OSError as error:
        return f"this kernel has no Landlock, or it is off ({system_calls.name_error(error)})"
    if found < NEEDED:
        return f"Landlock has version {found}, needed is {NEEDED} (Linux 6.7)"
    return None


def restrict_files(rules: Iterable[LandlockRule] | None) -> None:
    """Forbid this thread, and all that it starts, everything but the rules; files are left as they
    are where there are None.

    Paths that do not exist are left out. Raises OSError; then nothing is forbidden, and the caller
    must not go on.
    """
    known = read_landlock_version()
    handled = sum(bit for name, bit in _BIT.items() if known >= _SINCE.get(name, NEEDED))
    if rules is None:
        handled = 0
    scopes = _SCOPES if known >= _SCOPES_SINCE else 0
    asked = _Ruleset(handled, _TCP, scopes)
    size = ctypes.sizeof(asked) if scopes else _Ruleset.scoped.offset
    ruleset = system_calls.call_kernel(_CREATE, ctypes.byref(asked), size, 0)
    try:
        for rule in rules or ():
            _add(ruleset, rule, handled)
        system_calls.call_kernel(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, rule: LandlockRule, handled: int) -> None:
    try:
        place = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        names = rule.rights if rule.path.is_dir() else rule.rights.intersection(_OF_FILES)
        rights = sum(_BIT[name] for name in names) & handled
        beneath = _PathBeneath(rights, place)
        system_calls.call_kernel(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(place)
