"""A terminal in place of an output of this process."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def on_terminal(stream: str) -> Iterator[bytearray]:
    """``sys.stdout`` or ``sys.stderr`` is one meanwhile; afterwards, all that was written to it is here."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while piece := os.read(ours, 4096):
                shown.extend(piece)
        except OSError:  # how a closed terminal reads on Linux
            pass

    reading = threading.Thread(target=read)
    reading.start()
    try:
        with pytest.MonkeyPatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            patch.setattr(f"sys.{stream}", terminal)
            yield shown
    finally:
        reading.join()
        os.close(ours)
