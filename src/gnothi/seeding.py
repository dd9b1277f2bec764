"""Seeds that depend on what is asked, never on when: hash(run seed, question id, request).

The same request of the same question in the same run always gets the same seed, whatever else runs beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gnothi.concurrency import in_turn

_scope: ContextVar[tuple[int, str]] = ContextVar("gnothi_question_scope", default=(0, ""))


@contextmanager
def question_scope(run_seed: int, question_id: str) -> Iterator[None]:
    """Everything inside the block, tasks it starts included, belongs to this question of this run, and has its turn."""
    token = _scope.set((run_seed, question_id))
    try:
        with in_turn():
            yield
    finally:
        _scope.reset(token)


def derive(*request: object) -> int:
    """A seed in [0, 2**63) for a request, given as values with a stable ``repr`` (frozen dataclasses of plain data)."""
    digest = hashlib.blake2b(repr((_scope.get(), request)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
