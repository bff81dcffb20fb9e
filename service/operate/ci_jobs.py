"""What `prescore doctor` finds of the issuers whose CI jobs get keys."""

from collections.abc import Iterator
from pathlib import Path

from service.contract.errors import PrescoreError
from service.contract.findings import Finding
from service.engine.keyring.oidc import trusted


def look(path: Path | None) -> Iterator[Finding]:
    """The file of PRESCORE_OIDC, and whether the keys of its issuers can be had from here."""
    from service.engine.keyring.oidc.key_sets import KeySets  # noqa: PLC0415  it may be missing

    try:
        found = trusted.read(path)
    except PrescoreError as error:
        advice = "correct the file: the API does not start with it"
        yield Finding("CI jobs", "unavailable", error.detail, advice, needed=True)
        return
    if found is None:
        yield Finding("CI jobs", "ok", "no issuer is trusted: jobs use keys of the operator's")
        return
    for issuer in found.issuers:
        try:
            many = len(KeySets().fetch(issuer))
        except PrescoreError as error:
            advice = "can this machine reach it? Without it, its jobs get no keys (503)"
            told = f"{issuer.jwks_uri}: {error.detail}"
            yield Finding("CI jobs", "warning", told, advice)
        else:
            yield Finding("CI jobs", "ok", f"{issuer.issuer}: {many} keys")
