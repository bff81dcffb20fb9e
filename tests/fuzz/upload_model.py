"""What an upload is, as the two standards say: the oracle of tests/fuzz/uploads.py."""

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
    length: int | None
    received: int = 0
    state: str = "open"  # "complete", "refused", "deleted"
    cut: int = field(default=0)  # requests that were cut off, for who reads a story

    @property
    def data(self) -> bytes:
        return self.file.data

    def refusal(self, offset: int, size: int, last: bool | None) -> int | None:
        """The status by which a request is refused for its header alone; None: it is read.
        `last`: None in tus.
        """
        ended = {"deleted": 404, "refused": 410, "complete": 409}
        if self.state in ended:
            return ended[self.state]
        if offset != self.received:
            return 409
        told = {self.length} - {None} | ({offset + size} if last else set())
        if len(told) > 1:
            return 422
        length = next(iter(told), None)
        if length is not None and offset + size > length:
            return 413
        self.length = length
        return None

    def arrived(self, size: int) -> bool:
        """Bytes have come; whether they show that the file is refused."""
        self.received += size
        if self.data == WRONG and self.received >= JUDGED_AT:
            self.state = "refused"
        return self.state == "refused"

    def appended(self, offset: int, size: int, last: bool | None) -> int:
        """The status of an answer to a whole request, after the change that it tells."""
        if self.state == "complete" and last is None and size == 0 and offset == self.received:
            return 204  # for who has not heard the answer to the last bytes
        refused = self.refusal(offset, size, last)
        if refused is not None:
            return refused
        is_last = self.received + size == self.length if last is None else last
        if self.arrived(size):
            return 422
        if not is_last:
            return 204
        if self.received < len(self.data) or not self.file.is_right:
            self.state = "refused"
            return 422
        self.state = "complete"
        if last is None:
            return 204
        return 200 if self.file.is_known else 201
