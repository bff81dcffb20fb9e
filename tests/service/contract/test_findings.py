"""Probes: all at once, each with its time, and nothing that breaks breaks the rest."""

import threading
import time

from service.contract import findings
from service.contract.findings import DoctorCheck, Finding


def _fail():
    raise RuntimeError("a line\nand another")


def _find(name):
    yield Finding(name, "ok", "there")


def test_each_finding_is_told_when_it_is_there_and_all_come_in_the_order_of_their_probes():
    told, may_end = [], threading.Event()

    def slow():
        may_end.wait(10)
        yield from _find("slow")

    def tell(finding):
        told.append(finding.name)
        if finding.name == "quick":
            may_end.set()

    probes = [
        DoctorCheck("slow", slow),
        DoctorCheck("quick", lambda: _find("quick")),
        DoctorCheck("Java", _fail),
    ]
    found = findings.run_checks(probes, tell)
    assert [finding.name for finding in found] == ["slow", "quick", "Java"]
    assert told.index("quick") < told.index("slow")
    assert sorted(told) == ["Java", "quick", "slow"]


def test_what_fails_is_a_finding_with_its_reason_and_advice():
    (found,) = findings.run_checks([DoctorCheck("Java", _fail, "install it", needed=False)])
    expected = "RuntimeError: a line and another"
    assert found == Finding("Java", "unavailable", expected, "install it", needed=False)


def test_what_hangs_is_left_behind_with_what_it_had_found():
    never = threading.Event()

    def hang():
        yield from _find("torch")
        never.wait(30)

    told = []
    probes = [DoctorCheck("torch", hang, seconds=0.2), DoctorCheck("disk", lambda: _find("disk"))]
    began = time.monotonic()
    found = findings.run_checks(probes, told.append)
    assert time.monotonic() - began < 5
    assert found[1] in told
    assert [finding.found for finding in found] == ["there", "gave no answer within 0.2 s", "there"]
    assert found[1].needed
    never.set()


def test_of_a_long_error_beginning_and_end_are_kept():
    text = findings.describe_error(ValueError("begin" + 5000 * "x" + "end"))
    assert text.startswith("ValueError: begin")
    assert text.endswith("end")
    assert len(text) < 500
