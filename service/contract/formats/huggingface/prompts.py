"""What a model reads between a picture and a caption, where its `model_type` needs it said.

A folder's `prompt.json` says it: `{"prompt": "caption en"}`, as the library's processor takes it.
Nothing is assumed, since another prompt is another captioner; the file is part of the checkpoint's
digest like every other.
"""

from typing import Annotated

from pydantic import Field

from service.contract.errors import ConfigInvalid, InvalidPackage
from service.contract.formats import strict_json
from service.contract.formats.huggingface.parts import Family
from service.contract.formats.huggingface.reading import Part, checked
from service.contract.formats.packages import Package

FILE = "prompt.json"
_MOST_BYTES = 20_000


class _Prompt(Part):
    prompt: Annotated[str, Field(min_length=1, max_length=1_000)]


def of(package: Package, family: Family) -> str | None:
    """None where the family has none. Raises an InvalidCheckpoint that says what to do."""
    there = FILE in package.files
    if family.example_prompt is None:
        if there:
            raise InvalidPackage(
                f"{FILE}: expected none, since captions of a {family.model_type} follow the "
                "picture without a prompt: leave it out, or bring columns",
                pointer=f"/{FILE}",
            )
        return None
    if not there:
        raise InvalidPackage(
            f"expected {FILE} beside config.json: a {family.model_type} reads a prompt before a "
            'caption, and no file of the library says which. Write {"prompt": "…"} with what you '
            f"give its processor, such as {family.example_prompt!r}",
            pointer=f"/{FILE}",
        )
    return _text(package)


def _text(package: Package) -> str:
    try:
        found = strict_json.parse(package.text(FILE, _MOST_BYTES))
    except strict_json.NotJson as error:
        raise ConfigInvalid(f"{FILE}: {error}", pointer=f"/{FILE}{error.where}") from None
    if not isinstance(found, dict):
        raise ConfigInvalid(f"{FILE}: expected an object, found {found!r:.60}", pointer=f"/{FILE}")
    return checked(_Prompt, found, FILE).prompt
