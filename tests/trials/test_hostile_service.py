"""T56: a hostile service against the client: it is refused in little memory and little time, writes
nothing outside its folder, and gets no key that others could read.
"""

import json
import socketserver
import subprocess
import sys
import threading
import zlib
from hashlib import sha256

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app

DIGEST = "sha256:" + "0" * 64
MOST_KILOBYTES = 700_000  # 16 MB of JSON take 600 MB as Python's objects, if made for it
MEBIBYTE = b"x" * (1 << 20)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _head(status="200 OK", **headers):
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{fields}Connection: close\r\n\r\n".encode()


def _many(one, count=3000):
    for _ in range(count):
        yield one


def _bomb(**headers):
    """3 GB of one letter, a thousandth of that when it is sent."""

    def answer():
        packer = _packer()
        yield _head(Content_Encoding="gzip", **headers) + packer.flush(zlib.Z_FULL_FLUSH)
        yield from _many(packer.compress(MEBIBYTE) + packer.flush(zlib.Z_FULL_FLUSH))

    return answer


def _bomb_in_a_bomb():
    """400 MB of one letter, packed twice: some kilobytes."""
    once, twice = _packer(), _packer()
    packed = b"".join(once.compress(piece) for piece in _many(MEBIBYTE, 400)) + once.flush()
    yield _head(Content_Encoding="gzip, gzip") + twice.compress(packed) + twice.flush()


def _packer():
    return zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)


def _endless(before, one, status="200 OK", **headers):
    def answer():
        yield _head(status, **headers) + before
        yield from _many(one)

    return answer


def _much(before, one, count):
    body = before + one * count + b"0]}"
    return lambda: iter([_head(Content_Length=len(body)) + body])


def _whole(document, status="200 OK", **headers):
    body = json.dumps(document).encode()
    return lambda: iter([_head(status, Content_Length=len(body), **headers) + body])


STREAM = {"Content_Type": "text/event-stream"}
RUN = {
    "id": "ev_1",
    "status": "running",
    "dataset": {"name": "x", "version": "v1", "digest": DIGEST, "split": "test"},
}
# What is asked of the client -> what the service answers.
ANSWERS = {
    "client.evaluation('ev_1')": _endless(b'{"id": "', MEBIBYTE),
    "client.dataset('x')": _bomb(),
    "client.dataset('y')": _endless(b"", MEBIBYTE, status="500 Oops"),
    "client.dataset('z')": _endless(b"", MEBIBYTE, Content_Encoding="br"),
    "client.dataset('double')": _bomb_in_a_bomb,
    "client.dataset('lists')": _much(b'{"name": [', b"[],", 20_000_000),
    "client.dataset('nested')": _much(b'{"name": [', b"[[[]]],", 2_000_000),
    "client.dataset('deep')": _much(b'{"name": ', b"[", 10_000_000),
    "list(client.evaluations())": _much(b'{"items": [', b'{"id":0},', 1_800_000),
    "list(client.comparisons())": _whole({"items": [RUN] * 9000, "next": "again"}),
    "list(client.events('ev_1'))": _endless(b"data: ", MEBIBYTE, **STREAM),
    "list(client.events('ev_2'))": _endless(b"", b"data: x\n" * 100_000, **STREAM),
    "list(client.events('ev_3'))": _endless(b"data: " + b"[" * 100_000 + b"\n\n", b"", **STREAM),
    "list(client.events('ev_4'))": _bomb(**STREAM),
    "list(client.datasets())": _whole({"items": [], "next": "again"}),
    "client.metrics()": _whole({"items": [{"name": "m"}], "next": "again"}),
    "asyncio.run(prescore.AsyncClient(url, patience=0).evaluation('a'))": _endless(b"", MEBIBYTE),
    "asyncio.run(prescore.AsyncClient(url, patience=0).dataset('b'))": _bomb(),
    "asyncio.run(anext(prescore.AsyncClient(url, patience=0).events('c')))": _endless(
        b"data: ", MEBIBYTE, **STREAM
    ),
    "client.fetch_captions('x', 'captions.jsonl')": _endless(b"", MEBIBYTE),
    "client.pregen('ev_1')": _whole({}, "302 Found", Location="http://127.0.0.1:{port}/other"),
    "client.checkpoint('" + DIGEST + "')": _whole({"digest": "../../../outside"}),
}
# For each line of input, a process of its own, which has the library already.
ASKING = """
import asyncio, json, os, re, signal, sys, time
import prescore
from prescore.http import downloads
downloads.DOWNLOAD_BYTES = 64 << 20  # instead of filling the disk

def ask(url, folder, asked):
    signal.alarm(60)
    os.chdir(folder)
    with prescore.Client(url, patience=0) as client:
        began = time.monotonic()
        try:
            exec(asked)
            said = "accepted"
        except prescore.PrescoreClientError as error:
            said = f"{type(error).__name__}: {str(error)[:200]}"
    with open("/proc/self/status") as status:
        kilobytes = int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])
    print(json.dumps([kilobytes, time.monotonic() - began, said]), flush=True)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            ask(*json.loads(line))
        finally:
            os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(json.dumps("it died"), flush=True)
"""


