"""How long to go on asking a server that does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gnothi.errors import IndexUnavailable
from gnothi.retrying import backoff

T = TypeVar("T")


class Passing(Exception):
    """A try that may be followed by a better one. ``wait`` is what the server asked for, in seconds."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


async def persist(attempt: Callable[[], Awaitable[T]], patience: float, name: str) -> T:
    """What ``attempt`` gives, tried again after ``Passing`` until ``patience`` seconds are over.

    Raises IndexUnavailable then, and whatever else ``attempt`` raises at once."""
    started, failures = time.monotonic(), 0
    while True:
        try:
            return await attempt()
        except Passing as error:
            failures += 1
            wait = backoff(failures) if error.wait is None else error.wait + backoff(1)
            if time.monotonic() + wait - started > patience:
                raise IndexUnavailable(
                    f"{name} did not answer, tried {failures} time{'s' * (failures > 1)} in {time.monotonic() - started:.0f} s: "
                    f"{error}. Look at the server, or wait longer with its setting patience (now {patience:g} s)."
                ) from None
        await asyncio.sleep(wait)
