"""Tables of PostgreSQL, on one server or on several."""

from __future__ import annotations

from contextlib import AbstractContextManager

from gnothi.protocols import Retriever
from gnothi.retrieval.targets import Target
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.servers.postgres.table import tables

    tables(argument)  # says what package is lacking
    from gnothi.retrieval.servers.postgres.search import opened

    return opened(argument)


def _fingerprint(argument: str) -> str:
    from gnothi.retrieval.servers.postgres.search import fingerprint

    return fingerprint(argument)


def _target(argument: str) -> AbstractContextManager[Target]:
    from gnothi.retrieval.servers.postgres.table import tables

    found = tables(argument)
    from gnothi.retrieval.servers.postgres.writer import opened

    return opened(argument, found)


SCHEME = Scheme(
    open=_open,
    summary="a table of PostgreSQL, or several: postgres://USER@HOST/DATABASE#TABLE, or postgres:FILE.toml",
    fingerprint=_fingerprint,
    target=_target,
)
