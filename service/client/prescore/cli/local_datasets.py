"""Datasets on this machine, for commands that need no service: one in this process gets them."""

import re
import shutil
import socket
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from prescore.cli import console, submissions
from prescore.cli.options import Connection
from prescore.client import DEFAULT_URL, Client, local_service
from prescore.errors import InvalidArgument, PrescoreClientError, Unreachable
from prescore.files import bundles
from prescore.plain_text import quoted

USUAL_SPLIT = "test"
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_ENDING = re.compile(r"\.tar$")
_ANSWER_SECONDS = 1.0


def choose_connection(connection: Connection, dataset: str) -> Connection:
    """The connection of a command that needs no service: to one in this process if the dataset is
    a folder or a tar, or if no service is named and none answers at the usual address.
    """
    if connection.here or not local_service.is_installed():
        return connection
    is_here = _find_path(dataset) is not None or (
        connection.url is None and not _listens(DEFAULT_URL)
    )
    return replace(connection, here=is_here)


def find_name(connection: Connection, dataset: str) -> str:
    """Find the dataset's name, by which a near one is found; empty where a service here gets it."""
    return "" if connection.here else dataset


def provide_split(client: Client, connection: Connection, dataset: str, *, whole: bool) -> str:
    """Give NAME@VERSION/SPLIT of a dataset, which a service in this process gets first: from its
    folder or its tar, or from the service of the connection. `whole`: with features and pictures.
    """
    if not client.is_here:
        return submissions.complete_split(client, dataset)
    local = _find_path(dataset)
    if local is not None:
        return _add_local(client, *local, whole=whole)
    name, slash, split = dataset.partition("/")
    version = _copy_captions(client, connection, name)
    return f"{version}/{split}" if slash else submissions.complete_split(client, version)


def _find_path(dataset: str) -> tuple[Path, str | None] | None:
    """Find the folder or tar of PATH or PATH/SPLIT, and the split; None where there is none."""
    if Path(dataset).exists():
        return Path(dataset), None
    head, _, split = dataset.rpartition("/")
    return (Path(head), split) if head and Path(head).exists() else None


def _listens(url: str) -> bool:
    address = urlsplit(url)
    with (
        suppress(OSError),
        socket.create_connection((address.hostname, address.port), _ANSWER_SECONDS),
    ):
        return True
    return False


def _add_local(client: Client, path: Path, split: str | None, *, whole: bool) -> str:
    name = _NO_NAME.sub("-", _ENDING.sub("", path.absolute().name)).strip("-.") or "dataset"
    if whole:
        with console.show_upload(path.name) as progress:
            version = client.add_dataset(name, path, progress)
    else:
        with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
            copy = Path(folder) / bundles.CAPTIONS
            with bundles.open_captions(path) as lines, copy.open("wb") as stream:
                shutil.copyfileobj(lines, stream)
            version = client.add_dataset(name, folder)
    splits = sorted(version.splits)
    if split is None:
        split = splits[0] if len(splits) == 1 else USUAL_SPLIT
    if split not in splits:
        known = ", ".join(map(quoted, splits))
        raise InvalidArgument(f"expected a split of {path}, one of {known}, found {split!r:.100}")
    return f"{version}/{split}"


def _copy_captions(client: Client, connection: Connection, name: str) -> str:
    """Add the captions of a dataset of another service, unless that cannot be reached."""
    try:
        with console.open_client(replace(connection, here=False, patience=0)) as other:
            version = other.dataset(name)
            with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
                other.fetch_captions(str(version), Path(folder) / bundles.CAPTIONS)
                return str(client.add_dataset(version.name, folder))
    except Unreachable as error:
        try:
            return str(client.dataset(name))
        except PrescoreClientError:
            raise InvalidArgument(
                f"expected a folder, a tar or a dataset's name, found {quoted(name)}: there is no "
                f"such path, and no answer from a service at {error.url} that may have it"
            ) from None
