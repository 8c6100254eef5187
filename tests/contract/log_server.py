"""A PostgreSQL server that the tests start themselves, and a wire to it that can be cut."""

import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg

from rbmle.service.log import Log
from rbmle.service.log.postgres import PostgresLog

SOCKET = ".s.PGSQL.5432"
NUMBERS = itertools.count()
Losable = Literal["request", "answer"]


def programs() -> Path | None:
    """Return the folder of the server's programs, or None where there is no server."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def unprivileged() -> str | None:
    """Return whom to run the server as, which refuses to be root; None is whoever we are."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """A server in a temporary folder, on a socket there, with nothing but defaults."""

    def __init__(self, bin: Path) -> None:
        self.bin = bin
        self.user = unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="rbmle-pg-"))
        if self.user is not None:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "rbmle", "-E", "UTF8", "--locale=C")
        self.start()

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses="
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def url(self, schema: str, folder: Path | None = None) -> str:
        host = quote(str(folder or self.folder), safe="")
        return f"postgresql://rbmle@{host}/postgres?options=-csearch_path%3D{schema}"

    def execute(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return the answer to a query, through a connection of its own."""
        with psycopg.connect(self.url("public"), autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), "-D", str(self.folder / "data"), *arguments]
        subprocess.run(
            command, user=self.user, cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )


class Wire:
    """A socket that passes everything on to the server's, until it is told otherwise."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self.folder = Path(tempfile.mkdtemp(prefix="rbmle-wire-"))
        self.to_lose: Losable | None = None  # None lets everything pass
        self.is_cut_then = False
        self.has_rows = False  # rows were sent since
        self.is_cut = False
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def lose(self, what: Losable, is_cut_then: bool = False) -> None:
        """Lose the next rows, or the answer to them, with the connection, and others then, if told so."""
        self.to_lose, self.is_cut_then, self.has_rows = what, is_cut_then, False

    def cut(self) -> None:
        """Break every connection; new ones fail until it is mended."""
        self.is_cut = True
        for end in self._ends:
            shut(end)

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        self.cut()
        shut(self._listener)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with suppress(OSError):  # when the listener is shut
            while True:
                client, _ = self._listener.accept()
                self._ends.append(client)
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        self._ends.append(server)
        try:
            if self.is_cut:
                raise ConnectionRefusedError("the wire is cut")
            server.connect(str(self.server / SOCKET))
        except OSError:
            shut(client)
            return
        for pump in (self._ask, self._answer):
            self._threads.append(threading.Thread(target=pump, args=(client, server)))
            self._threads[-1].start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        """Pass requests on, and lose the next one if told so."""
        with suppress(OSError):
            while data := client.recv(65536):
                self.has_rows |= b"INSERT INTO rbmle_log" in data
                if self._loses("request"):
                    break
                server.sendall(data)
        shut(client)
        shut(server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        """Pass answers on, and lose the next one if told so."""
        with suppress(OSError):
            while data := server.recv(65536):
                if self._loses("answer"):
                    break
                client.sendall(data)
        shut(client)
        shut(server)

    def _loses(self, what: Losable) -> bool:
        """Return whether this is to be lost, which is done once."""
        if self.to_lose != what or not self.has_rows:
            return False
        self.to_lose = None
        self.is_cut = self.is_cut_then
        return True


def shut(end: socket.socket) -> None:
    """End both directions, so that whoever waits on it wakes."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@dataclass(kw_only=True)
class OnServer:
    """A place for a log in a schema of its own, behind a wire."""

    server: Server
    wire: Wire
    schema: str = field(default_factory=lambda: f"log_{next(NUMBERS)}")

    def __post_init__(self) -> None:
        self.server.execute(f"CREATE SCHEMA {self.schema}")

    @property
    def url(self) -> str:
        return self.server.url(self.schema, self.wire.folder)

    def open(self) -> Log:
        return PostgresLog(self.url)

    def damage(self, seq: int) -> None:
        self.server.execute(
            f"UPDATE {self.schema}.rbmle_log SET payload = set_byte(payload, 0,"
            " get_byte(payload, 0) # 1) WHERE seq = %s",
            (seq,),
        )

    @contextmanager
    def failing(self) -> Iterator[None]:
        self.wire.cut()
        yield
        self.wire.mend()
