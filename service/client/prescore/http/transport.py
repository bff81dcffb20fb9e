"""Performs steps: sends all requests of `Client`."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeVar

import httpx

from prescore.errors import PrescoreClientError
from prescore.http import answers, bounds
from prescore.http.addresses import Address, arguments
from prescore.http.steps import Course, Do, End, Item, Open, Read, Request, Send, Sleep, Steps

T = TypeVar("T")


class Transport:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._http = httpx.Client(**address.connecting)

    def close(self) -> None:
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        with closing(Course(steps)) as course, closing(_Stream(self)) as stream:
            result: T = self._until_item(course, stream).value
            return result

    def iterate(self, steps: Steps[None]) -> Iterator[Any]:
        with closing(Course(steps)) as course, closing(_Stream(self)) as stream:
            while isinstance(found := self._until_item(course, stream), Item):
                yield found.value

    def _until_item(self, course: Course, stream: "_Stream") -> Item | End:
        while not isinstance(step := course.next(), Item | End):
            try:
                course.succeeded(self._performed(step, stream))
            except PrescoreClientError as error:
                course.failed(error)
        return step

    def _performed(self, step: Send | Open | Read | Sleep | Do, stream: "_Stream") -> object:
        match step:
            case Send():
                return self._whole(step)
            case Open():
                return stream.open(step)
            case Read():
                return stream.read()
            case Sleep():
                time.sleep(step.seconds)
                return None
            case Do():
                return step.work()

    def _whole(self, step: Send) -> httpx.Response:
        with self.answer(step.request) as response:
            return answers.whole(response, _body(response, step.most))

    @contextmanager
    def answer(self, request: Request) -> Iterator[httpx.Response]:
        """An answer that is right, without its body."""
        body = request.body if isinstance(request.body, bytes) else request.body()
        with self.address.translated():
            built = self._http.build_request(**arguments(request), content=body)
            response = self._http.send(built, stream=True)
            with closing(response):
                if not answers.is_right(response):
                    raise answers.refusal(_told(response))
                yield response


class _Stream:
    """The answer whose body is read piece by piece."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._opened = ExitStack()
        self._pieces: Iterator[bytes] = iter(())

    def open(self, step: Open) -> httpx.Response:
        self.close()
        response = self._opened.enter_context(self._transport.answer(step.request))
        self._pieces = _pieces(response, step.most)
        return response

    def read(self) -> bytes | None:
        with self._transport.address.translated():
            return next(self._pieces, None)

    def close(self) -> None:
        self._opened.close()


def _told(response: httpx.Response) -> httpx.Response:
    """A refusal with its body; without one that is too long."""
    try:
        return answers.whole(response, _body(response, bounds.ERROR_BYTES))
    except bounds.TooMuch:
        return answers.whole(response, b"")


def _body(response: httpx.Response, most: int) -> bytes:
    body = bounds.Body()
    for piece in _pieces(response, most):
        body.add(piece)
    return body.content


def _pieces(response: httpx.Response, most: float) -> Iterator[bytes]:
    unpacking = bounds.Unpacking(response, most)
    for chunk in response.iter_raw():
        yield from unpacking.pieces(chunk)
    yield from unpacking.rest()
