"""Runs works: leases one, has the warm child do it, records how it ended.

The lease is extended every second; a lease that is no longer ours (canceled, or given to another
after we fell silent) ends the child. So do the deadline and the memory limit. A worker that is
asked to stop hands its work back.
"""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from service.contract.queueing import Queues
from service.contract.records import Lease, Records
from workers.resident import Answer, Child, Gone, Progress

log = structlog.get_logger()

BEAT_SECONDS = 1.0
POLL_SECONDS = 0.25
RECYCLE_AFTER = 500  # works that one child does: what leaks in libraries goes with it
GRACE_SECONDS = 2.0  # a work that is about to end may, when the worker is asked to stop


@dataclass(frozen=True)
class Limits:
    memory_bytes: int | None = None


class Runner:
    def __init__(
        self,
        records: Records,
        queues: Queues,
        role: str,
        child_settings: Mapping[str, str],
        limits: Limits = Limits(),
    ) -> None:
        self.name = f"{role}@{socket.gethostname()}:{os.getpid()}"
        self._records = records
        self._queues = queues
        self._role = role
        self._settings = child_settings
        self._limits = limits
        self._child: Child | None = None
        self._done = 0
        self._stop_asked: float | None = None

    def warm_up(self) -> None:
        """Starts the child before the first work comes."""
        if self._child is None:
            self._child = Child(self._role, self._settings)
            self._done = 0

    def run(self, key: str) -> None:
        lease = self._records.lease(key, self.name)
        if lease is None:
            return
        log.info("begin", kind=lease.kind, key=key, attempt=lease.attempt)
        self.warm_up()
        assert self._child is not None
        try:
            self._attempt(lease, self._child)
        except Gone:
            how, words = self._child.end(), self._child.last_words[-2000:]
            self._child = None
            log.warning("child lost", kind=lease.kind, key=key, how=how, last_words=words)
            self._fail(lease, "worker_lost", how, death=True, retry=True)
        except BaseException:  # an interrupt, or a database that is away: nothing may stay running
            self._kill()
            self._records.hand_back(lease)
            raise
        self._done += 1
        if self._done >= RECYCLE_AFTER:
            self.close()
        self._queues.flush(self._records)

    def ask_to_stop(self) -> None:
        self._stop_asked = self._stop_asked or time.monotonic()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _attempt(self, lease: Lease, child: Child) -> None:
        child.send(
            {
                "kind": lease.kind,
                "inputs": dict(lease.inputs),
                "parts": list(lease.parts),
                "parameters": dict(lease.parameters),
            }
        )
        progress = Progress(0, 0)
        beaten = time.monotonic()
        while True:
            message = child.receive(POLL_SECONDS)
            if isinstance(message, Progress):
                progress = message
            elif isinstance(message, Answer):
                self._settle(lease, message.content)
                return
            if time.monotonic() - beaten > BEAT_SECONDS:
                beaten = time.monotonic()
                if not self._records.beat(lease, progress.done, progress.total):
                    log.info("no longer ours", kind=lease.kind, key=lease.key)
                    self._kill()
                    return
            if self._is_over(lease, child):
                return

    def _is_over(self, lease: Lease, child: Child) -> bool:
        """Late, too large, or the worker shall stop: the child ends, and why is recorded."""
        if time.time() > lease.deadline:
            self._kill()
            self._fail(lease, "timeout", "the work's deadline passed", death=False, retry=False)
            return True
        limit = self._limits.memory_bytes
        if limit is not None and child.memory() > limit:
            self._kill()
            detail = (
                f"the work took {child.peak_bytes / 1e6:.0f} MB, the limit is {limit / 1e6:.0f} MB"
            )
            self._fail(lease, "out_of_memory", detail, death=False, retry=False)
            return True
        if self._stop_asked and time.monotonic() - self._stop_asked > GRACE_SECONDS:
            self._kill()
            self._records.hand_back(lease)
            return True
        return False

    def _settle(self, lease: Lease, answer: Mapping[str, Any]) -> None:
        if "result" in answer:
            kept = self._records.finish(lease, answer["result"], answer["summary"])
            log.info("end", kind=lease.kind, key=lease.key, attempt=lease.attempt, recorded=kept)
        elif "damaged" in answer:
            log.warning("damaged input", kind=lease.kind, key=lease.key, digest=answer["damaged"])
            if not self._records.recompute(lease, answer["damaged"]):
                detail = f"{answer['detail']}; upload it again"
                self._fail(lease, "blob_missing", detail, death=False, retry=False)
        else:
            error = answer["error"]
            retry = error["code"] in ("internal", "java_failed")
            self._fail(lease, error["code"], error["detail"], death=False, retry=retry)

    def _fail(self, lease: Lease, code: str, detail: str, *, death: bool, retry: bool) -> None:
        log.warning("failed", kind=lease.kind, key=lease.key, code=code, detail=detail)
        error = {"code": code, "detail": detail}
        self._records.fail(lease, error, death=death, retry=retry)

    def _kill(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
