"""Whether a server that does not answer is still there."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import structlog

log = structlog.get_logger()

_PAUSE_SECONDS = 0.3  # between two questions to a server that was silent


class Server:
    """A server of which many threads want something. Who has waited for `patience` seconds asks
    whether it `answers`, which is found out once for all of them. One that is silent is asked on in
    the background, and whoever wants something of it meanwhile need not wait.
    """

    def __init__(self, name: str, patience: float, ask: Callable[[], None]) -> None:
        """`ask` raises OSError unless the server answers, within a second."""
        self.patience = patience
        self.is_silent = False
        self._name = name
        self._ask = ask
        self._lock = threading.Lock()
        self._asking: Future[bool] | None = None

    def answers(self) -> bool:
        with self._lock:
            if self.is_silent:
                return False
            asking = self._asking
            if asking is None:
                asking = self._asking = Future()
                threading.Thread(target=self._find_out, args=(asking,), daemon=True).start()
        return asking.result()

    def _find_out(self, asking: "Future[bool]") -> None:
        found = self._is_there()
        with self._lock:
            self.is_silent, self._asking = not found, None
        asking.set_result(found)
        if found:
            return
        log.error("a server is silent", server=self._name)
        while not self._is_there():
            time.sleep(_PAUSE_SECONDS)
        self.is_silent = False
        log.info("a server answers again", server=self._name)

    def _is_there(self) -> bool:
        try:
            self._ask()
        except OSError:
            return False
        return True
