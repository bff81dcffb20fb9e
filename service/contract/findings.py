"""Findings of `prescore doctor`: checks that run at once, each with a time limit."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "warning", "unavailable"]
_HALF = 200  # characters of a long error that are kept at its beginning and at its end


@dataclass(frozen=True)
class Finding:
    """Result of a check. `needed`: `prescore serve` does not work without it."""

    name: str
    status: Status
    found: str
    advice: str = ""
    needed: bool = False


@dataclass(frozen=True)
class DoctorCheck:
    """One check; `advice` and `needed` are used if it fails or takes more than `seconds`."""

    name: str
    find: Callable[[], Iterable[Finding]]
    advice: str = ""
    needed: bool = True
    seconds: float = 5.0


FindingListener = Callable[[Finding], None]


def ignore_finding(finding: Finding) -> None:
    """Ignore a finding."""


def run_checks(
    probes: Sequence[DoctorCheck], told: FindingListener = ignore_finding
) -> list[Finding]:
    """Run all probes at the same time; their findings in order. A probe that hangs is given up.
    `told` gets each finding when it is there, from the probes' threads.
    """
    began = time.monotonic()
    running = [_RunningCheck(probe, told) for probe in probes]
    return [finding for each in running for finding in each.wait(began)]


def describe_error(error: BaseException) -> str:
    """An error as one short sentence."""
    text = " ".join(str(error).split())
    if len(text) > 2 * _HALF:
        text = f"{text[:_HALF]} … {text[-_HALF:]}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass
class _RunningCheck:
    probe: DoctorCheck
    told: FindingListener
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, began: float) -> list[Finding]:
        self._thread.join(max(0.0, began + self.probe.seconds - time.monotonic()))
        if self._thread.is_alive():
            late = self._without(f"gave no answer within {self.probe.seconds:g} s")
            self.told(late)
            return [*self.findings, late]
        return self.findings

    def _run(self) -> None:
        try:
            for finding in self.probe.find():
                self._found(finding)
        except BaseException as error:  # noqa: BLE001  every error is a finding
            self._found(self._without(describe_error(error)))

    def _found(self, finding: Finding) -> None:
        self.findings.append(finding)
        self.told(finding)

    def _without(self, reason: str) -> Finding:
        probe = self.probe
        return Finding(probe.name, "unavailable", reason, probe.advice, probe.needed)
