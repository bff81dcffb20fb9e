import pytest

from service.http.routers.request_parameters import (
    matches_etag,
    read_idempotency_key,
    read_wait_seconds,
)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("wait=10", 10),
        ("respond-async, wait=5", 5),
        ("wait = 7; foo", 7),
        ('wait="3"', 3),
        ("wait=99999", 60),
        ("waiting=3", None),
        ("wait=-1", None),
        ("wait=", None),
    ],
)
def test_prefer_wait(header, seconds):
    assert read_wait_seconds(header) == seconds


@pytest.mark.parametrize(
    ("header", "key"),
    [(None, None), ("abc-1", "abc-1"), ('"a key"', "a key"), (r'"a \"b\""', 'a "b"')],
)
def test_an_idempotency_key_is_a_string_or_a_token(header, key):
    assert read_idempotency_key(header) == key


@pytest.mark.parametrize(
    ("header", "same"),
    [
        (None, False),
        ('"a"', True),
        ('W/"a"', True),
        ('"b", "a"', True),
        ("*", True),
        ('"b"', False),
    ],
)
def test_if_none_match(header, same):
    assert matches_etag(header, '"a"') is same
