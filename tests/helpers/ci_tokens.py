"""Issuers of CI jobs' tokens, with keys of their own and a real server for their key set."""

import base64
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from helpers.certificates import Authority
from helpers.tls_servers import PORT, Server, read_request, serving
from service.access.oidc import trusted_issuers
from service.access.oidc.exchange import TokenExchange
from service.access.oidc.key_sets import KeySets
from service.outbound.client import OutboundClient

AUDIENCE = "https://prescore.example.org"
HOST = "keys.example"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def as_json(value) -> str:
    return encoded(json.dumps(value).encode())


def number(value: int, length: int | None = None) -> str:
    return encoded(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


class RsaKey:
    algorithm = "RS256"

    def __init__(self, kid: str, bits: int = 2048) -> None:
        self.kid = kid
        self.private = rsa.generate_private_key(65537, bits)

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data, padding.PKCS1v15(), hashes.SHA256())

    @property
    def public(self) -> dict[str, str]:
        numbers = self.private.public_key().public_numbers()
        told = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        return {**told, "kid": self.kid, "use": "sig", "alg": self.algorithm}

    @property
    def pem(self) -> bytes:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.private.public_key().public_bytes(serialization.Encoding.PEM, form)


class EcKey:
    algorithm = "ES256"

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.private = ec.generate_private_key(ec.SECP256R1())

    def sign(self, data: bytes) -> bytes:
        r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    @property
    def public(self) -> dict[str, str]:
        numbers = self.private.public_key().public_numbers()
        told = {"kty": "EC", "crv": "P-256", "x": number(numbers.x, 32), "y": number(numbers.y, 32)}
        return {**told, "kid": self.kid, "use": "sig"}


def signed(key, claims, header=None, signature=None) -> str:
    """A token. `header`: what is another than usual, None leaves it out; `signature`: its own."""
    usual = {"typ": "JWT", "alg": key.algorithm, "kid": key.kid}
    whole = {name: of for name, of in {**usual, **(header or {})}.items() if of is not None}
    text = f"{as_json(whole)}.{as_json(claims)}"
    return f"{text}.{encoded(key.sign(text.encode()) if signature is None else signature)}"


def by_secret(secret: bytes, claims, header) -> str:
    """A token whose signature is an HMAC (HS256) with this secret."""
    text = f"{as_json(header)}.{as_json(claims)}"
    made = hmac.HMAC(secret, hashes.SHA256())
    made.update(text.encode())
    return f"{text}.{encoded(made.finalize())}"


GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.example"
OTHER = "https://ci.example"


def github(**more):
    """Claims as GitHub has them: of a push to main of repository 123."""
    usual = {
        "iss": GITHUB,
        "sub": "repo:vision/captions:ref:refs/heads/main",
        "repository": "vision/captions",
        "repository_id": "123",
        "repository_owner": "vision",
        "repository_owner_id": "77",
        "ref": "refs/heads/main",
        "ref_protected": "true",
        "ref_type": "branch",
        "event_name": "push",
        "sha": 40 * "a",
        "run_id": "555",
        "head_ref": "",
        "base_ref": "",
    }
    return _timed({**usual, **more})


def gitlab(**more):
    """Claims as GitLab has them: of a push to main of project 42."""
    usual = {
        "iss": GITLAB,
        "sub": "project_path:vision/captions:ref_type:branch:ref:main",
        "project_id": "42",
        "project_path": "vision/captions",
        "job_project_id": "42",
        "namespace_id": "9",
        "ref": "main",
        "ref_path": "refs/heads/main",
        "ref_protected": "true",
        "pipeline_source": "push",
        "pipeline_id": "777",
        "sha": 40 * "b",
        "runner_id": 12,
    }
    return _timed({**usual, **more})


def other(**more):
    """Claims of an issuer that is neither."""
    return _timed({"iss": OTHER, "sub": "job/9", "project": 7, **more})


def _timed(claims):
    """Claims with their times and audience; None leaves one out."""
    now = int(time.time())
    times = {"iat": now - 5, "nbf": now - 5, "exp": now + 300}
    whole = {"aud": AUDIENCE, "jti": str(uuid.uuid4()), **times, **claims}
    return {name: value for name, value in whole.items() if value is not None}


class Issuers:
    """One server with the key sets of three issuers: GitLab has its own key, of the same name as
    GitHub's; the third one has GitHub's, and one of another kind.
    """

    def __init__(self, folder: Path) -> None:
        self.rsa, self.gitlab, self.ec = RsaKey("rsa-1"), RsaKey("rsa-1"), EcKey("ec-1")
        self.others = RsaKey("rsa-1")  # of somebody else
        self.answers = {
            "/github": self.answer_of(self.rsa.public),
            "/gitlab": self.answer_of(self.gitlab.public),
            "/other": self.answer_of(self.rsa.public, self.ec.public),
        }
        self.authority = Authority(folder)
        self.server: Server | None = None

    @staticmethod
    def answer_of(*keys) -> bytes:
        body = json.dumps({"keys": list(keys)}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    @property
    def client(self) -> OutboundClient:
        return OutboundClient(resolve=self._resolve, context=self.authority.client())

    @property
    def asked(self) -> int:
        assert self.server is not None
        return self.server.connections

    @contextmanager
    def serving(self) -> Iterator[None]:
        def talk(near) -> None:
            head, _ = read_request(near)
            near.sendall(self.answers[head.split()[1].decode()])

        with serving(talk, self.authority.issue(HOST).server()) as server:
            self.server = server
            yield

    def _resolve(self, host: str, port: int) -> list[str]:
        assert (host, port) == (HOST, PORT)
        assert self.server is not None
        return [self.server.address]


TRUSTED = f"""
[[issuers]]
kind = "github"
issuer = "{GITHUB}"
audience = "{AUDIENCE}"
algorithms = ["RS256"]
jwks_uri = "https://{HOST}:{PORT}/github"

[[issuers.rules]]
team = "red"
scope = "publish"
match = {{ repository_id = "123", ref = "refs/heads/main", ref_protected = "true" }}

[[issuers.rules]]
team = "red"
scope = "submit"
match = {{ repository_id = ["123", "124"] }}

[[issuers]]
kind = "gitlab"
issuer = "{GITLAB}"
audience = "{AUDIENCE}"
algorithms = ["RS256"]
jwks_uri = "https://{HOST}:{PORT}/gitlab"

[[issuers.rules]]
team = "red"
scope = "publish"
match = {{ project_id = "42", ref_path = "refs/heads/main", ref_protected = "true" }}

[[issuers.rules]]
team = "red"
scope = "submit"
match = {{ project_id = "42" }}

[[issuers]]
kind = "other"
issuer = "{OTHER}"
audience = "{AUDIENCE}"
algorithms = ["ES256", "RS256"]
jwks_uri = "https://{HOST}:{PORT}/other"
lifetime = 600
labels = {{ job = "sub" }}

[[issuers.rules]]
team = "blue"
scope = "read"
match = {{ project = "7" }}
"""


def exchange(issuers: Issuers, folder: Path) -> TokenExchange:
    """Of a service that trusts these issuers."""
    path = folder / "oidc.toml"
    path.write_text(TRUSTED)
    return TokenExchange(trusted_issuers.read_issuers(path), KeySets(issuers.client))
