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
            "--url holds a password, which every user of the machine could read: remove it, and give the "
            "password in RECONCILE_JDBC_PASSWORD or in the file of --properties."
        )
    if found is None:
        known = ", ".join(f"{kind.prefix} ({kind.name})" for kind in _DATABASES)
        raise UsageError(f"--url is not of a supported database: it must begin with one of {known}.")
    return found()
