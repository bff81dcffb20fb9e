"""T51: the filter of system calls, on both machines, as the kernel reads it."""

import errno
import re
import struct
import subprocess
from pathlib import Path

import pytest

from service.kernel import confinement, landlock, seccomp_filter, system_calls

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
OURS = 4711  # the child's own id
HEADERS = {
    "x86_64": ("", "asm/unistd_64.h"),
    "aarch64": (
        "#define __BITS_PER_LONG 64\n#define __ARCH_WANT_NEW_STAT\n",
        "asm-generic/unistd.h",
    ),
}
MORE = "#define __ARCH_WANT_RENAMEAT\n#define __ARCH_WANT_SET_GET_RLIMIT\n"
MORE += "#define __ARCH_WANT_SYS_CLONE3\n"


def _judged(program, architecture, number, arguments=()):
    """The kernel's action, by an interpreter of the five instructions that we use."""
    seen = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = loaded = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", seen, value)
            case 0x54:
                loaded &= value
            case 0x15:
                at += then if loaded == value else otherwise
            case 0x35:
                at += then if loaded >= value else otherwise
            case 0x06:
                return value
            case _:
                pytest.fail(f"instruction {code:#x}")


@pytest.fixture(params=system_calls.ARCHITECTURES)
def judge(request, monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: OURS)
    programs = {
        each: seccomp_filter.compile_filter(
            seccomp_filter.list_allowed_calls(threads=each), request.param
        )
        for each in (0, 1)
    }
    numbers = system_calls.list_call_numbers(request.param)

    def judge(call, *arguments, threads=False):
        number = numbers[call] if isinstance(call, str) else call
        return _judged(
            programs[threads], system_calls.ARCHITECTURES[request.param], number, arguments
        )

    return judge


@pytest.mark.parametrize(
    ("call", "arguments", "action"),
    [
        ("read", (), ALLOW),
        ("openat", (), ALLOW),
        ("mmap", (), ALLOW),
        ("execve", (), REFUSE),
        ("wait4", (), REFUSE),
        ("clone", (0x3D0F00,), REFUSE),
        ("clone3", (), UNKNOWN),
        (10_000, (), UNKNOWN),
        ("kill", (OURS,), ALLOW),
        ("kill", (1,), REFUSE),
        ("kill", (2**32 - OURS,), REFUSE),
        ("tgkill", (OURS, 7, 6), ALLOW),
        ("tgkill", (1, 1, 6), REFUSE),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (1,), REFUSE),
        ("fcntl", (0, 1), ALLOW),
        ("fcntl", (0, 8), REFUSE),  # F_SETOWN
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), REFUSE),  # TIOCSTI
        ("prctl", (15,), ALLOW),
        ("prctl", (1,), REFUSE),  # PR_SET_PDEATHSIG
    ],
)
def test_a_call_is_allowed_refused_or_unknown(judge, call, arguments, action):
    assert judge(call, *arguments) == action


@pytest.mark.parametrize("flags", [0x3D0F00, 0x7D0F00])
def test_threads_may_be_started_where_they_are_meant_and_processes_never(judge, flags):
    assert judge("clone", flags, threads=True) == ALLOW
    assert judge("clone", 0x11, threads=True) == REFUSE  # what fork calls
    assert judge("clone", 0x4111, threads=True) == REFUSE  # vfork
    for namespace in (0x20000, 0x10000000, 0x20000000, 0x40000000):
        assert judge("clone", flags | namespace, threads=True) == REFUSE


def test_a_call_by_another_machines_numbers_kills():
    program = seccomp_filter.compile_filter(seccomp_filter.list_allowed_calls(), "x86_64")
    assert _judged(program, 0x40000003, 20) == KILL  # i386
    assert _judged(program, system_calls.ARCHITECTURES["aarch64"], 63) == KILL
    assert _judged(program, system_calls.ARCHITECTURES["x86_64"], 0x40000000 | 39) == KILL
    program = seccomp_filter.compile_filter(seccomp_filter.list_allowed_calls(), "aarch64")
    assert _judged(program, 0x40000028, 20) == KILL  # ARM of 32 bits


@pytest.mark.parametrize("name", system_calls.ARCHITECTURES)
def test_numbers_are_those_of_the_kernels_headers(name):
    before, header = HEADERS[name]
    source = f"{before}{MORE}#include <{header}>\n"
    try:
        compiler = ["cc", "-E", "-dM", "-x", "c", "-"]
        result = subprocess.run(compiler, input=source, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no C compiler with <{header}>: {error}")
    found = dict(re.findall(r"#define (__NR\w+) (\w+)", result.stdout))

    def number(defined):
        return int(defined) if defined.isdigit() else number(found[defined])

    ours = system_calls.list_call_numbers(name)
    assert len(ours) > 100
    assert {call: number(f"__NR_{call}") for call in ours} == ours


def test_a_machine_that_is_not_known_has_no_sandbox(monkeypatch):
    monkeypatch.setattr(system_calls, "read_machine_name", lambda: "riscv64")
    assert confinement.explain_missing_sandbox() == (
        "the sandbox knows the processors x86_64 and aarch64, this is riscv64"
    )
    monkeypatch.setattr("sys.platform", "darwin")
    assert confinement.explain_missing_sandbox() == "the sandbox needs Linux, this is darwin"


def _refusing(number):
    def call(asked, *arguments):
        if asked == number:
            raise OSError(errno.ENOSYS, "")
        return 7

    return call


def test_a_kernel_with_an_old_landlock_or_none_or_without_filters_has_no_sandbox(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(landlock, "read_landlock_version", lambda: 3)
        assert "version 3, needed is 4 (Linux 6.7)" in confinement.explain_missing_sandbox()
    monkeypatch.setattr(system_calls, "call_kernel", _refusing(444))
    assert (
        "has no Landlock, or it is off (Function not implemented)"
        in confinement.explain_missing_sandbox()
    )
    monkeypatch.setattr(
        system_calls, "call_kernel", _refusing(system_calls.find_call_number("seccomp"))
    )
    assert "has no seccomp filters" in confinement.explain_missing_sandbox()


def test_no_folder_in_which_a_command_was_started_is_a_library(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    home, installed = tmp_path / "home", tmp_path / "dist-packages"
    for folder in (home, installed):
        folder.mkdir()
    monkeypatch.setattr("sys.path", ["", str(home), str(installed)])
    found = confinement.list_libraries()
    assert found[0] == installed
    assert not {Path(), home, tmp_path}.intersection(found)
