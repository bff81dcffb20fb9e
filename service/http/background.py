"""What goes on beside requests, as long as the application runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let a coroutine go on until the end of the block."""
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
