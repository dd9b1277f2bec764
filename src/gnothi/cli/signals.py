"""Asked to end by another program (``kill``, systemd, a container) or a terminal that closes, a command ends as by Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT

_heard: list[int] = []


def heed() -> None:
    """From now on. What somebody had ignored stays so: SIGHUP under ``nohup``, Ctrl-C in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Ignored, it could not be raised for others; asyncio, for one, hears it only where Python does.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _as_ctrl_c)


def let_go() -> None:
    """All is said and kept: from now on a signal ends Python at once, where it would show a traceback while it cleans up."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def leave(code: int) -> NoReturn:
    """End now, after what was registered for the end: Python itself would wait for threads that still read a model, which
    nobody can stop, and take the model apart."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def exit_code(code: int) -> int:
    """That of an interrupted command says by which signal, as shells have it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP."""
    return 128 + _heard[0] if code == INTERRUPTED and _heard else code


def _as_ctrl_c(number: int, _: object) -> None:
    _heard.append(number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.raise_signal(signal.SIGINT)
