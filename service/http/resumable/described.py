"""What openapi.json says of /v1/uploads."""

from typing import Any

from service.contract.api.data import CheckpointOut, ColumnsOut, DatasetOut
from service.contract.errors import (
    ColumnsRefused,
    DigestMismatch,
    DiskFull,
    InvalidBundle,
    InvalidCheckpoint,
    InvalidRequest,
    OtherVersion,
    StoreUnavailable,
    TooLarge,
    Unavailable,
    UnsupportedMedia,
)
from service.http import openapi
from service.http.resumable import fields

STATE = ("Upload-Offset", "Upload-Complete", "Upload-Length", "Upload-Limit", "Cache-Control")
OF_TUS = ("Tus-Resumable", "Upload-Expires", "Upload-Metadata")
# Read by `fields`, since what is no value of its kind counts as absent.
_ASKED = {
    "Upload-Offset": ("Where the bytes belong: at the upload's end.", {"type": "integer"}),
    "Upload-Complete": (
        "`?1`: these are the last bytes; `?0`: more are to come. Needed unless tus is spoken.",
        {"type": "string", "enum": ["?0", "?1"]},
    ),
    "Upload-Length": (
        "Bytes of the whole file, as a whole number; needed where tus is spoken.",
        {"type": "string"},
    ),
    "Upload-Metadata": (
        "tus: `kind`, `digest` and `name`, each with its value in base64.",
        {"type": "string"},
    ),
    # Of any text: tus wants 412 for a version that is not spoken.
    "Tus-Resumable": (f"tus is spoken, in this version: `{fields.TUS}`.", {"type": "string"}),
    "X-HTTP-Method-Override": (
        "The method that is meant; needed.",
        {"type": "string", "enum": ["PATCH", "HEAD", "DELETE"]},
    ),
}


def asks(*names: str) -> dict[str, Any]:
    """The header fields of requests, for openapi.json."""
    parameters = [
        {"name": name, "in": "header", "description": told, "schema": schema}
        for name, (told, schema) in _ASKED.items()
        if name in names
    ]
    return {"parameters": parameters}


JUDGED = (
    *(DigestMismatch, InvalidCheckpoint, InvalidBundle, ColumnsRefused, InvalidRequest),
    *(TooLarge, UnsupportedMedia, OtherVersion, StoreUnavailable, Unavailable, DiskFull),
)


def ended(description: str) -> dict[str, Any]:
    """The answer to the last bytes."""
    said = openapi.headers("Location", "Upload-Complete", "Upload-Offset")
    return {"description": description, "model": CheckpointOut | ColumnsOut | DatasetOut, **said}
