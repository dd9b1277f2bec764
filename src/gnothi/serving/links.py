"""Links to passages and reports that need no key, since a browser sends none: signed, and valid for a while.

The secret is the process's own: a restart ends all links, as it forgets the passages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from gnothi.types import Passage

MOST = 10_000
"""Passages that are remembered, those that were linked last."""


class Links:
    """``lifetime`` in seconds; ``clock`` gives those since the epoch."""

    def __init__(self, lifetime: float, clock: Callable[[], float] = time.time) -> None:
        self._secret = secrets.token_bytes(32)
        self._lifetime, self._clock = lifetime, clock
        self._passages: OrderedDict[str, Passage] = OrderedDict()

    def passage(self, passage: Passage) -> str:
        """A signed path to the passage, which is remembered. Paths hold a digest: no id can lead anywhere else."""
        name = hashlib.sha256(f"{passage.id}\n{passage.title}\n{passage.text}".encode()).hexdigest()[:24]
        self._passages[name] = passage
        self._passages.move_to_end(name)
        while len(self._passages) > MOST:
            self._passages.popitem(last=False)
        return self.signed(f"/passages/{name}")

    def find(self, name: str) -> Passage | None:
        return self._passages.get(name)

    def signed(self, path: str) -> str:
        expires = int(self._clock() + self._lifetime)
        return f"{path}?expires={expires}&signature={self._signature(path, str(expires))}"

    def valid(self, path: str, expires: str, signature: str) -> bool:
        """Whether the link is ours and not too old."""
        right = hmac.compare_digest(self._signature(path, expires).encode(), signature.encode())
        return right and expires.isascii() and expires.isdigit() and self._clock() <= int(expires)

    def _signature(self, path: str, expires: str) -> str:
        return hmac.new(self._secret, f"{path}\n{expires}".encode(), hashlib.sha256).hexdigest()[:40]
