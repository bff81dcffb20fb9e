"""T51: what a hostile child tries, and which mechanisms of the sandbox stop it.

The table has, for each attempt, every mechanism that stops it and the error that the child sees
then. It holds in both directions: with this mechanism alone the attempt fails; with none of them,
and with any that is not named, it succeeds. So it says what would be open if one were left out.
"""

import os
from pathlib import Path

import pytest

from helpers.sandbox_surroundings import surroundings
from service.kernel import landlock
from service.kernel.confinement import MECHANISMS

pytestmark = pytest.mark.processes

NO, SHUT = "EPERM", "EACCES"
ROOT = os.geteuid() == 0
STOPPED_BY = {
    "connect by TCP": {"landlock": SHUT, "seccomp": NO},
    "serve by TCP": {"landlock": SHUT, "seccomp": NO},
    "send by UDP": {"seccomp": NO},
    "open a raw socket": {"seccomp": NO, "privileges": NO},
    "open a netlink socket": {"seccomp": NO},
    "connect to Redis by its file": {"seccomp": NO},
    "send to a socket by its file": {"seccomp": NO},
    "connect to an abstract socket": {"landlock": NO, "seccomp": NO},
    "read the record": {"landlock": SHUT},
    "read the record by another way": {"landlock": SHUT},
    "write the record": {"landlock": SHUT},
    "cut off the record": {"landlock": SHUT, "seccomp": NO},
    "list the home": {"landlock": SHUT},
    "make a file": {"landlock": SHUT},
    "make a folder": {"landlock": SHUT, "seccomp": NO},
    "make a link": {"landlock": SHUT, "seccomp": NO},
    "make a second name": {"landlock": SHUT, "seccomp": NO},
    "make a pipe": {"landlock": SHUT, "seccomp": NO},
    "delete a file": {"landlock": SHUT, "seccomp": NO},
    "rename a file": {"landlock": SHUT, "seccomp": NO},
    "change the mode of the record": {"seccomp": NO},
    "change the times of the record": {"seccomp": NO},
    "mark the record": {"seccomp": NO},
    "write the input": {"landlock": SHUT},
    "write beside the output": {"landlock": SHUT},
    "read /etc": {"landlock": SHUT},
    "read the passwords": {"landlock": SHUT},
    "read what is connected": {"landlock": SHUT},
    "read what is connected by another way": {"landlock": SHUT},
    "list other processes": {"landlock": SHUT},
    "read the parent's memory": {"landlock": SHUT, "privileges": SHUT},
    "read the parent's environment": {"landlock": SHUT, "privileges": SHUT},
    "read the parent's command": {"landlock": SHUT},
    "read the parent's memory by a call": {"landlock": NO, "seccomp": NO, "privileges": NO},
    "trace the parent": {"landlock": NO, "seccomp": NO, "privileges": NO},
    "signal the parent": {"landlock": NO, "seccomp": NO},
    "let the kernel signal the parent": {"seccomp": NO},
    "limit the parent": {"seccomp": NO},
    "bind the parent to a core": {"seccomp": NO, "privileges": NO},
    "slow the parent": {"seccomp": NO, "privileges": NO},
    "hold the parent": {"seccomp": NO},
    "outlive the parent": {"seccomp": NO},
    "fork": {"seccomp": NO},
    "start a thread": {"seccomp": "RuntimeError"},
    "run a program": {"landlock": SHUT, "seccomp": NO},
    "make a program in memory": {"seccomp": NO},
    "allocate 8 GB": {"limits": "ENOMEM"},
    "write 100 GB": {"limits": "EFBIG"},
    "open 500 files": {"limits": "EMFILE"},
    "io_uring": {"seccomp": NO},
    "mount": {"landlock": NO, "seccomp": NO, "privileges": NO},
    "chroot": {"seccomp": NO, "privileges": NO},
    "become root of a namespace": {"seccomp": NO},
    "load a filter into the kernel": {"seccomp": NO},
    "measure the kernel": {"seccomp": NO},
    "stop the kernel at a page": {"seccomp": NO},
    "hold a key": {"seccomp": NO},
    "share memory": {"seccomp": NO},
    "watch files": {"seccomp": NO},
    "call what is newer": {"seccomp": "ENOSYS"},
}
SCOPED = ("connect to an abstract socket", "signal the parent")  # by later versions of Landlock


@pytest.fixture(scope="module")
def found(hostile, tmp_path_factory):
    """The end of each attempt: with all mechanisms, with none, and with each one alone."""
    several = {"all": frozenset(), "none": MECHANISMS}
    several |= {name: MECHANISMS - {name} for name in MECHANISMS}
    answers = {}
    for name, without in several.items():
        folder = tmp_path_factory.mktemp(name)
        with surroundings(folder) as given:
            files = {"inputs": [folder / "input"], "outputs": [Path(given["output"])]}
            answers[name] = hostile("attack", given, **files, without=without)
    return answers


def test_every_attempt_is_in_the_table(found):
    assert set(found["all"]) == set(STOPPED_BY)


@pytest.mark.parametrize("attempt", STOPPED_BY)
def test_the_sandbox_stops_it_and_so_does_each_named_mechanism_alone_and_no_other(found, attempt):
    assert found["all"][attempt] in STOPPED_BY[attempt].values()
    if found["none"][attempt] != "reached":
        pytest.skip(f"this machine or user may not do it anyway: {found['none'][attempt]}")
    stops = {name: found[name][attempt] for name in MECHANISMS}
    named = dict(STOPPED_BY[attempt])
    if attempt in SCOPED and landlock.read_landlock_version() < 6:
        del named["landlock"]
    if not ROOT:  # has no privileges to give up
        named.pop("privileges", None)
        if attempt == "io_uring":  # counts as locked memory
            named["limits"] = "ENOMEM"
    assert {name: how for name, how in stops.items() if how != "reached"} == named


@pytest.mark.skipif(not ROOT, reason="only root may try all of it")
def test_with_no_mechanism_everything_is_reached(found):
    assert {name for name, how in found["none"].items() if how != "reached"} == set()
