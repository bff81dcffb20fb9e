"""What is left of CI jobs' keys and tokens, deleted when it says nothing any more."""

import sqlalchemy as sa

from service.engine.records import Records
from service.engine.tables import keys, oidc_tokens

KEPT_SECONDS = 7 * 24 * 3600.0  # for which keys of jobs are listed after they have ended


def trim(records: Records, now: float, most: int = 1000) -> int:
    """Delete some of what has ended; returns how many. The latest key stays: a service in which no
    key was ever made would be open.
    """
    latest = sa.select(keys.c.id).order_by(keys.c.created_at.desc(), keys.c.id).limit(1)
    ended = keys.c.subject.is_not(None), keys.c.expires_at < now - KEPT_SECONDS
    old_tokens = sa.select(oidc_tokens.c.token).where(oidc_tokens.c.expires_at < now).limit(most)
    old_keys = sa.select(keys.c.id).where(*ended).limit(most)
    with records.reading() as connection:
        spent = connection.execute(old_tokens).scalars().all()
        found = set(connection.execute(old_keys).scalars()) - set(
            connection.execute(latest).scalars()
        )
    if spent or found:
        with records.transaction() as connection:
            connection.execute(oidc_tokens.delete().where(oidc_tokens.c.token.in_(spent)))
            connection.execute(keys.delete().where(keys.c.id.in_(found)))
    return len(spent) + len(found)
