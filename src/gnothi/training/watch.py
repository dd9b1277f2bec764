"""How far a training is, for whoever wants to know."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class Progress:
    """Counts questions, or steps. This one is silent."""

    def advance(self, failed: bool, note: str = "") -> None:
        """One more is done; ``note``: what it cost so far, say."""

    def reach(self, done: int, note: str = "") -> None:
        """So many are done."""


class Watch:
    """Told what a training does. This one is silent; the command line's draws bars."""

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """For the time that something takes which cannot be counted; ``what`` reads as "opening model lab ..."."""
        return nullcontext()

    def counting(self, total: int, done: int, label: str) -> AbstractContextManager[Progress]:
        """``done`` of ``total`` are from before."""
        return nullcontext(Progress())

    def warn(self, message: str) -> None:
        """A sentence about what may mislead; work goes on."""


SILENT = Watch()
