"""Large uploads of the client against a real service: cut, stopped, begun again."""

import pytest

import prescore
from helpers.fleet import bundle, digest, until
from helpers.networks import Cut, Network
from prescore.cli import console
from prescore.files import bodies, tars
from prescore.http import resumable_uploads

pytestmark = pytest.mark.usefixtures("all_are_large")


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        yield service


class Stop(Exception):
    pass


def _stopping(service, at):
    """Stops when the service has written something of it."""

    def written():
        return sum(file.stat().st_size for file in service.leftovers())

    def stop(done, total):
        if done >= at:
            until(written, 10, "bytes")
            raise Stop

    return stop


def _unfinished(service, path):
    with service.client() as client:
        query = {"digest": digest(path.read_bytes())}
        return client.get("/v1/uploads", params=query).json()["items"]


def test_an_upload_that_is_stopped_goes_on_where_it_was(service, file):
    """By the next client, as in another process: the service finds it by the file's digest."""
    with prescore.Client(service.url) as client, pytest.raises(Stop):
        client.upload_checkpoint(file, _stopping(service, 6000))
    calls = []
    with prescore.Client(service.url) as client:
        found = client.upload_checkpoint(file, lambda *call: calls.append(call))
    assert found == digest(file.read_bytes())
    assert 0 < calls[0][0] <= 6000
    assert calls[-1] == (file.stat().st_size, file.stat().st_size)
    assert not _unfinished(service, file)


def test_small_files_are_sent_as_before(service, file, monkeypatch):
    monkeypatch.setattr(resumable_uploads, "LARGE_BYTES", 1 << 20)
    calls = []
    with prescore.Client(service.url) as client:
        client.upload_checkpoint(file, lambda *_: calls.append(_unfinished(service, file)))
    assert calls
    assert not any(calls)


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("at", [b"POST /v1/uploads", b"HEAD /v1/uploads", b"PATCH /v1/uploads"])
def test_a_cut_at_any_request_is_overcome(service, file, at, answered):
    with (
        Network(service.port, Cut(at, answered), Cut(at, answered)) as network,
        prescore.Client(network.url, patience=10) as client,
    ):
        assert client.upload_checkpoint(file) == digest(file.read_bytes())
        assert client.has_checkpoint(digest(file.read_bytes()))


def test_datasets_too(service, tmp_path):
    path = tmp_path / "bundle.tar"
    path.write_bytes(bundle(30))
    with prescore.Client(service.url) as client, pytest.raises(Stop):
        client.add_dataset("large", path, _stopping(service, 6000))
    with (
        Network(service.port, Cut(b"PATCH /v1/uploads", answered=True)) as network,
        prescore.Client(network.url, patience=10) as client,
    ):
        found = client.add_dataset("large", path)
    assert (str(found), found.digest) == ("large@v1", digest(path.read_bytes()))


def test_a_refusal_is_heard_and_not_tried_again(service, tmp_path):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(b"\x10" + bytes(7) + b"not a header of it" + bytes(5000))
    with (
        prescore.Client(service.url, patience=10) as client,
        pytest.raises(prescore.Refused) as refused,
    ):
        client.upload_checkpoint(path)
    assert (refused.value.status, refused.value.code) == (422, "invalid_checkpoint")


def test_attempts_have_an_end(service, file, monkeypatch):
    monkeypatch.setattr(resumable_uploads, "ATTEMPTS", 3)
    cuts = [Cut(b"PATCH /v1/uploads", refused=0) for _ in range(5)]
    with (
        Network(service.port, *cuts) as network,
        prescore.Client(network.url, patience=60) as client,
        pytest.raises(prescore.Unreachable),
    ):
        client.upload_checkpoint(file)
    assert len(cuts) - len(network.cuts) == 3


def _interrupted(size):
    with console.show_upload("a.safetensors") as report:
        report(0, size)
        raise KeyboardInterrupt


@pytest.mark.parametrize("more", [0, 1])
def test_who_stops_a_large_upload_is_told_that_it_goes_on(capsys, more):
    with pytest.raises(KeyboardInterrupt):
        _interrupted(resumable_uploads.LARGE_BYTES + more)
    assert ("the same command goes on from there" in capsys.readouterr().err) == bool(more)


@pytest.mark.parametrize("location", ["http://elsewhere.example/v1/uploads/../x", "/v1/keys", ""])
def test_a_hostile_location_is_followed_nowhere(location):
    assert resumable_uploads._OF_UPLOAD.fullmatch(location) is None
    assert resumable_uploads._OF_RESULT.fullmatch(location) is None


def test_a_body_from_an_offset_is_the_rest_of_the_body(tmp_path):
    files = {}
    for name, size in (("a", 0), ("b", 700), ("c", 1024)):
        files[name] = tmp_path / name
        files[name].write_bytes(bytes([len(files)]) * size)
    for body in (tars.build_body(files), bodies.file_body(files["b"])):
        whole = b"".join(body.chunks())
        for offset in range(0, body.size + 1, 7):
            assert b"".join(body.chunks(offset)) == whole[offset:]
