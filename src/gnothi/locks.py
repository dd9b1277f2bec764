"""One process at a time at a file or folder. The system frees a lock when its process ends, however it ends."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path


def hold(file: Path, refusal: type[Exception], message: str) -> ExitStack:
    """Lock ``file``, which is made where it is missing and stays; closing the result frees it.

    Raises ``refusal``, with ``message`` and whose it is, where the lock is held already, by this process or another."""
    from filelock import FileLock, Timeout

    lock = FileLock(file, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise refusal(f"{message}{holder(file)}") from None
    lock_stack = ExitStack()
    lock_stack.callback(lock.release)
    return lock_stack


def holder(file: Path) -> str:
    """Who holds the lock, as a sentence to be appended; empty where the system does not tell (it does on Linux)."""
    with suppress(OSError, ValueError, IndexError):
        about = os.stat(file)
        place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            fields = line.split()
            if fields[5] == place and fields[1] != "->":
                return f" It is held by process {fields[4]}{_program(int(fields[4]))}."
    return ""


def _program(process: int) -> str:
    """What it is and since when; of its arguments only the command's name, as others may be nobody's business."""
    folder = Path(f"/proc/{process}")
    words = folder.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
    names = [os.path.basename(word) for word in words]
    command = f" (gnothi {names[names.index('gnothi') + 1]})" if "gnothi" in names[:-1] else ""
    return f"{command}, since {time.strftime('%d %B %H:%M:%S', time.localtime(folder.stat().st_mtime))}"
