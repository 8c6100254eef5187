"""Publications in a table beside the log, for front ends on other machines."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rbmle.service.log import postgres_server as server
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.publications import PublicationVersion

TABLE = """
CREATE TABLE IF NOT EXISTS rbmle_published (
    name text PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
)
"""
PUT = (
    "INSERT INTO rbmle_published VALUES (%s, 1, %b) ON CONFLICT (name)"
    " DO UPDATE SET version = rbmle_published.version + 1, content = excluded.content"
)
NEWER = "SELECT version, content FROM rbmle_published WHERE name = %s AND version <> %s"
HAS_TABLE = "SELECT to_regclass('rbmle_published') IS NOT NULL"


class PostgresPublications:
    """Publications over one connection, which is made again when it is lost; for one thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: server.ServerSession | None = None
        self._has_table = False

    def put(self, name: str, content: bytes) -> None:
        """Replace a row; readers see the old one or the new one."""
        with self._connected() as connection:
            if not self._has_table:
                with connection.transaction():
                    connection.execute(server.LOCK)  # else two that make it at a time fail
                    connection.execute(TABLE)
                self._has_table = True
            # What is published is not missed after a crash, so nobody waits for the disk.
            connection.execute("SET synchronous_commit = off")
            connection.execute(PUT, (name, content))

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        """Return the content of a row, if its version is not the known one."""
        with self._connected() as connection:
            if not self._has_table:
                self._has_table = connection.execute(HAS_TABLE).fetchone() == (True,)
            if not self._has_table:
                return None
            version = than if isinstance(than, int) else 0
            found = connection.execute(NEWER, (name, version), binary=True).fetchone()
        if found is None:
            return None
        seen, content = found
        assert isinstance(content, bytes)
        return seen, content

    def close(self) -> None:
        """End the session."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _connected(self) -> Iterator[server.ServerSession]:
        try:
            if self._connection is None:
                self._connection = server.connect(self._url)
            yield self._connection
        except psycopg.Error as error:
            self.close()
            raise LogUnavailable(
                f"cannot reach what is published in {server.place(self._url)}: {str(error).strip()}"
            ) from error
