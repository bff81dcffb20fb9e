"""Quotas of teams and keys: a file that the operator writes, read strictly.

[default]                  # of every team, and of every key
requests = 60000           # a minute, of a key
runs = 500                 # unfinished ones of a team
upload_bytes = 1e12        # a day, of a team
stored_bytes = 5e12        # of a team's checkpoints, columns and datasets
device_seconds = 86400     # a day, of what is computed for a team

[teams.vision]             # what is other for one team
runs = 1000

[keys.4k2m9x0qpz7a]        # and for one key
requests = 600
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.contract.askers import TEAM, Asker
from service.contract.errors import InvalidSetting

REQUESTS = 60_000  # a minute, of a key: a thousand polls a second
_KEY = r"[0-9a-z]{12}"
_LONGEST = 1_000_000  # bytes of the file
_Whole = Annotated[float, Field(ge=0, le=1e18)]


class Quotas(BaseModel):
    """Quotas of a team or a key; None: as much as there is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests: _Whole | None = None
    runs: _Whole | None = None
    upload_bytes: _Whole | None = None
    stored_bytes: _Whole | None = None
    device_seconds: _Whole | None = None


class QuotaTable(BaseModel):
    """Quotas by team and by key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: Quotas = Quotas(requests=REQUESTS)
    teams: dict[Annotated[str, Field(pattern=f"^{TEAM}$")], Quotas] = {}
    keys: dict[Annotated[str, Field(pattern=f"^{_KEY}$")], Quotas] = {}

    def of(self, asker: Asker) -> Quotas:
        """Quota of a key: its own, else its team's, else the default. Requests without one have
        none.
        """
        if asker.key is None:
            return Quotas()
        given = self.keys.get(asker.key), self.teams.get(asker.team)
        found: dict[str, Any] = self.default.model_dump()
        for quotas in reversed([one for one in given if one is not None]):
            found |= quotas.model_dump(exclude_unset=True)
        return Quotas(**found)


def read_quotas(path: Path | None) -> QuotaTable:
    """Read the quotas. Raises InvalidSetting with the place of the fault."""
    if path is None:
        return QuotaTable()
    try:
        content = path.read_bytes()
        if len(content) > _LONGEST:
            raise InvalidSetting(f"PRESCORE_LIMITS: {path} has more than {_LONGEST:,} bytes")
        table = QuotaTable.model_validate(tomllib.loads(content.decode()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"PRESCORE_LIMITS: {path} cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = re.sub(r"\.\[key\]$", "", ".".join(map(str, first["loc"])))
        raise InvalidSetting(f"PRESCORE_LIMITS: {path}, {place}: {first['msg']}") from None
    given = table.default.model_dump(exclude_unset=True)
    return table.model_copy(update={"default": Quotas(**{"requests": REQUESTS, **given})})
