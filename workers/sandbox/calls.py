"""Which calls of the kernel a child may make. All others are refused: those that later kernels add,
too.

No child may open a socket, run a program, trace or signal another process, start io_uring, mount,
change its namespaces, or change the mode, owner, times or extended attributes of a file.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

_ALL_BITS = 0xFFFFFFFF
_THREAD = 0x10000  # CLONE_THREAD
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET


@dataclass(frozen=True)
class Only:
    """Allowed where an argument is one of these values. The kernel, too, reads 32 bits of it."""

    argument: int
    values: tuple[int, ...]
    mask: int = _ALL_BITS


Allowed = Mapping[str, Only | None]  # a call's name, and what it may be called with

_FILES = (
    *("access", "close", "close_range", "dup", "dup2", "dup3", "faccessat", "faccessat2"),
    *("fadvise64", "fallocate", "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate"),
    *("getcwd", "getdents64", "lseek", "lstat", "newfstatat", "open", "openat", "pread64"),
    *("preadv", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "stat", "statfs"),
    *("statx", "umask", "write", "writev"),
)
_MEMORY = (
    *("brk", "get_mempolicy", "madvise", "membarrier", "mincore", "mmap", "mprotect", "mremap"),
    *("msync", "munmap"),
)
_OWN = (
    *("arch_prctl", "capget", "clock_getres", "clock_gettime", "clock_nanosleep", "exit"),
    *("exit_group", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp"),
    *("getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit"),
    *("getrusage", "getsid", "gettid", "gettimeofday", "getuid", "nanosleep", "restart_syscall"),
    *("sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getparam"),
    *("sched_getscheduler", "sched_yield", "setrlimit", "sysinfo", "time", "times", "uname"),
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
_FCNTL = Only(1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030))
_IOCTL = Only(1, (0x5401, 0x541B, 0x5450, 0x5451))  # TCGETS, FIONREAD, FIONCLEX, FIOCLEX
# Names of threads and memory, questions. Not PR_SET_PDEATHSIG: the child dies with its parent.
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)
ENDS = ("clone3",)  # "there is no such call", so that libraries take the older one


def of(*, threads: bool = False, memory_files: bool = False) -> Allowed:
    """Of this process, whose id it holds: no other one may be signalled or limited."""
    mine = os.getpid()
    plain = (*_FILES, *_MEMORY, *_OWN, *_SIGNALS, *_WAITING)
    allowed: dict[str, Only | None] = dict.fromkeys(plain)
    allowed |= {"fcntl": _FCNTL, "ioctl": _IOCTL, "prctl": Only(0, _PRCTL)}
    allowed |= {"kill": Only(0, (mine,)), "tgkill": Only(0, (mine,))}
    allowed |= {"prlimit64": Only(0, (0, mine))}
    if threads:
        allowed["clone"] = Only(0, (_THREAD,), _THREAD | _NAMESPACES)
    if memory_files:
        allowed["memfd_create"] = None
    return allowed
