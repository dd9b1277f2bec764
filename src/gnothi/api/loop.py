"""Synchronous calls where there is a running event loop, which they would block, are refused."""

from __future__ import annotations

import asyncio

from gnothi.errors import UsageError


def refuse_running_loop(called: str, instead: str) -> None:
    """Raise UsageError where a synchronous call would block the event loop that it is made in."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"{called} was called inside a running event loop, which it would block. Use `await {instead}` there.")
