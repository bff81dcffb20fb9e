"""Awaits steps: sends all requests of `AsyncClient`. What `transport` does, with asyncio."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from typing import Any, Self, TypeVar

import httpx

from prescore.errors import PrescoreClientError
from prescore.http import answers, bounds
from prescore.http.addresses import Address, arguments
from prescore.http.steps import Course, Do, End, Item, Open, Read, Request, Send, Sleep, Steps

T = TypeVar("T")


class AsyncTransport:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._http = httpx.AsyncClient(**address.connecting)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        async with _Stream(self) as stream:
            with closing(Course(steps)) as course:
                result: T = (await self._until_item(course, stream)).value
                return result

    async def iterate(self, steps: Steps[None]) -> AsyncIterator[Any]:
        async with _Stream(self) as stream:
            with closing(Course(steps)) as course:
                while isinstance(found := await self._until_item(course, stream), Item):
                    yield found.value

    async def _until_item(self, course: Course, stream: "_Stream") -> Item | End:
        while not isinstance(step := course.next(), Item | End):
            try:
                course.succeeded(await self._performed(step, stream))
            except PrescoreClientError as error:
                course.failed(error)
        return step

    async def _performed(self, step: Send | Open | Read | Sleep | Do, stream: "_Stream") -> object:
        match step:
            case Send():
                return await self._whole(step)
            case Open():
                return await stream.open(step)
            case Read():
                return await stream.read()
            case Sleep():
                await asyncio.sleep(step.seconds)
                return None
            case Do():
                return await asyncio.to_thread(step.work)

    async def _whole(self, step: Send) -> httpx.Response:
        async with self.answer(step.request) as response:
            return answers.whole(response, await _body(response, step.most))

    @asynccontextmanager
    async def answer(self, request: Request) -> AsyncIterator[httpx.Response]:
        """An answer that is right, without its body."""
        body = request.body if isinstance(request.body, bytes) else _each(request.body())
        with self.address.translated():
            built = self._http.build_request(**arguments(request), content=body)
            response = await self._http.send(built, stream=True)
            async with aclosing(response):
                if not answers.is_right(response):
                    raise answers.refusal(await _told(response))
                yield response


class _Stream:
    """The answer whose body is read piece by piece."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def open(self, step: Open) -> httpx.Response:
        await self._opened.aclose()
        answer = self._transport.answer(step.request)
        response = await self._opened.enter_async_context(answer)
        self._pieces = _pieces(response, step.most)
        return response

    async def read(self) -> bytes | None:
        with self._transport.address.translated():
            return await anext(self._pieces, None)


async def _told(response: httpx.Response) -> httpx.Response:
    """A refusal with its body; without one that is too long."""
    try:
        return answers.whole(response, await _body(response, bounds.ERROR_BYTES))
    except bounds.TooMuch:
        return answers.whole(response, b"")


async def _body(response: httpx.Response, most: int) -> bytes:
    body = bounds.Body()
    async for piece in _pieces(response, most):
        body.add(piece)
    return body.content


async def _pieces(response: httpx.Response, most: float) -> AsyncIterator[bytes]:
    unpacking = bounds.Unpacking(response, most)
    async for chunk in response.aiter_raw():
        for piece in unpacking.pieces(chunk):
            yield piece
    for piece in unpacking.rest():
        yield piece


async def _each(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
