"""A real service on this machine for tests: `prescore serve` in its own folder."""

import base64
import contextlib
import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import httpx
import numpy as np
import psutil
import redis
from numpy.typing import NDArray
from obstore.store import S3Store

from helpers import interface
from helpers.builders import ENCODER, model, tensors
from helpers.tars import packed
from helpers.waits import free_port, until
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.engine import database
from service.engine.records import Records
from workers.inference import checkpoints, features

ROOT = Path(__file__).resolve().parents[2]
SERVING = Path(__file__).with_name("serving.py")


CERTIFICATES = ssl.create_default_context()  # read once, since it takes 30 ms; no test needs them
TUS = {"Tus-Resumable": "1.0.0"}
LONG = {"beam": 60, "min_words": 900, "max_words": 1000}  # a second for a shard of one image


class Served:
    """What tests use of a service, with or without its own processes."""

    home: Path
    url: str
    key: str | None = None  # with which its clients ask

    def client(self) -> httpx.Client:
        """A client that checks each answer against openapi.json."""
        hooks = {"response": [interface.check]}
        asks = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        named = {"base_url": self.url, "timeout": 60, "verify": CERTIFICATES}
        return httpx.Client(event_hooks=hooks, headers=asks, **named)

    def client_at(self, address: str) -> httpx.Client:
        """A client with an address of its own; its answers are not checked."""
        transport = httpx.HTTPTransport(local_address=address, verify=CERTIFICATES)
        return httpx.Client(base_url=self.url, timeout=60, transport=transport)

    def add_dataset(self, name: str = "tiny", content: bytes | None = None) -> None:
        """Add a dataset, by default of 40 images with random references."""
        with self.client() as client:
            add_dataset(client, name, content)

    def blob_files(self, digest: str) -> list[Path]:
        """The object's files on this machine."""
        name = digest.removeprefix("sha256:")
        return list(self.home.glob(f"*/objects/{name[:2]}/{name[2:]}"))

    def leftovers(self) -> list[Path]:
        """Files that unfinished uploads and attempts have left."""
        return [*self.home.glob("*/uploads/*"), *self.home.glob("attempts/*/*/*")]


