"""Tables of LanceDB, in one folder or in several."""

from __future__ import annotations

from contextlib import AbstractContextManager

from gnothi.protocols import Retriever
from gnothi.retrieval.targets import Target
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.servers.lancedb.search import opened

    return opened(argument)


def _fingerprint(argument: str) -> str:
    from gnothi.retrieval.servers.lancedb.search import fingerprint

    return fingerprint(argument)


def _target(argument: str) -> AbstractContextManager[Target]:
    from gnothi.retrieval.servers.lancedb.writer import opened

    return opened(argument)


SCHEME = Scheme(
    open=_open,
    summary="a table of LanceDB, or several: lancedb:FOLDER#TABLE, or lancedb:FILE.toml",
    fingerprint=_fingerprint,
    target=_target,
)
