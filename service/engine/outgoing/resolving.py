"""From a place to the addresses that may be connected to; no connection is made."""

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from queue import Empty, SimpleQueue

from service.contract.errors import UrlFailed, UrlRefused
from service.engine.outgoing.addresses import AddressStanding, standing
from service.engine.outgoing.places import Place

Resolve = Callable[[str, int], Sequence[str]]  # host and port; OSError where there is none
_AT_ONCE = threading.BoundedSemaphore(16)  # lookups: one that hangs cannot be ended


def by_system(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def addresses(place: Place, resolve: Resolve, seconds: float) -> Sequence[str]:
    """The addresses of a place, if all of them may be connected to; else UrlRefused.

    Which of them may not is not told: it would show the names inside to who is outside.
    """
    found = _looked_up(place, resolve, seconds)
    allowed = (
        {AddressStanding.PUBLIC, AddressStanding.INTERNAL}
        if place.named
        else {AddressStanding.PUBLIC}
    )
    if not found or any(_standing(text) not in allowed for text in found):
        raise UrlRefused(
            f"{place.host} has an address that is not public; an operator may name hosts inside in "
            "PRESCORE_OUTGOING_ALLOW"
        )
    return found


def _standing(text: str) -> AddressStanding:
    try:
        return standing(text)
    except ValueError:  # not an address, whatever it is
        return AddressStanding.NEVER


def _looked_up(place: Place, resolve: Resolve, seconds: float) -> Sequence[str]:
    """Within so many seconds; the system's own lookup may take minutes."""
    try:
        return [str(ip_address(place.host))]
    except ValueError:
        pass
    answer: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

    def look_up() -> None:
        with _AT_ONCE:
            try:
                answer.put(resolve(place.host, place.port))
            except (OSError, UnicodeError) as error:
                answer.put(error if isinstance(error, OSError) else OSError(str(error)))

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = answer.get(timeout=max(seconds, 0.0))
    except Empty:
        raise UrlFailed(f"the name {place.host} was not found in time") from None
    if isinstance(found, OSError):
        raise UrlFailed(f"the name {place.host} was not found")
    return found
