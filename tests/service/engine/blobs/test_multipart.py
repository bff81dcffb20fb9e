"""Files that clients send to the store in parts: what the store has of them, and what their URLs
allow. The store is moto's, which checks no signature; that is done here, from AWS' definition.
"""

import hashlib
import hmac
import sys
import time
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import httpx
import pytest

from helpers import outside
from service.contract.errors import InvalidSetting, StoreUnavailable
from service.engine.blobs import open_blobs

SECONDS = 60


@pytest.fixture
def staging(bucket, s3_server, tmp_path):
    return open_blobs(bucket, tmp_path, s3_server).staging


def _put(staging, name, begun, number, data):
    url = staging.url(name, begun, number, len(data), SECONDS)
    assert httpx.put(url, content=data).status_code == 200


def test_parts_in_any_order_become_one_file_which_is_no_object(staging, bucket, tmp_path):
    begun = staging.begin("up_a")
    for number, data in ((2, b"wor"), (3, b"ld"), (1, b"hello "), (2, b"wor")):
        _put(staging, "up_a", begun, number, data)
    assert staging.held("up_a", begun) == {1: 6, 2: 3, 3: 2}
    assert staging.size("up_a") is None
    staging.assemble("up_a", begun)
    assert staging.held("up_a", begun) is None
    assert staging.size("up_a") == 11
    assert b"".join(staging.stream("up_a")) == b"hello world"
    staging.assemble("up_a", begun)  # again, as after a lost answer
    assert list(open_blobs(bucket, tmp_path).old(time.time() + 60)) == []


def test_what_is_given_up_is_gone(staging):
    parts, whole = staging.begin("up_a"), staging.begin("up_b")
    _put(staging, "up_a", parts, 1, b"a")
    _put(staging, "up_b", whole, 1, b"b")
    staging.assemble("up_b", whole)
    assert set(staging.old(time.time() + 60)) == {("up_a", parts), ("up_b", None)}
    # moto says of all parts that they were begun in 2010.
    assert list(staging.old(time.time() - 60)) == [("up_a", parts)]
    staging.forget("up_a", parts)
    staging.forget("up_b", whole)
    staging.forget("up_b", whole)
    assert list(staging.old(time.time() + 60)) == []
    assert staging.held("up_a", parts) is staging.size("up_b") is None
    with pytest.raises(FileNotFoundError):
        list(staging.stream("up_b"))


def test_a_url_is_for_one_part_and_exactly_so_many_bytes(staging):
    url = staging.url("up_a", "some+id/=", 7, 1234, SECONDS)
    given = dict(parse_qsl(urlsplit(url).query))
    assert (given["partNumber"], given["uploadId"]) == ("7", "some+id/=")
    assert set(given["X-Amz-SignedHeaders"].split(";")) == {"content-length", "host"}
    assert given["X-Amz-Expires"] == str(SECONDS)
    assert _signature(url, "1234") == given["X-Amz-Signature"]
    assert _signature(url, "1235") != given["X-Amz-Signature"]
    assert outside.CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in url


def _signature(url, length):
    """That of version 4, as AWS defines it, of a PUT of so many bytes."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    del given["X-Amz-Signature"]
    query = "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in sorted(given.items()))
    path = quote(unquote(parts.path), safe="/")
    headers = f"content-length:{length}\nhost:{parts.netloc}\n"
    request = f"PUT\n{path}\n{query}\n{headers}\ncontent-length;host\nUNSIGNED-PAYLOAD"
    scope = given["X-Amz-Credential"].partition("/")[2]
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{given['X-Amz-Date']}\n{scope}\n{hashed}"
    key = b"AWS4" + outside.CREDENTIALS["AWS_SECRET_ACCESS_KEY"].encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def test_urls_lead_where_clients_reach_the_store(bucket, tmp_path):
    staging = open_blobs(bucket, tmp_path, "https://store.example.org").staging
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    found = urlsplit(staging.url("up_a", "id", 1, 1, SECONDS))
    assert (found.scheme, found.netloc) == ("https", "store.example.org")
    assert found.path == f"/{name}/{prefix}/staged/up_a"


def test_a_store_that_is_away_is_told(bucket, s3_server, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    staging = open_blobs(bucket, tmp_path, s3_server).staging
    with pytest.raises(StoreUnavailable, match="the object store: EndpointConnectionError"):
        staging.begin("up_a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    missing = open_blobs("s3://no-such-bucket", tmp_path, s3_server).staging
    with pytest.raises(StoreUnavailable, match="bucket does not exist"):
        missing.begin("up_a")


@pytest.mark.parametrize("url", [None, "file:///tmp"])
def test_it_needs_a_store_of_s3(url, tmp_path):
    with pytest.raises(InvalidSetting, match="PRESCORE_BLOB_PUBLIC_URL: clients can send files"):
        open_blobs(url, tmp_path, "https://store.example.org")


def test_without_botocore_it_is_said_what_to_install(bucket, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "service.engine.blobs.multipart", raising=False)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(InvalidSetting, match=r"pip install 'prescore\[s3\]'"):
        open_blobs(bucket, tmp_path, "https://store.example.org")
