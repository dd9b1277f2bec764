"""One process at a time at a file or folder. The system frees a lock when its process ends, however it ends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path


def hold(file: Path, refusal: Exception) -> ExitStack:
    """Lock ``file``, which is made where it is missing and stays; closing the result frees it.

    Raises ``refusal`` where the lock is held already, by this process or another."""
    from filelock import FileLock, Timeout

    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise refusal from None
    held = ExitStack()
    held.callback(lock.release)
    return held
