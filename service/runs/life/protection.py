"""Labels that decide what others are compared with: only who may publish gives, changes or removes
them.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from service.contract.asking import Scope
from service.contract.errors import Forbidden
from service.contract.plain_text import quoted
from service.works.parts import Parts
from service.works.tables import labels


def check_given(parts: Parts, given: Mapping[str, str | None]) -> None:
    """Forbidden where one of these labels is protected, and the asker may not publish."""
    for name, value in given.items():
        if f"{name}={value}" in parts.protected and not parts.asker.scope.includes(Scope.PUBLISH):
            raise _forbidden(parts, f"{name}={value}", f"/labels/{name}")


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


def _forbidden(parts: Parts, label: str, pointer: str | None) -> Forbidden:
    return Forbidden(
        f"the label {quoted(label)} is protected: it needs a key with the scope {Scope.PUBLISH}, "
        f"found one with {parts.asker.scope}",
        pointer=pointer,
    )
