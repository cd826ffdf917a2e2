"""Which database a JDBC URL leads to, and what must not stand in one."""

from __future__ import annotations

import re

from reconcile_jobs.jdbc.database import Database
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.oracle import Oracle
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.jdbc.sqlserver import SQLServer
from reconcile_jobs.process.errors import UsageError

__all__ = ["database_of"]

_DATABASES: tuple[type[Database], ...] = (PostgreSQL, Oracle, MySQL, SQLServer)

# password=..., and user:password@ before a host.
_PASSWORD = re.compile(r"(?:passw(?:or)?d|pwd|passphrase|secret|token)\w*\s*=|//[^/?#@;]*:[^/?#@;]*@", re.IGNORECASE)


def database_of(url: str) -> Database:
    """Return the database that a URL leads to. Raises UsageError for others, and where it holds a password.

    Such a URL is not repeated.
    """
    found = next((kind for kind in _DATABASES if url.startswith(kind.prefix)), None)
    if _PASSWORD.search(url) or (found and found.password_in_url and re.search(found.password_in_url, url)):
        raise UsageError(
            "--url holds a password, which everybody on the machine could read: take it out, and let "
            "RECONCILE_JDBC_PASSWORD or the file of --properties hold it."
        )
    if found is None:
        known = ", ".join(f"{kind.prefix} ({kind.name})" for kind in _DATABASES)
        raise UsageError(f"--url leads to no database that is known here: it begins with one of {known}.")
    return found()
