"""Searching tables of PostgreSQL by words (``ts_rank``), by vectors (pgvector), or by both.

Names become SQL by ``psycopg.sql.Identifier`` only, values travel as parameters.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from gnothi.errors import IndexUnavailable, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filter, Filters, Span
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrieval.servers.searching import (
    FILE,
    METADATA,
    ORIGIN,
    TERMS,
    Place,
    Results,
    ServerPart,
    Waits,
    all_contents,
    check_weights,
    described,
    searcher,
)
from gnothi.retrieval.terms import key_term
from gnothi.types import NO_METADATA, Metadata, Passage, ScoredPassage, encodable

NOTES = "_gnothi"
"""How the table of what we note ends."""
_OPERATORS = {"inner": "<#>", "cosine": "<=>", "euclidean": "<->"}  # pgvector: the smaller the nearer, negative for inner
_MOST = 2**31 - 1
_PASSING = ("08", "53", "57", "58", "40", "55P03", "XX")
"""Classes of SQLSTATE after which another try may succeed: connection, resources, the operator or a crash, conflicts."""
_SPARE = 1.0


@dataclass(frozen=True)
class Table(Place, Waits):
    """``server`` is an address of PostgreSQL's own form; without its beginning it is taken as one (``//host/database``).
    ``table`` may name a schema (``schema.table``). ``words`` is a column of type tsvector; empty: it is computed for every row
    at each search."""

    table: str = "passages"
    language: str = "english"
    optional: bool = False

    @property
    def address(self) -> str:
        return f"postgresql:{self.server}" if self.server.startswith("//") else self.server

    @property
    def name(self) -> str:
        """For messages: without user and password."""
        parts = conninfo_to_dict(self.address)
        where = ":".join(str(parts[key]) for key in ("host", "port") if parts.get(key))
        return f"{where or 'the local server'}/{parts.get('dbname') or ''} table {self.table}"

    def sql(self, template: str, **more: Any) -> Any:
        """``{table}``, ``{id}`` and the other names as identifiers, ``{language}`` as a literal, with what else is given. To be
        run with parameters, if only with none: a name may hold the mark of a parameter, which is doubled here."""
        columns = ("id", "title", "text", "words", "vectors")
        names: dict[str, Any] = {name: sql.Identifier(_doubled(getattr(self, name))) for name in columns if getattr(self, name)}
        names["title"] = names.get("title", sql.Literal(""))
        names |= {
            "table": self.beside(),
            "origin": sql.Identifier(ORIGIN),
            "metadata": sql.Identifier(METADATA),
            "terms": sql.Identifier(TERMS),
            "language": sql.Literal(_doubled(self.language)),
        }
        return sql.SQL(template).format(**(names | more))  # type: ignore[arg-type,unused-ignore]

    def beside(self, ending: str = "") -> Any:
        """The table, or what stands beside it."""
        return sql.Identifier(*map(_doubled, self.parts(ending)))

    def parts(self, ending: str = "") -> tuple[str, ...]:
        """The schema, if one is named, and the table."""
        *schema, table = self.table.split(".", 1)
        return (*schema, table + ending)

    def by_words(self, ours: bool = False, filters: Filters = ()) -> Any:
        """Parameters: query, those of ``where``, k. Any word may match; each is quoted, so that none is an operator. ``ours``:
        the table keeps metadata."""
        return self.sql(
            "WITH gnothi_asked AS (SELECT (array_to_string(ARRAY("
            "SELECT '''' || replace(replace(one, '\\', '\\\\'), '''', '''''') || ''''"
            " FROM unnest(tsvector_to_array(to_tsvector({language}::regconfig, %s))) one), ' | '))::tsquery AS query)"
            " SELECT {id}::text, coalesce({title}::text, ''), coalesce({text}::text, ''),"
            " ts_rank({found}, gnothi_asked.query, 1) AS score, {known} FROM {table}, gnothi_asked"
            ' WHERE {found} @@ gnothi_asked.query AND {where} ORDER BY score DESC, {id}::text COLLATE "C" LIMIT %s',
            found=self.sql("{words}") if self.words else self.computed(),
            **self._known(ours, filters),
        )

    def columns(self) -> Any:
        """How many of two columns there are. Parameters: their names."""
        name = sql.Identifier(*self.parts()).as_string(None)
        return sql.SQL(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass({}) AND NOT attisdropped AND attname IN (%s, %s)"
        ).format(sql.Literal(_doubled(name)))

    def computed(self) -> Any:
        """Title and text as words, the title with the greater weight."""
        return self.sql(
            "(setweight(to_tsvector({language}::regconfig, coalesce({title}::text, '')), 'A') ||"
            " to_tsvector({language}::regconfig, coalesce({text}::text, '')))"
        )

    def _known(self, ours: bool, filters: Filters) -> dict[str, Any]:
        return {"known": self.sql("{metadata}" if ours else "NULL"), "where": self.sql(where(filters) if filters else "true")}

    def by_vectors(self, ours: bool = False, filters: Filters = ()) -> Any:
        """Parameters: vector, those of ``where``, k."""
        distance = self.sql("({vectors} {operator} %s::vector)", operator=sql.SQL(_OPERATORS[self.distance]))
        return self.sql(
            "SELECT {id}::text, coalesce({title}::text, ''), coalesce({text}::text, ''), {distance} AS far, {known}"
            ' FROM {table} WHERE {vectors} IS NOT NULL AND {where} ORDER BY far, {id}::text COLLATE "C" LIMIT %s',
            distance=distance,
            **self._known(ours, filters),
        )


def where(filters: Filters) -> str:
    """Filters as a condition, of texts of ours alone."""
    return " AND ".join(map(_condition, filters))


def values(filters: Filters) -> list[str | list[str]]:
    """The parameters of ``where``."""
    return [value for one in filters for value in _values(one)]


def _condition(condition: Filter) -> str:
    exact, ranges = _apart(condition)
    between = 'EXISTS (SELECT FROM unnest({terms}) gnothi_term WHERE gnothi_term COLLATE "C" BETWEEN %s AND %s)'
    some = " OR ".join([*(["{terms} && %s::text[]"] if exact else []), *[between] * len(ranges)])
    return f"({{terms}} && %s::text[] AND NOT ({some}))" if condition.negated else f"({some})"


def _values(condition: Filter) -> Iterator[str | list[str]]:
    exact, ranges = _apart(condition)
    if condition.negated:
        yield [key_term(condition.key)]
    if exact:
        yield exact
    for span in ranges:
        yield from span


def _apart(condition: Filter) -> tuple[list[str], list[Span]]:
    return [low for low, high in condition.spans if low == high], [span for span in condition.spans if span[0] != span[1]]


def _doubled(name: str) -> str:
    return name.replace("%", "%%")


def tables(argument: str) -> list[Table]:
    """What ``postgres:ARGUMENT`` names, one table for each server. Raises InvalidSetting, InvalidInput, UnknownName."""
    places = described(Table, argument, "postgres")
    for table in places:
        try:
            parts = conninfo_to_dict(table.address)
        except psycopg.ProgrammingError as error:
            raise InvalidSetting(
                f"the address of a server: PostgreSQL says {str(error).strip()}. Expected postgres://USER@HOST/DATABASE#TABLE."
            ) from None
        if parts.get("password") and not argument.endswith(FILE):
            raise InvalidSetting(
                "the address of an index: got one with a password, which runs would record. Put the password into the "
                "environment variable PGPASSWORD or into ~/.pgpass, or the address into a file: postgres:FILE.toml."
            )
    return places


class Server:
    """Keeps its connections: at most ``connections`` searches at a time; others wait, which counts against no time-out. Used in
    one event loop."""

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
                rows: list[tuple[Any, ...]] = await (await connection.execute(query, values)).fetchall()
        except TimeoutError:
            raise Passing(f"no answer within {self.table.timeout:g} s") from None
        except psycopg.Error as error:
            if late:
                raise Passing(f"no answer within {self.table.timeout:g} s") from None
            if not passing(error):
                raise refused(self.table, error) from None
            raise Passing(reason_of(error)) from None
        else:
            self._idle.append(connection)
            connection = None
            return rows
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
    try:
        await connection.execute(*limits(table))
    except BaseException:  # the time-out's cancellation, too
        await _close(connection)
        raise
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


def reason_of(error: psycopg.Error) -> str:
    """The first line of what the server says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def refused(table: Table, error: psycopg.Error) -> IndexUnavailable:
    return IndexUnavailable(
        f"{table.name}: PostgreSQL says: {reason_of(error)}. Check the names in <--index postgres:...>; "
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
        raise IndexUnavailable(
            f"{table.name} cannot be reached: {reason_of(error)}. Check its address, and that it runs."
        ) from None
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


def read_notes(connection: Any, table: Table) -> dict[str, str]:
    """By name; nothing for a table of others. ``content`` changes with the passages, ``encoder`` is the fingerprint of the
    weights that made the vectors."""
    if not exists(connection, table.parts(NOTES)):
        return {}
    return dict(connection.execute(table.sql("SELECT name, value FROM {notes}", notes=table.beside(NOTES)), ()).fetchall())


def exists(connection: Any, parts: tuple[str, ...]) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", (sql.Identifier(*parts).as_string(connection),)).fetchone()
    return row is not None and row[0] is not None


class _Part(ServerPart[Server]):
    """Passages whose vectors are near that of the query, or that hold any word of it, ranked by ``ts_rank`` over the length of
    the passage: it counts how often and where words occur, not how rare they are."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Results:
        table, ours, vector = self._server.table, await self._server.ours(), await self.vector(query)
        if filters and not ours:
            raise cannot(table.name, f"column {TERMS}")
        value = encodable(query).replace("\0", " ") if vector is None else as_vector(vector)
        statement = table.by_words(ours, filters) if vector is None else table.by_vectors(ours, filters)
        rows = await self._server.rows(statement, (value, *values(filters), min(k, _MOST)))
        sign = 1 if vector is None else -1
        return [
            ScoredPassage(Passage(f"{table.prefix}{key}", text, title, from_jsonb(known)), float(sign * score))
            for key, title, text, score, known in rows
        ]


def opened(argument: str) -> Retriever:
    """Raises IndexUnavailable where a server cannot be reached or lacks the table, unless it is optional."""
    servers = {table: Server(table) for table in tables(argument)}
    return searcher(
        list(servers),
        f"postgres:{argument}",
        _check,
        lambda table, encoder: _Part(servers[table], encoder),
        alike=len({table.language for table in servers}) == 1,
    )


def fingerprint(argument: str) -> str:
    """Of tables that we built; empty where one of them was made by others, or does not answer and need not."""
    return all_contents(map(_content, tables(argument)))


def _content(table: Table) -> str:
    notes: dict[str, str] = {}
    _checked(table, lambda connection: notes.update(read_notes(connection, table)))
    return notes.get("content", "")


def as_vector(vector: Vectors) -> str:
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _check(table: Table) -> None:
    """The columns are there and can be searched, and vectors are those of the encoder."""
    notes: dict[str, str] = {}

    def look(connection: Any) -> None:
        if table.by != "vectors":
            connection.execute(table.by_words(), ("", 1))
        if table.by != "words":
            connection.execute(table.sql("SELECT {vectors} FROM {table} LIMIT 0"), ())
            notes.update(read_notes(connection, table))

    _checked(table, look)
    check_weights(notes, table.name, table.encoder)


def _checked(table: Table, look: Callable[[Any], None]) -> None:
    try:
        checked(table, look)
    except IndexUnavailable:
        if not table.optional:  # each search says that it lacks it
            raise


def from_jsonb(stored: Mapping[str, Any] | None) -> Metadata:
    """A large whole number was not one: PostgreSQL writes 1e20 out."""
    values = {key: float(one) if isinstance(one, int) and abs(one) >= 2**63 else one for key, one in (stored or {}).items()}
    return Metadata(values) if values else NO_METADATA
