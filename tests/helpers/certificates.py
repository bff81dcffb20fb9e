"""Certificates for servers of tests: an authority of the test's own, which nobody else believes."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    certificate: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(f"the authority of {folder.name}")
        made = _builder(self._name, self._name, self._key)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = made.sign(self._key, hashes.SHA256())
        self.file = folder / "authority.pem"
        self.file.write_bytes(_pem(self._certificate))

    def client(self) -> ssl.SSLContext:
        """A context that believes this authority alone."""
        return ssl.create_default_context(cafile=str(self.file))

    def issue(self, *names: str, expired: bool = False) -> Issued:
        """A certificate for names or addresses. The key can be read by its owner alone."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(_named(names[0]), self._name, key, expired=expired)
        made = made.add_extension(
            x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
        )
        stem = f"{names[0].replace(':', '_')}-{id(key)}"
        issued = Issued(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        issued.certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        issued.key.touch(mode=0o600)
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return issued


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    expired: bool = False,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - 2 * _DAY)
        .not_valid_after(_NOW - _DAY if expired else _NOW + _DAY)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
