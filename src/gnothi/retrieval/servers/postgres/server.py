"""Asking one server: connections that are kept, limits of time, another try after a failure that may pass."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrieval.servers.postgres.table import METADATA, TERMS, Table

_PASSING = ("08", "53", "57", "58", "40", "55P03", "XX")
"""Classes of SQLSTATE after which another try may succeed: connection, resources, the operator or a crash, conflicts."""
_SPARE = 1.0


class Server:
    """At most ``connections`` searches at a time; others wait, which counts against no time-out. Used in one event loop."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.name, self.optional = table.name, table.optional
        self._patience = Patience(table.patience, table.name)
        self._room = asyncio.Semaphore(table.connections)
        self._ours: bool | None = None
        self._idle: list[psycopg.AsyncConnection[Any]] = []

    async def rows(self, query: Any, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Raises IndexUnavailable where there is no answer within the table's ``patience``, or none to be had."""
        return await self._patience.persist(lambda: self._try(query, values))

    async def ours(self) -> bool:
        """Whether the table keeps metadata: whether a build of ours made it. Raises as ``rows``."""
        if self._ours is None:
            self._ours = bool((await self.rows(self.table.columns(), (METADATA, TERMS)))[0][0] == 2)
        return self._ours

    async def keys(self) -> list[str]:
        """Of the metadata of all passages; none where none are kept."""
        if not await self.ours():
            return []
        rows = await self.rows(self.table.sql("SELECT DISTINCT jsonb_object_keys({metadata}) FROM {table}"), ())
        return [str(key) for (key,) in rows]

    async def _try(self, query: Any, values: Sequence[object]) -> list[tuple[Any, ...]]:
        async with self._room:
            self._patience.check()
            return await self._ask(query, values)

    async def _ask(self, query: Any, values: Sequence[object]) -> list[tuple[Any, ...]]:
        connection, late = None, False

        def hang_up() -> None:
            nonlocal late
            late = connection is not None and _hang_up(connection)

        # The server's own limit comes first; these are for one that is gone without a word. What is cancelled, psycopg tells
        # the server, and waits ten seconds: so the connection is cut first.
        seconds = self.table.timeout + _SPARE
        patience = asyncio.get_running_loop().call_later(seconds, hang_up)
        try:
            async with asyncio.timeout(seconds + _SPARE):
                connection = self._idle.pop() if self._idle else await connect(self.table)
                found: list[tuple[Any, ...]] = await (await connection.execute(query, values)).fetchall()
        except TimeoutError:
            raise Passing(f"no answer within {self.table.timeout:g} s") from None
        except psycopg.Error as error:
            if late:
                raise Passing(f"no answer within {self.table.timeout:g} s") from None
            if not passing(error):
                raise refused(self.table, error) from None
            raise Passing(said(error)) from None
        else:
            self._idle.append(connection)
            connection = None
            return found
        finally:
            patience.cancel()
            if connection is not None:  # in an unknown state
                await _close(connection)

    async def aclose(self) -> None:
        while self._idle:
            await _close(self._idle.pop())


async def connect(table: Table) -> psycopg.AsyncConnection[Any]:
    connection = await psycopg.AsyncConnection.connect(
        table.address, autocommit=True, prepare_threshold=None, connect_timeout=max(1, round(table.timeout))
    )
    await connection.execute(*limits(table))
    return connection


def limits(table: Table) -> tuple[str, tuple[str, ...]]:
    """For a connection that only reads. Indexes of vectors go on until there are enough rows (pgvector 0.8 and later)."""
    return (
        "SELECT set_config('statement_timeout', %s, false), set_config('default_transaction_read_only', 'on', false),"
        " set_config('hnsw.iterative_scan', 'strict_order', false),"
        " set_config('ivfflat.iterative_scan', 'relaxed_order', false)",
        (f"{max(1, round(table.timeout * 1000))}",),
    )


def passing(error: psycopg.Error) -> bool:
    state = error.sqlstate
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        state is None or state.startswith(_PASSING)
    )


def said(error: psycopg.Error) -> str:
    """The first line of what the server says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def refused(table: Table, error: psycopg.Error) -> IndexUnavailable:
    return IndexUnavailable(
        f"{table.name}: PostgreSQL says: {said(error)}. Check the names in <--index postgres:...>; "
        "columns are named in a file, postgres:FILE.toml."
    )


def checked(table: Table, look: Callable[[psycopg.Connection[Any]], None]) -> None:
    """Connect once and ``look``. Raises IndexUnavailable at once, also for what might pass: a mistake shows before the first
    question."""
    try:
        with psycopg.connect(
            table.address, autocommit=True, prepare_threshold=None, connect_timeout=max(1, round(table.timeout))
        ) as connection:
            connection.execute(*limits(table))
            look(connection)
    except psycopg.OperationalError as error:
        raise IndexUnavailable(f"{table.name} cannot be reached: {said(error)}. Check its address, and that it runs.") from None
    except psycopg.Error as error:
        raise refused(table, error) from None


def _hang_up(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether there was anything to cut: whoever waits for the server then hears that it is gone."""
    try:
        with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line:
            line.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        return False
    return True


async def _close(connection: psycopg.AsyncConnection[Any]) -> None:
    try:
        async with asyncio.timeout(_SPARE):
            await connection.close()
    except (TimeoutError, psycopg.Error):
        pass


# What we note beside a table that we built.

NOTES, SOURCES = "_gnothi", "_gnothi_sources"


def read_notes(connection: Any, table: Table) -> dict[str, str]:
    """By name; nothing for a table of others. ``content`` changes with the passages, ``encoder`` is the fingerprint of the
    weights that made the vectors."""
    if not exists(connection, table.parts(NOTES)):
        return {}
    return dict(connection.execute(table.sql("SELECT name, value FROM {notes}", notes=table.beside(NOTES)), ()).fetchall())


def exists(connection: Any, parts: tuple[str, ...]) -> bool:
    from psycopg import sql

    row = connection.execute("SELECT to_regclass(%s)", (sql.Identifier(*parts).as_string(connection),)).fetchone()
    return row is not None and row[0] is not None
