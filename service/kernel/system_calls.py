"""System calls: their numbers on the machines that the sandbox knows, and their use.

From the kernel's headers: asm/unistd_64.h for x86_64, asm-generic/unistd.h for aarch64.
"""

import ctypes
import os
import sys
from typing import Any

# What a program of each machine tells the filter (linux/audit.h).
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LAST = 450  # of the calls that these tables were made from; later ones do not exist for a child

# name: x86_64, aarch64
_TABLE: dict[str, tuple[int, int | None]] = {
    "access": (21, None),
    "arch_prctl": (158, None),
    "brk": (12, 214),
    "capget": (125, 90),
    "capset": (126, 91),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close": (3, 57),
    "close_range": (436, 436),
    "copy_file_range": (326, 285),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
    "epoll_wait": (232, None),
    "eventfd2": (290, 19),
    "execve": (59, 221),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "fadvise64": (221, 223),
    "fallocate": (285, 47),
    "fcntl": (72, 25),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fstat": (5, 80),
    "fstatfs": (138, 44),
    "fsync": (74, 82),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "get_mempolicy": (239, 236),
    "getcpu": (309, 168),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getgroups": (115, 158),
    "getpgid": (121, 155),
    "getpgrp": (111, None),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getpriority": (140, 141),
    "getrandom": (318, 278),
    "getresgid": (120, 150),
    "getresuid": (118, 148),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "getsid": (124, 156),
    "getsockname": (51, 204),
    "getsockopt": (55, 209),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "ioctl": (16, 29),
    "kill": (62, 129),
    "lseek": (8, 62),
    "lstat": (6, None),
    "madvise": (28, 233),
    "mbind": (237, 235),
    "membarrier": (324, 283),
    "memfd_create": (319, 279),
    "mincore": (27, 232),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "msync": (26, 227),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "open": (2, None),
    "openat": (257, 56),
    "pipe2": (293, 59),
    "poll": (7, None),
    "ppoll": (271, 73),
    "prctl": (157, 167),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "prlimit64": (302, 261),
    "pselect6": (270, 72),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "restart_syscall": (219, 128),
    "rmdir": (84, None),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigpending": (127, 136),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_setaffinity": (203, 122),
    "sched_yield": (24, 124),
    "seccomp": (317, 277),
    "select": (23, None),
    "sendfile": (40, 71),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "setitimer": (38, 103),
    "setrlimit": (160, 164),
    "shutdown": (48, 210),
    "sigaltstack": (131, 132),
    "stat": (4, None),
    "statfs": (137, 43),
    "statx": (332, 291),
    "sysinfo": (99, 179),
    "tgkill": (234, 131),
    "time": (201, None),
    "times": (100, 153),
    "umask": (95, 166),
    "uname": (63, 160),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "wait4": (61, 260),
    "write": (1, 64),
    "writev": (20, 66),
}
_COLUMN = {"x86_64": 0, "aarch64": 1}


def read_machine_name() -> str:
    return os.uname().machine


def find_call_number(call: str) -> int:
    """Find the number of a call. Raises KeyError where this machine has none, or is not known."""
    found = _TABLE[call][_COLUMN[read_machine_name()]]
    if found is None:
        raise KeyError(call)
    return found


def list_call_numbers(machine: str) -> dict[str, int]:
    """The calls that a machine has, by name."""
    column = _COLUMN[machine]
    return {call: row[column] for call, row in _TABLE.items() if row[column] is not None}  # type: ignore[misc]


def explain_unknown_machine() -> str | None:
    """Why the sandbox cannot be on this machine, as a sentence; None if it can."""
    if sys.platform != "linux":
        return f"the sandbox needs Linux, this is {sys.platform}"
    if read_machine_name() not in ARCHITECTURES or sys.maxsize < 2**32:
        known = " and ".join(ARCHITECTURES)
        return f"the sandbox knows the processors {known}, this is {read_machine_name()}"
    return None


_LIBC = ctypes.CDLL(None, use_errno=True)
_MOST_ARGUMENTS = 6


def call_kernel(number: int, *arguments: Any) -> int:
    """Call the kernel; arguments: numbers, pointers of ctypes. Raises OSError with its error."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    nothing = [ctypes.c_long(0)] * (_MOST_ARGUMENTS - len(given))
    result = int(_LIBC.syscall(ctypes.c_long(number), *given, *nothing))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def call_prctl(option: int, value: int) -> None:
    """Call prctl. Raises OSError with the kernel's error."""
    nothing = [ctypes.c_ulong(0)] * 3
    if _LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), *nothing) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def name_error(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
