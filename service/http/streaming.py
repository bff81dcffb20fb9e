"""Answers that are made while they are sent: little of them is in memory, and few are made at once,
so that a long one delays no other request.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

_CHUNK = 1 << 17  # bytes that are made in one go
_AT_ONCE = asyncio.Semaphore(2)


async def paced(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        async with _AT_ONCE:
            chunk = await asyncio.to_thread(_made, pieces)
        if not chunk:
            return
        yield chunk


def _made(pieces: Iterator[bytes]) -> bytes:
    made = bytearray()
    for piece in pieces:
        made += piece
        if len(made) >= _CHUNK:
            break
    return bytes(made)
