"""Seccomp filter: the calls of the kernel that a child may make. All others are refused, also those
that later kernels add.

No child may open a socket, run a program, trace or signal another process, start io_uring, mount,
change its namespaces, or change the mode, owner, times or extended attributes of a file.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from service.kernel import system_calls

_ALL_BITS = 0xFFFFFFFF
_THREAD = 0x10000  # CLONE_THREAD
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET


@dataclass(frozen=True)
class ArgumentRule:
    """Allowed where an argument is one of these values. The kernel, too, reads 32 bits of it."""

    argument: int
    values: tuple[int, ...]
    mask: int = _ALL_BITS


Allowed = Mapping[str, ArgumentRule | None]  # a call's name, and what it may be called with

_FILES = (
    *("access", "close", "close_range", "dup", "dup2", "dup3", "faccessat", "faccessat2"),
    *("fadvise64", "fallocate", "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate"),
    *("getcwd", "getdents64", "lseek", "lstat", "newfstatat", "open", "openat", "pread64"),
    *("preadv", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "stat", "statfs"),
    *("statx", "umask", "write", "writev"),
)
_MEMORY = (
    *("brk", "get_mempolicy", "madvise", "mbind", "membarrier", "mincore", "mmap", "mprotect"),
    *("mremap", "msync", "munmap"),
)
_OWN = (
    *("arch_prctl", "capget", "clock_getres", "clock_gettime", "clock_nanosleep", "exit"),
    *("exit_group", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp"),
    *("getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit"),
    *("getrusage", "getsid", "gettid", "gettimeofday", "getuid", "nanosleep", "restart_syscall"),
    *("sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getparam"),
    *("sched_getscheduler", "sched_yield", "setitimer", "setrlimit", "sysinfo", "time", "times"),
    "uname",
)
_SIGNALS = (
    *("rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend"),
    *("rt_sigtimedwait", "sigaltstack"),
)
_WAITING = (
    *("epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "futex", "poll"),
    *("ppoll", "pselect6", "select", "rseq", "set_robust_list", "set_tid_address"),
)
# Of descriptors: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, locks, F_OFD locks, F_DUPFD_CLOEXEC.
# Not F_SETOWN, by which the kernel sends signals to others.
_FCNTL = ArgumentRule(1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030))
_FCNTL_AND_SEALS = ArgumentRule(1, (*_FCNTL.values, 1033, 1034))  # of memory that others see, too
# TCGETS, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL = ArgumentRule(1, (0x5401, 0x541B, 0x5421, 0x5450, 0x5451))
# Names of threads and memory, questions. Not PR_SET_PDEATHSIG: the child dies with its parent.
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)
# Of who works in folders of its own: to make, name and delete files, and to copy what they hold.
_FOLDERS = (
    *("copy_file_range", "mkdir", "mkdirat", "pipe2", "rename", "renameat", "renameat2", "rmdir"),
    *("sendfile", "unlink", "unlinkat"),
)
# By sockets that are open already: there is no call to open or connect another one, and a stream
# sends to nobody but the other side.
_MESSAGES = (
    *("getsockname", "getsockopt", "recvfrom", "recvmsg", "sendmsg", "sendto", "shutdown"),
)
ENDS = ("clone3",)  # "there is no such call", so that libraries take the older one


def list_allowed_calls(
    *,
    threads: bool = False,
    memory_files: bool = False,
    folders: bool = False,
    messages: bool = False,
) -> Allowed:
    """List calls allowed to this process, whose id they hold: it may signal and limit no other.
    `folders`: those that make and delete files, too; `messages`: those that send and receive by
    sockets that it has, which must be streams.
    """
    mine = os.getpid()
    plain = (*_FILES, *_MEMORY, *_OWN, *_SIGNALS, *_WAITING)
    allowed: dict[str, ArgumentRule | None] = dict.fromkeys(plain)
    allowed |= {"fcntl": _FCNTL, "ioctl": _IOCTL, "prctl": ArgumentRule(0, _PRCTL)}
    allowed |= {"kill": ArgumentRule(0, (mine,)), "tgkill": ArgumentRule(0, (mine,))}
    allowed |= {"prlimit64": ArgumentRule(0, (0, mine))}
    if threads:
        allowed["clone"] = ArgumentRule(0, (_THREAD,), _THREAD | _NAMESPACES)
        # By it, torch counts cores: without it, torch has one thread.
        allowed["sched_setaffinity"] = ArgumentRule(0, (0, mine))
    if memory_files:
        allowed |= {"memfd_create": None, "fcntl": _FCNTL_AND_SEALS}
    if folders:
        allowed |= dict.fromkeys(_FOLDERS)
    if messages:
        allowed |= dict.fromkeys(_MESSAGES)
    return allowed


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


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def explain_missing_seccomp() -> str | None:
    """Explain what this machine lacks, as a sentence; None if nothing."""
    action = ctypes.c_uint32(_KILL)
    try:
        system_calls.call_kernel(
            system_calls.find_call_number("seccomp"), _ASK_ACTION, 0, ctypes.byref(action)
        )
    except OSError as error:
        name = system_calls.name_error(error)
        return f"this kernel has no seccomp filters, or forbids them ({name})"
    return None


def forbid_new_privileges() -> None:
    """The kernel asks for it before a process without privileges confines itself."""
    system_calls.call_prctl(_NO_NEW_PRIVILEGES, 1)


def restrict_calls(allowed: Allowed) -> None:
    """Refuse this process, and all that it starts, every other call: it fails with EPERM, and one
    that is newer than our tables as if there were none (ENOSYS). A program of another machine is
    killed. To be called after `forbid_new_privileges`. Raises OSError; then nothing is refused, and
    the caller must not go on.
    """
    compiled = compile_filter(allowed, system_calls.read_machine_name())
    filter_ = _FilterProgram(len(compiled) // _INSTRUCTION.size, compiled)
    number = system_calls.find_call_number("seccomp")
    system_calls.call_kernel(number, _SET_FILTER, _ALL_THREADS, ctypes.byref(filter_))


def compile_filter(allowed: Allowed, of: str) -> bytes:
    """The filter of a machine, in the kernel's format."""
    numbers = system_calls.list_call_numbers(of)
    steps = [_load(_ARCHITECTURE), _if(system_calls.ARCHITECTURES[of], 1, 0), _return(_KILL)]
    steps.append(_load(_CALL))
    if of == "x86_64":
        steps += [_step(_IF_AT_LEAST, _X32, 0, 1), _return(_KILL)]
    for name, only in allowed.items():
        if name in numbers:
            steps += _allow(numbers[name], only)
    for name in ENDS:
        steps += [_if(numbers[name], 0, 1), _return(_UNKNOWN)]
    steps += [_step(_IF_AT_LEAST, system_calls.LAST + 1, 0, 1), _return(_UNKNOWN), _return(_REFUSE)]
    return b"".join(steps)


def _allow(number: int, only: ArgumentRule | None) -> list[bytes]:
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
