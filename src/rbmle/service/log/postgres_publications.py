"""Publications in a table beside the log, for front ends on other machines."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rbmle.service.log import postgres_server as server
from rbmle.service.log.errors import LeaseLost, LogUnavailable
from rbmle.service.log.publications import PublicationVersion

TABLE = """
CREATE TABLE IF NOT EXISTS rbmle_published (
    name text PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
)
"""
TOKEN = "ALTER TABLE rbmle_published ADD COLUMN IF NOT EXISTS token bigint NOT NULL DEFAULT 0"
PUT = (
    "INSERT INTO rbmle_published (name, version, content, token) VALUES (%s, 1, %b, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = rbmle_published.version + 1,"
    " content = excluded.content, token = excluded.token"
    " WHERE rbmle_published.token <= excluded.token"
)
NEWEST = "SELECT token FROM rbmle_published WHERE name = %s"
NEWER = "SELECT version, content FROM rbmle_published WHERE name = %s AND version <> %s"
HAS_TABLE = "SELECT to_regclass('rbmle_published') IS NOT NULL"


class PostgresPublications:
    """Publications over one connection, which is made again when it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: server.ServerSession | None = None
        self._has_table = self._has_token = False
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        """Replace a row; readers see the old one or the new one."""
        with self._connected() as connection:
            if not self._has_token:
                with connection.transaction():
                    connection.execute(server.LOCK)  # else two that make it at a time fail
                    connection.execute(TABLE)
                    connection.execute(TOKEN)
                self._has_token = True
            # What is published is not missed after a crash, so nobody waits for the disk.
            connection.execute("SET synchronous_commit = off")
            own = self._newest(connection, name) if token is None else token
            if not connection.execute(PUT, (name, content, own)).rowcount:
                raise LeaseLost(own, self._newest(connection, name))

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
        with self._lock:
            self._end()

    def _newest(self, connection: server.ServerSession, name: str) -> int:
        (token,) = connection.execute(NEWEST, (name,)).fetchone() or (0,)
        return int(str(token))

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _connected(self) -> Iterator[server.ServerSession]:
        """Yield the connection, to one thread at a time."""
        try:
            with self._lock:
                if self._connection is None:
                    self._connection = server.connect(self._url)
                yield self._connection
        except psycopg.Error as error:
            self.close()
            raise LogUnavailable(
                f"cannot reach what is published in {server.place(self._url)}: {str(error).strip()}"
            ) from error
