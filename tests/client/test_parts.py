"""Large uploads of the client in parts to the object store, which is real (moto's): cut, stopped,
begun again, and where the store cannot be reached.
"""

import asyncio
import socket
from contextlib import contextmanager, suppress
from threading import Lock, Thread

import pytest

import prescore
from helpers import outside
from helpers.fleet import digest
from helpers.networks import Cut, Network
from prescore.http import upload_parts
from prescore.models.uploads import UploadPart
from service.access import keys
from service.contract.askers import Scope
from service.http.tus import routes
from service.stored import staged_uploads

PART = 1500


@pytest.fixture(autouse=True)
def _in_parts(service, monkeypatch, all_are_large):
    monkeypatch.setenv("PRESCORE_KEY", service.key)
    monkeypatch.setattr(staged_uploads, "PART_BYTES", PART)


class Store(Network):
    """A link to the store, which remembers what comes."""

    def __init__(self, url):
        self.seen = b""
        self._seeing = Lock()
        super().__init__(int(url.rpartition(":")[2]))

    def _pass(self, far, data):
        with self._seeing:
            self.seen += data
        super()._pass(far, data)


@pytest.fixture(scope="module")
def link(s3_server):
    with Store(s3_server) as link:
        yield link


@pytest.fixture
def store(link):
    link.seen = b""
    return link


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory, s3_server, link):
    url, environment = outside.new_bucket(s3_server)
    home = tmp_path_factory.mktemp("a home")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with serve_here(home, blob_url=url, public_url=link.url) as service:
            service.key = keys.create_key(service.records, "red", Scope.SUBMIT)[1]
            yield service


def _stored(service, path):
    data = path.read_bytes()
    return b"".join(service.parts.blobs.stream(digest(data))[1]) == data


def test_parts_go_to_the_store_and_the_key_does_not(service, store, file):
    calls = []
    with prescore.Client(service.url) as client:
        found = client.upload_checkpoint(file, lambda *call: calls.append(call))
    assert found == digest(file.read_bytes())
    assert _stored(service, file)
    size = file.stat().st_size
    assert (calls[0], calls[-1]) == ((0, size), (size, size))
    assert store.seen.count(b"PUT /") == -(-size // PART)
    assert service.key.encode() not in store.seen
    assert b"uthorization" not in store.seen


def test_an_upload_that_is_stopped_goes_on_where_it_was(service, store, file):
    class Stop(Exception):
        pass

    def stop(done, total):
        if done > 3 * PART:
            raise Stop

    with prescore.Client(service.url) as client, pytest.raises(Stop):
        client.upload_checkpoint(file, stop)
    assert b"PUT /" in store.seen
    calls = []
    with prescore.Client(service.url) as client:
        client.upload_checkpoint(file, lambda *call: calls.append(call))
    size = file.stat().st_size
    assert 0 < calls[0][0] < size
    assert calls[-1] == (size, size)  # a part that was sent again would count twice
    assert _stored(service, file)


@pytest.mark.parametrize("answered", [False, True])
def test_parts_that_are_cut_are_sent_again(service, store, file, answered):
    store.cuts = [Cut(f"partNumber={n}&".encode(), answered, refused=1) for n in (2, 4)]
    with prescore.Client(service.url, patience=10) as client:
        client.upload_checkpoint(file)
    assert _stored(service, file)
    assert not store.cuts


def test_a_cut_between_client_and_service_is_overcome(service, file):
    cuts = [Cut(b"/parts HTTP", answered) for answered in (False, True, True)]
    with (
        Network(service.port, *cuts) as network,
        prescore.Client(network.url, patience=10) as client,
    ):
        client.upload_checkpoint(file)
    assert _stored(service, file)


def test_a_canceled_upload_leaves_a_store_that_is_silent(service, file, monkeypatch):
    async def upload():
        async with prescore.AsyncClient(service.url) as client:
            await asyncio.wait_for(client.upload_checkpoint(file), 1)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        monkeypatch.setattr(service.parts.blobs.staging, "url", lambda *_: url)
        with pytest.raises(TimeoutError):
            asyncio.run(upload())
        for _ in range(upload_parts.AT_ONCE):
            with silent.accept()[0] as near:
                near.settimeout(2)
                assert b"PUT /x" in b"".join(iter(lambda: near.recv(1 << 16), b""))


def test_a_refusal_is_heard(service, tmp_path):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(b"\x10" + bytes(7) + b"not a header of it" + bytes(5000))
    with prescore.Client(service.url) as client, pytest.raises(prescore.Refused) as refused:
        client.upload_checkpoint(path)
    assert (refused.value.status, refused.value.code) == (422, "invalid_checkpoint")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/bucket", "no answer from 127.0.0.1"),
        # as where a proxy changes what was signed
        ("{store}/no-such-bucket/x?partNumber=1&uploadId=x", "the object store answered 404"),
        # else a hostile service would let clients write to what only they can reach
        ("http://store.example/x", "the service told of a store without https"),
        ("https://169.254.169.254/x", "the service told of a store on a private address"),
    ],
)
def test_where_the_store_cannot_be_asked_refuses_or_is_less_private_the_service_gets_the_bytes(
    service, store, file, monkeypatch, caplog, url, reason
):
    place = url.format(store=store.url)
    monkeypatch.setattr(service.parts.blobs.staging, "url", lambda *_: place)
    with prescore.Client(service.url) as client:
        client.upload_checkpoint(file)
    assert _stored(service, file)
    assert reason in caplog.text
    assert "the file is sent to the service" in caplog.text
    assert (b"PUT /" in store.seen) == (store.url in place)


