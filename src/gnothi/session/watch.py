"""How far asking or training is, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget
    from gnothi.runs.rows import Row


class Progress:
    """Counts questions, or steps. This one is silent."""

    def advance(self, failed: bool, note: str = "") -> None:
        """One more is done; ``note``: what it cost so far, say."""

    def reach(self, done: int, note: str = "") -> None:
        """So many are done."""


class Watch:
    """Hears what goes on. This one is silent; the command line's draws bars."""

    def opening(self, what: str) -> None:
        """``what`` is being opened, which may take a while."""

    def paying(self, budget: Budget) -> None:
        """Models behind an API are asked: ``budget`` says what they are paid, now and at the end."""

    def asking(self, total: int, done: int, what: str) -> None:
        """Questions are asked from now on; ``done`` of ``total`` are from before."""

    def row(self, row: Row, label: str) -> None:
        """One more is finished."""

    def pulse(self, read: int, calls: Mapping[str, int], left: float | None) -> None:
        """About once a second: tokens of prompts that were ``read`` so far, model calls that were done, by method, and the
        seconds that are ``left``, None where nothing can be said yet."""

    def waiting(self, message: str) -> AbstractContextManager[object]:  # noqa: ARG002
        """For the time that something takes which cannot be counted ("opening model lab ...")."""
        return nullcontext()

    def counting(self, total: int, done: int, label: str) -> AbstractContextManager[Any]:  # noqa: ARG002
        """What counts a training's steps, as ``Progress`` does; ``done`` of ``total`` are from before."""
        return nullcontext(Progress())

    def line(self, figures: Mapping[str, Any]) -> None:
        """One more line of a training's ``metrics.jsonl``."""

    def info(self, text: str) -> None:
        """Something worth knowing."""

    def warn(self, text: str) -> None:
        """Something that may mislead; work goes on."""


SILENT = Watch()
