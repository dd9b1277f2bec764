"""A table of passages: where it is, what its columns are called, how long to wait; and the SQL that this makes.

Names become SQL by ``psycopg.sql.Identifier`` only, values travel as parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.retrieval.filters import Filter, Filters, Span
from gnothi.retrieval.servers.searching import By, Distance, check_encoder
from gnothi.retrieval.servers.settings import FILE, check_waits, described
from gnothi.retrieval.terms import key_term

ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
_OPERATORS = {"inner": "<#>", "cosine": "<=>", "euclidean": "<->"}  # pgvector: the smaller the nearer, negative for inner


@dataclass(frozen=True, slots=True)
class Table:
    """``server`` is an address of PostgreSQL's own form; without its beginning it is taken as one (``//host/database``).
    ``table`` may name a schema (``schema.table``). ``words`` is a column of type tsvector; empty: it is computed for every row
    at each search. ``prefix`` is put before ids. Times are in seconds."""

    server: str
    table: str = "passages"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    language: str = "english"
    by: By = "words"
    vectors: str = "gnothi_vector"
    encoder: str = ""
    distance: Distance = "inner"
    prefix: str = ""
    timeout: float = 30.0
    patience: float = 120.0
    connections: int = 4
    optional: bool = False

    def __post_init__(self) -> None:
        check_waits(self)
        for name in ("table", "id", "text"):
            if not getattr(self, name).strip("."):
                raise InvalidSetting(f"{name} of a table: got {getattr(self, name)!r}, expected a name.")
        check_encoder(self)

    @property
    def address(self) -> str:
        return f"postgresql:{self.server}" if self.server.startswith("//") else self.server

    @property
    def name(self) -> str:
        """For messages: without user and password."""
        from psycopg.conninfo import conninfo_to_dict

        parts = conninfo_to_dict(self.address)
        where = ":".join(str(parts[key]) for key in ("host", "port") if parts.get(key))
        return f"{where or 'the local server'}/{parts.get('dbname') or ''} table {self.table}"

    # --- SQL --------------------------------------------------------------------------------------------------------

    def sql(self, template: str, **more: Any) -> Any:
        """``{table}``, ``{id}`` and the other names as identifiers, ``{language}`` as a literal, with what else is given. To be
        run with parameters, if only with none: a name may hold the mark of a parameter, which is doubled here."""
        from psycopg import sql

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
        from psycopg import sql

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
        from psycopg import sql

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
        from psycopg import sql

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


def _condition(one: Filter) -> str:
    exact, ranges = _apart(one)
    between = 'EXISTS (SELECT FROM unnest({terms}) gnothi_term WHERE gnothi_term COLLATE "C" BETWEEN %s AND %s)'
    some = " OR ".join([*(["{terms} && %s::text[]"] if exact else []), *[between] * len(ranges)])
    return f"({{terms}} && %s::text[] AND NOT ({some}))" if one.negated else f"({some})"


def _values(one: Filter) -> Iterator[str | list[str]]:
    exact, ranges = _apart(one)
    if one.negated:
        yield [key_term(one.key)]
    if exact:
        yield exact
    for span in ranges:
        yield from span


def _apart(one: Filter) -> tuple[list[str], list[Span]]:
    return [low for low, high in one.spans if low == high], [span for span in one.spans if span[0] != span[1]]


def _doubled(name: str) -> str:
    return name.replace("%", "%%")


def tables(argument: str) -> list[Table]:
    """What ``postgres:ARGUMENT`` names, one table for each server. Raises InvalidSetting, InvalidInput, UnknownName, or
    MissingDependency without psycopg."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingDependency("psycopg", "postgres", "<--index postgres:...>") from error
    found = described(Table, argument, "postgres")
    for table in found:
        try:
            parts = conninfo_to_dict(table.address)
        except psycopg.ProgrammingError as error:
            raise InvalidSetting(
                f"the address of a server: PostgreSQL says {str(error).strip()}. Expected postgres://USER@HOST/DATABASE#TABLE."
            ) from None
        if parts.get("password") and not argument.endswith(FILE):
            raise InvalidSetting(
                "an address with a password: runs note the name of their index. Put the password into the environment variable "
                "PGPASSWORD or into ~/.pgpass, or the address into a file: postgres:FILE.toml."
            )
    return found
