"""Errors of requests in the words of a command: options in place of fields, commands in place of
requests over HTTP.
"""

import re

from prescore import exit_codes
from prescore.errors import Answered, PrescoreClientError

_ADVICE = (  # what the service advises programs, and what a command's user can do
    (r"upload it with PUT /v1/checkpoints/\S+", "submit its file instead"),
    (r"upload them with PUT /v1/columns/\S+", "name their file instead"),
    (r"add it with PUT /v1/datasets/\{name\}", "add it by `prescore datasets add NAME FOLDER`"),
    (
        "begin one with POST /v1/studies",
        "begin one by `prescore correlations DATASET/SPLIT --compute`",
    ),
)
_FIELD = re.compile("send `([a-z_]+): true`")
_OPTIONS = {  # of fields that are not called as their option is
    "gates": "gate",
    "labels": "label",
    "captioners": "outputs",
    "stopping": "ratings",
    "metric": "metrics",
}
_WHOLE = {"decoding", "tokens", "query"}  # whose fields are options themselves
_FILES = {"stopping", "judgements"}  # options that name files with many lines
_ARGUMENTS = {"captions", "checkpoint", "dataset", "evaluation", "evaluations", "a", "b"}


def format_error(error: PrescoreClientError) -> str:
    """An error's lines, with what was probably meant."""
    text = error.format_lines(locate_field) if isinstance(error, Answered) else str(error)
    later = ["refused for now: try again later"] if exit_codes.is_for_now(error) else []
    text = "\n".join([text, *getattr(error, "__notes__", ()), *later])
    for pattern, advice in _ADVICE:
        text = re.sub(pattern, lambda _, advice=advice: advice, text)  # type: ignore[misc]
    return _FIELD.sub(lambda found: f"add `--{found[1].replace('_', '-')}`", text)


def locate_field(pointer: str) -> str:
    """Locate a JSON pointer in a command: an option; of captions, their item from 1."""
    first, *rest = pointer.removeprefix("/").split("/")
    if first in _WHOLE and rest:
        first, *rest = rest
    if not re.fullmatch("[a-z_]{1,40}", first):
        return pointer
    if first in _ARGUMENTS:
        item = [f"item {int(rest[0]) + 1}"] if rest and rest[0].isdecimal() else []
        return ", ".join([first, *item, *rest[len(item) :]])
    option = f"--{_OPTIONS.get(first, first).replace('_', '-')}"
    inside = [f"item {int(each) + 1}" if each.isdecimal() else each for each in rest]
    return ", ".join([option, *inside]) if first in _FILES else option
