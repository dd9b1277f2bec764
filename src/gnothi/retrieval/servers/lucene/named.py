"""The two engines as kinds of index."""

from __future__ import annotations

from functools import partial
from typing import Any

from gnothi.protocols import Retriever
from gnothi.retrieval.servers.lucene.index import TITLES, Engine
from gnothi.schemes import Scheme


def scheme(engine: Engine) -> Scheme[Retriever]:
    return Scheme(
        open=partial(_open, engine),
        summary=f"an index of {TITLES[engine]}, or several: https://HOST:PORT/NAME, or {engine}:FILE.toml",
        fingerprint=partial(_fingerprint, engine),
        target=partial(_target, engine),
    )


def _open(engine: Engine, argument: str) -> Retriever:
    from gnothi.retrieval.servers.lucene.search import opened

    return opened(argument, engine)


def _fingerprint(engine: Engine, argument: str) -> str:
    from gnothi.retrieval.servers.lucene.search import fingerprint

    return fingerprint(argument, engine)


def _target(engine: Engine, argument: str) -> Any:
    from gnothi.retrieval.servers.lucene.writer import opened

    return opened(argument, engine)