class Fleet(Served):
    """Starts and ends the service, and finds its processes by their commands.

    Database, Redis and objects are in `home`, unless the environment names others
    (`outside.parts`).
    """

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self._database = environment.get(
            "PRESCORE_DATABASE_URL", f"sqlite:///{home / 'record.sqlite'}"
        )
        self._redis = environment.get(
            "PRESCORE_REDIS_URL", f"unix://tests@{home / 'redis' / 'socket'}"
        )
        self.embedded = "PRESCORE_REDIS_URL" not in environment
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {"PRESCORE_DEVICE": "cpu", "OMP_NUM_THREADS": "1", **environment}
        self.process: subprocess.Popen[str] | None = None
        self.log = home / "serve.log"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.stands:
            self.stop()

    def start(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(SERVING), "serve", "--home", str(self.home)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                cwd=ROOT,
                env={**os.environ, **self._environment},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self.process.stdout.readline()
        assert self.url in line, (line, self.log.read_text()[-3000:])
        return self

    @property
    def stands(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> float:
        """Stop the service; returns the seconds until the supervisor ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        self.process.stdout.close()
        if "records" in self.__dict__:
            self.records.engine.dispose()
        return time.monotonic() - began

    @property
    def supervisor(self) -> psutil.Process:
        return psutil.Process(self.process.pid)

    def family(self) -> list[psutil.Process]:
        return self.supervisor.children(recursive=True)

    def find(self, *words: str) -> psutil.Process:
        """The process with all these words in its command line; waits if it is starting."""
        return until(lambda: self.running(*words), 10, f"a process that runs {words}")[0]

    def running(self, *words: str) -> list[psutil.Process]:
        """The processes with all these words in their command lines."""
        found = []
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                line = (process.name(), *process.cmdline())
                if all(word in line for word in words):
                    found.append(process)
        return found

    @cached_property
    def records(self) -> Records:
        return Records(database.open_database(self._database))

    @cached_property
    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self._redis)

    @cached_property
    def bucket(self) -> S3Store | None:
        """The store behind PRESCORE_BLOB_URL."""
        url = self._environment.get("PRESCORE_BLOB_URL")
        if url is None:
            return None
        return S3Store.from_url(
            url,
            access_key_id=self._environment["AWS_ACCESS_KEY_ID"],
            secret_access_key=self._environment["AWS_SECRET_ACCESS_KEY"],
            region=self._environment["AWS_REGION"],
            endpoint=self._environment["AWS_ENDPOINT_URL"],
            client_options={"allow_http": True},
        )


def add_dataset(client: httpx.Client, name: str = "tiny", content: bytes | None = None) -> None:
    """Add a dataset, by default of 40 images with random references."""
    answer = client.put(f"/v1/datasets/{name}", content=bundle(40) if content is None else content)
    assert answer.status_code in (200, 201), answer.text


def until_ended(client: httpx.Client, identity: str, seconds: float) -> dict[str, Any]:
    """Wait for an evaluation's end and return it."""

    def over():
        found = client.get(f"/v1/evaluations/{identity}").json()
        return found if found["status"] in ("succeeded", "failed", "canceled") else None

    return until(over, seconds, "the evaluation's end")


def bundle(images: int, words: int = 50, feature_size: int = 5, seed: int = 0) -> bytes:
    """A dataset with random references, as a tar."""
    rng = np.random.default_rng(seed)
    people = {f"{index}.jpg": [_caption(rng, words) for _ in range(3)] for index in range(images)}
    return bundle_of(people, rng.normal(size=(images, feature_size)).astype(np.float32))


def bundle_of(
    people: Mapping[str, Sequence[str]],
    rows: NDArray[np.float32] | None = None,
    training: Sequence[str] = (),
    encoder: FeatureEncoder = ENCODER,
    counts: NDArray[np.integer] | None = None,
) -> bytes:
    """A dataset with given references by image, as a tar; `rows` are its features by `encoder`, if
    any, of so many regions as `counts` says, and `training` the captions of a training split.
    """
    names = list(people)
    items = [
        BundleItem(name, "test", tuple(captions), str(900 + index))
        for index, (name, captions) in enumerate(people.items())
    ]
    items += [BundleItem(f"seen{at}.jpg", "train", (text,)) for at, text in enumerate(training)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        bundles.write_bundle_folder(folder, items)
        if rows is not None:
            features.write_features(folder / bundles.FEATURES, names, rows, encoder, counts)
        return packed({file.name: file.read_bytes() for file in sorted(folder.iterdir())})


def _caption(rng, words: int) -> str:
    return " ".join(f"w{word}" for word in rng.integers(2, words, rng.integers(3, 9)))


def checkpoint(seed: int = 0, encoder: FeatureEncoder = ENCODER, **sizes: int) -> bytes:
    arrays = tensors("merge", "gru", seed=seed, **sizes)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        checkpoints.write_checkpoint(path, model("merge", "gru", arrays, encoder))
        return path.read_bytes()


def write_large_checkpoint(folder: Path, megabytes: int, seed: int) -> Path:
    """A checkpoint of that size; equal but for its last bytes, which the seed decides."""
    whole = folder / f"whole-{megabytes}"
    if not whole.exists():
        words = max(2, 1_000_000 * megabytes // (4 * 3 * 512))  # an embedding, two output weights
        large = tensors("merge", "gru", size=512, words=words)
        checkpoints.write_checkpoint(whole, model("merge", "gru", large))
    path = folder / f"{seed}.safetensors"
    shutil.copyfile(whole, path)
    with path.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(np.float32(seed).tobytes())
    return path


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def upload(client: httpx.Client, data: bytes) -> str:
    answer = client.put(f"/v1/checkpoints/{digest(data)}", content=data)
    assert answer.status_code in (200, 201), answer.text
    return digest(data)


def tus_creation(length: int, **told: str) -> dict[str, str]:
    """The header of a POST that begins an upload; `told`: its metadata."""
    coded = {name: base64.b64encode(text.encode()).decode() for name, text in told.items()}
    metadata = ",".join(f"{name} {code}" for name, code in coded.items())
    return {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}


def tus_part(offset: int) -> dict[str, str]:
    """The header of a PATCH that appends to an upload."""
    kind = {"Content-Type": "application/offset+octet-stream"}
    return {**TUS, **kind, "Upload-Offset": str(offset)}
