"""The client for programs with asyncio: the calls of `Client` in worker threads."""

import math
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import ExitStack, suppress
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.lowlevel import current_token

from prescore.client.client import PATIENCE_SECONDS, Client, ServiceCalls, resolve_address
from prescore.client.lists import AsyncBoard, AsyncListing, InThread
from prescore.http.transport import Transport
from prescore.models import Event

CALLS_AT_ONCE = 100  # each in a thread, with a connection; more wait for their turn
WAITING = frozenset(  # calls that may take as long as a run: they hold up no others
    {"wait", "events", "compare", "compute_study", "compute_probes", "train_learned"}
)

L = TypeVar("L")
N = TypeVar("N")
P = ParamSpec("P")
T = TypeVar("T")


def _make_awaitable(
    method: Callable[Concatenate[ServiceCalls, P], T],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """The method in a worker thread, to be awaited."""

    @wraps(method)
    async def call(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        calls, in_thread = self._thread(method.__name__)
        given: Any = map(_call_in_loop, args)
        named: Any = {name: _call_in_loop(argument) for name, argument in kwargs.items()}
        answer: T = await in_thread(partial(method, calls, *given, **named))
        return answer

    return call


def _make_iterable(
    wrap: Callable[[L, InThread], N], method: Callable[Concatenate[ServiceCalls, P], L]
) -> Callable[Concatenate["AsyncClient", P], N]:
    """The method, with an answer whose parts are awaited in worker threads."""

    @wraps(method)
    def call(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> N:
        calls, in_thread = self._thread(method.__name__)
        return wrap(method(calls, *args, **kwargs), in_thread)

    return call


async def _iterate_events(
    events: Generator[Event, None, None], in_thread: InThread
) -> AsyncGenerator[Event, None]:
    try:
        while (event := await in_thread(partial(next, events, None))) is not None:
            yield event
    finally:
        with suppress(ValueError):  # a thread that is still ending closes them
            events.close()


class AsyncClient:
    """Talks to a Prescore service, for programs with asyncio.

        async with prescore.AsyncClient() as client:
            digest = await client.upload_checkpoint("epoch-08.safetensors")
            evaluation = await client.submit("flickr8k/test", checkpoint=digest)
            print((await client.wait(evaluation.id)).scores["cider_d"].value)
            async for standing in client.leaderboard("flickr8k/test"):
                print(standing.rank, standing.evaluation)

    Its methods are those of `Client`: what answers once is awaited, lists and events are iterated
    with `async for`. Many calls may be under way at the same time, each in a thread of its own;
    callbacks are called in the event loop. A task that is canceled ends its request.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        here: bool | str | Path = False,
    ) -> None:
        self._service = ExitStack()
        self._transport = Transport(resolve_address(self._service, url, key, patience, here=here))
        self._turns = anyio.CapacityLimiter(CALLS_AT_ONCE)
        self._no_turns = anyio.CapacityLimiter(math.inf)

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._transport.close()
        await to_thread.run_sync(self._service.close)

    @property
    def url(self) -> str:
        return self._transport.url

    def _thread(self, name: str) -> tuple[ServiceCalls, InThread]:
        """Calls, and how they are made in worker threads, which end when the task is canceled."""
        transport = self._transport.branch()
        limiter = self._no_turns if name in WAITING else self._turns

        async def in_thread(call: Callable[[], Any]) -> Any:
            try:
                return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
            except BaseException:
                transport.stop()
                raise

        return ServiceCalls(transport), in_thread

    submit = _make_awaitable(Client.submit)
    evaluation = _make_awaitable(Client.evaluation)
    evaluations = _make_iterable(AsyncListing, Client.evaluations)
    wait = _make_awaitable(Client.wait)
    events = _make_iterable(_iterate_events, Client.events)
    cancel = _make_awaitable(Client.cancel)
    change = _make_awaitable(Client.change)
    delete_evaluation = _make_awaitable(Client.delete_evaluation)
    pregen = _make_awaitable(Client.pregen)
    captions = _make_iterable(AsyncListing, Client.captions)
    captions_csv = _make_awaitable(Client.captions_csv)
    captions_coco = _make_awaitable(Client.captions_coco)
    drops = _make_awaitable(Client.drops)
    tokens = _make_awaitable(Client.tokens)
    inspect_captions = _make_awaitable(Client.inspect_captions)
    metrics = _make_awaitable(Client.metrics)

    upload_checkpoint = _make_awaitable(Client.upload_checkpoint)
    has_checkpoint = _make_awaitable(Client.has_checkpoint)
    checkpoint = _make_awaitable(Client.checkpoint)
    delete_checkpoint = _make_awaitable(Client.delete_checkpoint)
    upload_columns = _make_awaitable(Client.upload_columns)
    has_columns = _make_awaitable(Client.has_columns)
    columns = _make_awaitable(Client.columns)
    delete_columns = _make_awaitable(Client.delete_columns)
    add_dataset = _make_awaitable(Client.add_dataset)
    add_pictures = _make_awaitable(Client.add_pictures)
    fetch_dataset = _make_awaitable(Client.fetch_dataset)
    show_pictures = _make_awaitable(Client.show_pictures)
    image = _make_awaitable(Client.image)
    references = _make_awaitable(Client.references)
    datasets = _make_iterable(AsyncListing, Client.datasets)
    dataset = _make_awaitable(Client.dataset)
    fetch_captions = _make_awaitable(Client.fetch_captions)
    delete_dataset = _make_awaitable(Client.delete_dataset)

    leaderboard = _make_iterable(AsyncBoard, Client.leaderboard)
    history = _make_iterable(AsyncBoard, Client.history)
    compare = _make_awaitable(Client.compare)
    comparison = _make_awaitable(Client.comparison)
    comparisons = _make_iterable(AsyncListing, Client.comparisons)
    compared_images = _make_iterable(AsyncListing, Client.compared_images)
    exchanged_words = _make_awaitable(Client.exchanged_words)
    correlations = _make_awaitable(Client.correlations)
    signal = _make_awaitable(Client.signal)
    rank = _make_awaitable(Client.rank)
    attention = _make_iterable(AsyncListing, Client.attention)
    captioner_trainings = _make_iterable(AsyncListing, Client.captioner_trainings)
    compute_study = _make_awaitable(Client.compute_study)
    study = _make_awaitable(Client.study)
    studies = _make_iterable(AsyncListing, Client.studies)
    health = _make_awaitable(Client.health)
    latest_probes = _make_awaitable(Client.latest_probes)
    compute_probes = _make_awaitable(Client.compute_probes)
    probe = _make_awaitable(Client.probe)
    probes = _make_iterable(AsyncListing, Client.probes)
    train_learned = _make_awaitable(Client.train_learned)
    training = _make_awaitable(Client.training)
    trainings = _make_iterable(AsyncListing, Client.trainings)
    fetch_model = _make_awaitable(Client.fetch_model)

    make_webhook = _make_awaitable(Client.make_webhook)
    webhooks = _make_iterable(AsyncListing, Client.webhooks)
    webhook = _make_awaitable(Client.webhook)
    rotate_webhook = _make_awaitable(Client.rotate_webhook)
    test_webhook = _make_awaitable(Client.test_webhook)
    delete_webhook = _make_awaitable(Client.delete_webhook)
    me = _make_awaitable(Client.me)
    keys = _make_iterable(AsyncListing, Client.keys)
    labels = _make_awaitable(Client.labels)
    audit = _make_iterable(AsyncListing, Client.audit)
    search = _make_awaitable(Client.search)
    queues = _make_awaitable(Client.queues)
    workers = _make_awaitable(Client.workers)


def _call_in_loop(argument: object) -> object:
    """An argument; a callback is called in the event loop, whichever thread has news for it."""
    if not callable(argument):
        return argument
    return partial(from_thread.run_sync, argument, token=current_token())
