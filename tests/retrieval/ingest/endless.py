"""Readers that go wrong, for the tests of ``bounded``: what they do stands in the file."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Block, Unreadable


def blocks(path: Path) -> Iterator[Block]:
    todo = path.read_text()
    yield Block("title", f"{todo} \u00e4\ufffe\ud800".encode("utf-8", "replace").decode(), 3, metadata={"page": 1})
    if todo == "spin":
        while True:
            pass
    if todo == "memory":
        yield Block("", "x" * (1 << 30))
    if todo == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if todo == "refuse":
        raise Unreadable("it is refused.")
    if todo == "error":
        raise KeyError("odd")
    if todo == "print":
        print("a library says something")  # noqa: T201
        os.write(1, b"and something\n")
