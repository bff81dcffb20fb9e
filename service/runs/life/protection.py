"""Labels that decide what others are compared with: only who may publish gives, changes or removes
them.
"""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.plain_text import quoted
from service.contract.askers import Scope
from service.contract.errors import Forbidden
from service.contract.formats import strict_json
from service.engine.parts import Parts
from service.engine.tables import labels


def check_given(parts: Parts, given: Mapping[str, str | None]) -> None:
    """Forbidden where one of these labels is protected, and the asker may not publish."""
    for name, value in given.items():
        if f"{name}={value}" in parts.protected and not parts.asker.scope.includes(Scope.PUBLISH):
            raise _forbidden(parts, f"{name}={value}", strict_json.join_pointer(("labels", name)))


def with_own(parts: Parts, given: Mapping[str, str]) -> Mapping[str, str]:
    """The labels of a new run: those of the request, and those that a CI job's key gives. Forbidden
    where they contradict each other.
    """
    for name, value in parts.asker.labels.items():
        if given.get(name, value) != value:
            raise _dictated(name, value)
    return {**given, **parts.asker.labels}


def check_changed(parts: Parts, names: Iterable[str]) -> None:
    """Forbidden where one of these labels follows from the asker's job: it is not to be changed by
    its key.
    """
    for name in names:
        if name in parts.asker.labels:
            raise _dictated(name, parts.asker.labels[name])


def check_had(parts: Parts, connection: Connection, identity: str, *names: str) -> None:
    """Forbidden where the run has a protected label, of these names if there are some, and the
    asker may not publish.
    """
    if parts.asker.scope.includes(Scope.PUBLISH):
        return
    had = sa.select(labels.c.name, labels.c.value).where(labels.c.run_id == identity)
    for row in connection.execute(had):
        label = f"{row.name}={row.value}"
        if label in parts.protected and (not names or row.name in names):
            raise _forbidden(parts, label, None)


def _dictated(name: str, value: str) -> Forbidden:
    return Forbidden(
        f"the key is a CI job's, from which the label {quoted(name)} follows: expected "
        f"{quoted(value)}, as the job's own branch, commit and run are, or no such label",
        pointer=strict_json.join_pointer(("labels", name)),
    )


def _forbidden(parts: Parts, label: str, pointer: str | None) -> Forbidden:
    return Forbidden(
        f"the label {quoted(label)} is protected: it needs a key with the scope {Scope.PUBLISH}, "
        f"found one with {parts.asker.scope}",
        pointer=pointer,
    )
