"""Limits of what is done at a time, where several event loops of one process wait for them."""

import asyncio
import contextlib

from service.http.loop_limits import LoopLimit


def test_each_loop_of_a_process_has_its_own_limit():
    limit = LoopLimit(2)
    at_once: list[int] = []

    async def enter(inside: set[int], number: int) -> None:
        async with limit:
            inside.add(number)
            at_once.append(len(inside))
            await asyncio.sleep(0)
            inside.remove(number)

    async def enter_all() -> None:
        inside: set[int] = set()
        await asyncio.gather(*(enter(inside, number) for number in range(6)))
        assert not limit.locked()

    for _ in "12":
        asyncio.run(enter_all())
    assert (max(at_once), len(at_once)) == (2, 12)


def test_a_limit_is_left_after_an_error():
    limit = LoopLimit(1)

    async def fail_twice() -> None:
        for _ in "12":
            with contextlib.suppress(ZeroDivisionError):
                async with limit:
                    print(1 / len(""))

    asyncio.run(fail_twice())