HERE = "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("service_url", "part_url", "is_followed"),
    [
        (HERE, "http://localhost:9001/x", True),
        (HERE, "https://[::1]:9001/x", True),
        (HERE, "https://93.184.216.34/x", True),
        ("https://10.0.0.1", "https://192.168.0.7/x", True),
        ("https://93.184.216.34", "https://93.184.216.35/x", True),
        ("https://93.184.216.34", "http://127.0.0.1/x", False),
        ("https://93.184.216.34", "http://localhost/x", False),
        ("https://93.184.216.34", "https://127.1/x", False),
        ("https://93.184.216.34", "https://0.0.0.0/x", False),
        ("https://93.184.216.34", "https://[::ffff:127.0.0.1]/x", False),
        ("https://93.184.216.34", "https://100.64.0.1/x", False),
        ("https://10.0.0.1", "http://127.0.0.1/x", False),
        ("https://10.0.0.1", "https://169.254.169.254/x", False),
        (HERE, "https://10.0.0.1/x", False),
        (HERE, "https://[fe80::1]/x", False),
        (HERE, "https://[fd00::1]/x", False),
        (HERE, "ftp://127.0.0.1/x", False),
        (HERE, "https://user:word@93.184.216.34/x", False),
        (HERE, "https:///x", False),
        (HERE, "x", False),
        (HERE, "http://[", False),
    ],
)
def test_a_store_is_on_the_same_kind_of_address_as_the_service(service_url, part_url, is_followed):
    part = UploadPart(number=1, offset=0, bytes=1, url=part_url)
    refusal = upload_parts._find_refusal(service_url, [part])
    assert (refusal is None) == is_followed


@pytest.mark.parametrize("told", [[], [staged_uploads.FilePart(1, 0, 10**9)]])
def test_parts_of_another_file_are_no_answer(service, file, monkeypatch, told):
    monkeypatch.setattr(
        staged_uploads, "find_missing_parts", lambda *_: [staged_uploads.FilePart(1, 0, 1)]
    )
    signed = {"url": "https://store.example/x", "expires_at": "2026-01-01T00:00:00Z"}
    parts = [UploadPart(**vars(part), **signed) for part in told]
    monkeypatch.setattr(routes, "_sign_parts", lambda *_: parts)
    with prescore.Client(service.url) as client, pytest.raises(prescore.ServiceError):
        client.upload_checkpoint(file)


class OtherStore:
    """Answers every request with a head and an endless body."""

    def __init__(self, head):
        self.head = head
        self.asked = 0
        self.sent = 0

    @contextmanager
    def serving(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = Thread(target=self._accept, args=(listener,))
            thread.start()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _accept(self, listener):
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                with near, suppress(OSError):
                    self._answer(near)

    def _answer(self, near):
        near.recv(1 << 20)
        self.asked += 1
        near.sendall(self.head + b"\r\n\r\n")
        while True:
            self.sent += near.send(bytes(1 << 16))


def test_a_redirect_of_the_store_is_not_followed(service, store, file, monkeypatch):
    elsewhere = OtherStore(b"HTTP/1.1 200 OK")
    with elsewhere.serving() as place:
        redirecting = OtherStore(b"HTTP/1.1 307 Elsewhere\r\nLocation: " + place.encode())
        with redirecting.serving() as url, prescore.Client(service.url) as client:
            monkeypatch.setattr(service.parts.blobs.staging, "url", lambda *_: url)
            client.upload_checkpoint(file)
    assert redirecting.asked
    assert not elsewhere.asked
    assert _stored(service, file)


def test_an_answer_of_the_store_without_end_is_not_read_to_its_end(service, file, monkeypatch):
    endless = OtherStore(b"HTTP/1.1 500 Oops")
    with endless.serving() as url, prescore.Client(service.url) as client:
        monkeypatch.setattr(service.parts.blobs.staging, "url", lambda *_: url)
        client.upload_checkpoint(file)
    assert _stored(service, file)
    assert endless.asked
    assert endless.sent < 100 << 20


def test_parts_that_are_asked_for_without_end_have_one(service, store, file, monkeypatch):
    first = [staged_uploads.FilePart(1, 0, PART)]
    told = staged_uploads.find_missing_parts

    def same(*given):
        told(*given)
        return first

    monkeypatch.setattr(staged_uploads, "find_missing_parts", same)
    with (
        prescore.Client(service.url) as client,
        pytest.raises(prescore.ServiceError, match="again and again"),
    ):
        client.upload_checkpoint(file)
    assert store.seen.count(b"PUT /") <= 3 * file.stat().st_size / PART + 1


def test_a_file_that_becomes_shorter_is_told(service, file, monkeypatch):
    told = staged_uploads.sign_part_url

    def shorten(*given):
        file.write_bytes(file.read_bytes()[:PART])
        return told(*given)

    monkeypatch.setattr(staged_uploads, "sign_part_url", shorten)
    with (
        prescore.Client(service.url) as client,
        pytest.raises(prescore.InvalidArgument, match="changed while it was read"),
    ):
        client.upload_checkpoint(file)
