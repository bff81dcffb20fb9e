"""An upload as tus 1.0 says: the oracle of tests/fuzz/uploads.py."""

from dataclasses import dataclass, field

JUDGED_AT = 24  # bytes of WRONG: its first eight say that the header has 16 more
WRONG = b"\x10" + bytes(7) + b"not a header of it" * 100


@dataclass(frozen=True)
class File:
    """Bytes that are sent, and what becomes of them: `is_right`, when all of them have come under
    the digest that was told; `is_known`, if the service has stored the same before.
    """

    data: bytes
    is_right: bool = True
    is_known: bool = False
    place: str | None = None  # what it becomes; None where its name is made up by the service


@dataclass
class Model:
    url: str
    file: File
    received: int = 0
    state: str = "open"  # "complete", "refused", "deleted"
    cut: int = field(default=0)  # requests that were cut off, for who reads a story

    @property
    def data(self) -> bytes:
        return self.file.data

    @property
    def length(self) -> int:
        return len(self.data)

    def refusal(self, offset: int, size: int) -> int | None:
        """The status by which a request is refused for its header alone; None: it is read."""
        ended = {"deleted": 404, "refused": 410, "complete": 409}
        if self.state in ended:
            return ended[self.state]
        if offset != self.received:
            return 409
        return 413 if offset + size > self.length else None

    def arrived(self, size: int) -> bool:
        """Bytes have come; whether they show that the file is refused."""
        self.received += size
        if self.data == WRONG and self.received >= JUDGED_AT:
            self.state = "refused"
        return self.state == "refused"

    def appended(self, offset: int, size: int) -> int:
        """The status of an answer to a whole request, after the change that it tells."""
        if self.state == "complete" and size == 0 and offset == self.received:
            return 204  # for who has not heard the answer to the last bytes
        refused = self.refusal(offset, size)
        if refused is not None:
            return refused
        is_last = self.received + size == self.length
        if self.arrived(size):
            return 422
        if not is_last:
            return 204
        if not self.file.is_right:
            self.state = "refused"
            return 422
        self.state = "complete"
        return 204
