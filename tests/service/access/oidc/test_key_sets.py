"""Key sets of issuers: asked for at their pinned place, seldom, and with bounds."""

import json

import pytest

from helpers import ci_tokens
from helpers.ci_tokens import EcKey, RsaKey, number
from service.access.oidc import key_sets, trusted_issuers
from service.access.oidc.key_sets import KeySets
from service.access.oidc.trusted_issuers import TokenRefused
from service.contract.errors import ServiceUnavailable, UrlRefused


@pytest.fixture(scope="module")
def github(tmp_path_factory):
    path = tmp_path_factory.mktemp("trusted") / "oidc.toml"
    path.write_text(ci_tokens.TRUSTED)
    return trusted_issuers.read_issuers(path).issuers[0]


SORRY = b"HTTP/1.1 500 Sorry\r\nContent-Length: 0\r\n\r\n"


class Asking:
    """Counts how often the issuer was asked."""

    def __init__(self, issuers, github):
        self.now = 1000.0
        self._issuers = issuers
        self._github = github
        self._sets = KeySets(issuers.client, lambda: self.now)
        self._before = issuers.asked

    def __call__(self, kid="rsa-1", algorithm="RS256"):
        return self._sets.find(self._github, kid, algorithm)

    @property
    def times(self):
        return self._issuers.asked - self._before


@pytest.fixture
def asking(issuers, github):
    issuers.answers["/github"] = issuers.answer_of(issuers.rsa.public)
    return Asking(issuers, github)


def test_a_set_is_kept_for_ten_minutes(asking):
    for later, times in ((0, 1), (599, 1), (2, 2)):
        asking.now += later
        asking()
        assert asking.times == times


def test_an_unknown_key_is_asked_for_once_a_minute_at_most(asking, issuers):
    asking()
    for _ in range(20):
        with pytest.raises(TokenRefused, match="names a key that its issuer does not have"):
            asking("rsa-2")
    assert asking.times == 1
    new = RsaKey("rsa-2")
    issuers.answers["/github"] = issuers.answer_of(new.public)
    asking.now += 61
    assert asking("rsa-2").as_dict()["n"] == new.public["n"]
    assert asking.times == 2
    with pytest.raises(TokenRefused):  # the issuer has taken it away
        asking("rsa-1")
    assert asking.times == 2


def test_an_issuer_that_is_away_is_left_alone_for_a_while(asking, issuers):
    issuers.answers["/github"] = SORRY
    for _ in range(5):
        with pytest.raises(ServiceUnavailable):
            asking()
    assert asking.times == 1
    issuers.answers["/github"] = issuers.answer_of(issuers.rsa.public)
    asking.now += 6
    assert asking()


def test_keys_serve_on_for_ten_minutes_while_their_issuer_is_away(asking, issuers):
    asking()
    issuers.answers["/github"] = SORRY
    asking.now += 900
    assert asking()
    with pytest.raises(ServiceUnavailable):  # it may be a new one
        asking("rsa-2")
    asking.now += 301
    with pytest.raises(ServiceUnavailable):
        asking()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: https://keys.example:8443/other\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1, 2, 3]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + (300 << 10) * b" ",
    ],
)
def test_what_is_no_set_of_keys_is_no_answer(asking, issuers, answer):
    issuers.answers["/github"] = answer
    with pytest.raises(ServiceUnavailable):
        asking()


def _set(*found):
    return key_sets.parse_key_set(json.dumps({"keys": list(found)}).encode())


RSA, EC = RsaKey("a"), EcKey("b")


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "kid": "a", "k": "c2VjcmV0"},
        {**RsaKey("a", 1024).public},
        {**RSA.public, "use": "enc"},
        {**RSA.public, "kid": None},
        {**RSA.public, "n": 5},
        {**RSA.public, "d": number(RSA.private.private_numbers().d)},
        {**EC.public, "x": number(5, 32)},  # a point beside the curve
        {**EC.public, "crv": "P-999"},
        "a",
    ],
)
def test_what_is_no_public_key_for_signatures_is_none(key):
    assert list(_set(key, EcKey("good").public)) == ["good"]
    with pytest.raises(UrlRefused, match="found none"):
        _set(key)


def test_two_keys_of_one_name_are_no_set():
    with pytest.raises(UrlRefused, match="two of the same name"):
        _set(RSA.public, RsaKey("a").public)


@pytest.mark.parametrize(
    ("key", "fit", "unfit"),
    [
        (RSA.public, ["RS256"], ["PS256", "RS512", "ES256", "HS256"]),
        ({**RSA.public, "alg": None}, ["RS256", "PS256"], ["ES256", "HS256", "EdDSA", "none"]),
        (EC.public, ["ES256"], ["ES384", "RS256", "HS256", "EdDSA", "none"]),
    ],
)
def test_a_key_is_for_algorithms_of_its_kind_alone(key, fit, unfit):
    (named,) = _set(key).values()
    assert [each for each in [*fit, *unfit] if named.is_for(each)] == fit
