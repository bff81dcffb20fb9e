"""A file with captions that came in place of a request, or of its list: told as what it is.

The client's commands read such files (`service/client/prescore/files/captions.py`).
"""

import io
import re
from collections.abc import Collection, Mapping
from typing import Any

from prescore import foreign

_LIST = '"captions": [{"image": "1.jpg", "caption": "a dog"}, …]'
_REQUEST = f'{{"dataset": "NAME/SPLIT", {_LIST}}}'
_DO = "`prescore submit FILE --dataset NAME/SPLIT` reads such a file and sends the request"
_LINES = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"(image|image_id|caption)"\s*:')
_HEADING = re.compile(rb"(\xef\xbb\xbf)?[^\n]*\bcaption\b.*[,\t]|[^\n]*[,\t].*\bcaption\b")
_DICTIONARY = "captions by image, as pycocoevalcap has them"
_SEEN = 20  # entries that are looked at
_DATASET = {"annotations", "images"}


def of_text(body: bytes) -> str | None:
    """The sentence for a body that is not JSON; None where it is no file with captions."""
    if _LINES.match(body):
        return _told(_REQUEST, "captions in JSON Lines")
    head = body[: foreign.HEAD_BYTES]
    if _HEADING.match(head) and foreign.of_file(io.BytesIO(head), len(head)) is foreign.TEXT:
        return _told(_REQUEST, "a table of captions (CSV)")
    return None


def of_json(body: Any, fields: Collection[str]) -> tuple[str, str] | None:
    """The JSON pointer and the sentence for a body, or for what stands at its `captions`."""
    match body:
        case {"captions": {**given}} if _is_dictionary(given):
            return "/captions", _told(_LIST, _DICTIONARY)
        case [{"caption": _}, *_]:
            return "", _told(_REQUEST, "the list alone")
        case {"caption": _}:
            return "", _told(_REQUEST, "a caption alone")
        case {**given} if not given.keys() & fields and _is_dictionary(given):
            return "", _told(_REQUEST, _DICTIONARY)
    return None


def _is_dictionary(given: Mapping[Any, Any]) -> bool:
    """Whether its values are lists of captions, as texts or objects."""
    if not given or given.keys() & _DATASET:
        return False
    for _, said in zip(range(_SEEN), given.values(), strict=False):
        match said:
            case [str() | {"caption": _}, *_]:
                continue
        return False
    return True


def _told(expected: str, found: str) -> str:
    return f"expected {expected}, found {found}: {_DO}"
