"""What all that starts servers needs, and nothing heavy beside it."""

import socket
import time


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(condition, seconds: float, what: str):
    """Wait until `condition()` is true and return it; fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)