@pytest.fixture(scope="module")
def asking():
    command = [sys.executable, "-c", ASKING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def hostile():
    """A server that gives every request its `answer`, and notes what was asked."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            self.server.heads.append(head.decode())
            try:
                for piece in self.server.answer():
                    self.wfile.write(
                        piece.replace(b"{port}", b"%d" % self.server.server_address[1])
                    )
            except OSError:
                self.server.left = True

    with _Server(("127.0.0.1", 0), Handler) as server:
        server.heads = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _url(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize("asked", ANSWERS, ids=lambda asked: asked[:40])
def test_an_answer_is_refused_at_its_bound(asking, hostile, tmp_path, asked):
    hostile.answer = ANSWERS[asked]
    asking.stdin.write(json.dumps([_url(hostile), str(tmp_path), asked]) + "\n")
    asking.stdin.flush()
    kilobytes, seconds, said = json.loads(asking.stdout.readline())
    assert said.startswith(("ServiceError", "Refused", "Unreachable")), said
    assert kilobytes < MOST_KILOBYTES, (kilobytes, said)
    assert seconds < 20
    assert list(tmp_path.iterdir()) == []
    assert not [head for head in hostile.heads if "/other" in head]


def test_score_here_takes_no_dataset_of_a_service_that_says_something_else(
    hostile, tmp_path, monkeypatch
):
    (tmp_path / "outputs.json").write_text('[{"image": "a", "caption": "b"}]')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRESCORE_URL", _url(hostile))
    for digest in ("../../../../outside", str(tmp_path / "outside"), "sha256:../../outside"):
        facts = {"name": "x", "version": "v1", "digest": digest, "splits": {}}
        hostile.answer = _whole(facts)
        command = ["score", "outputs.json", "--dataset", "x/test", "--here"]
        done = CliRunner().invoke(command_app.prescore(), command)
        assert done.exit_code == 4, done.output
        assert "not an answer of Prescore" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"outputs.json", "home"}


CAPTIONS = b'{"image": "a", "split": "test", "references": ["b"]}\n'


def _serving(hostile, sent, **told):
    """Lets the service describe a dataset, and send these bytes as its captions."""
    facts = {"name": "x", "version": "v1", "digest": DIGEST, "splits": {}, **told}

    def answer():
        if "x-ndjson" in hostile.heads[-1]:
            yield _head(Content_Length=len(sent)) + sent
        else:
            yield from _whole(facts)()

    hostile.answer = answer


@pytest.mark.parametrize("what", ["other captions", "too many"])
def test_captions_that_are_not_those_that_the_service_tells_are_refused(
    hostile, tmp_path, monkeypatch, what
):
    from prescore.http import downloads

    monkeypatch.setattr(downloads, "DOWNLOAD_BYTES", 1000)
    right, path = f"sha256:{sha256(CAPTIONS).hexdigest()}", tmp_path / "captions.jsonl"
    path.write_bytes(b"as it was")
    sent = {"other captions": CAPTIONS.replace(b"b", b"c"), "too many": CAPTIONS * 1000}[what]
    said = {"other captions": f"expected the content {right}", "too many": "at most 1000 bytes"}
    with prescore.Client(_url(hostile), patience=0) as client:
        _serving(hostile, sent, captions=right)
        with pytest.raises(prescore.ServiceError, match=said[what]):
            client.fetch_captions("x", path)
        assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"as it was"]
        _serving(hostile, CAPTIONS, captions=right)
        client.fetch_captions("x", path)
        assert path.read_bytes() == CAPTIONS
        _serving(hostile, b"of a service that tells no digest")
        client.fetch_captions("x", path)


def test_captions_that_are_kept_are_held_against_what_the_service_tells(hostile, tmp_path):
    from service.contract.assets import AssetFolders
    from workers.offline import sources

    right = f"sha256:{sha256(CAPTIONS).hexdigest()}"

    def find():
        _serving(hostile, CAPTIONS, captions=right)
        return sources.find_source("x/test", AssetFolders(tmp_path), _url(hostile))

    first = find()
    assert first.digest == right
    asked = len(hostile.heads)
    find()
    assert len(hostile.heads) == asked + 1  # what is kept is not sent again
    (first.path / "captions.jsonl").write_bytes(CAPTIONS.replace(b"b", b"c"))
    assert find().digest == right


def test_a_run_that_never_ends_is_left_and_asked_slowly(hostile, monkeypatch):
    from prescore.http import polling, transport

    pauses = []
    monkeypatch.setattr(transport.Transport, "sleep", lambda _, seconds: pauses.append(seconds))
    monkeypatch.setattr(polling, "POLLS", 30)
    hostile.answer = _whole(RUN, Retry_After="999999999")
    with (
        prescore.Client(_url(hostile), patience=0) as client,
        pytest.raises(prescore.ServiceError, match="a run that ends"),
    ):
        client.wait("ev_1")
    assert len(hostile.heads) == 30
    assert max(pauses) <= polling.POLL_SECONDS


def test_a_key_goes_to_https_and_this_machine_alone(hostile, monkeypatch):
    for url in ("http://evaluator:8000", "http://10.0.0.1", "http://localhost.evil.example"):
        with pytest.raises(prescore.InvalidArgument, match="everybody on the way") as error:
            prescore.Client(url, "psk_a_b")
        assert "psk_a_b" not in str(error.value)
        prescore.Client(url).close()
    for url in ("https://evaluator", "http://localhost:1", "http://127.3.2.1", "http://[::1]:1"):
        prescore.Client(url, "psk_a_b").close()
    monkeypatch.setenv("HTTP_PROXY", "http://10.255.255.1:1")  # not on the way to this machine
    hostile.answer = _whole({"items": []})
    with prescore.Client(_url(hostile), "psk_a_b", patience=0) as client:
        assert list(client.datasets()) == []
    assert "Authorization: Bearer psk_a_b" in hostile.heads[0]


def test_what_is_gzipped_is_read(hostile):
    body = b'{"items": [{"name": "x", "version": "v1"}]}'
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = packer.compress(body) + packer.flush()
    hostile.answer = lambda: iter(
        [_head(Content_Encoding="gzip", Content_Length=len(packed)) + packed]
    )
    with prescore.Client(_url(hostile), patience=0) as client:
        assert [str(dataset) for dataset in client.datasets()] == ["x@v1"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"RIFF\x10\0\0\0WEBP" + b"x" * (5 << 20), "at most 4194304 bytes"),
        (b"<svg onload=alert()>", "expected WebP"),
        (b"", "expected WebP"),
    ],
)
def test_a_picture_that_is_none_or_too_long_is_refused(hostile, sent, said):
    hostile.answer = lambda: [_head(Content_Length=len(sent)), sent]
    with (
        prescore.Client(_url(hostile), patience=0) as client,
        pytest.raises(prescore.ServiceError, match=said),
    ):
        client.image("x", "a.jpg")
