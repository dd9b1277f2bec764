"""How far a training is, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget


class Progress:
    """Counts questions, or steps. This one is silent."""

    def advance(self, failed: bool, note: str = "") -> None:
        """One more is done; ``note``: what it cost so far, say."""

    def reach(self, done: int, note: str = "") -> None:
        """So many are done."""


class Watch:
    """Told what a training does. This one is silent; the command line's draws bars."""

    def paying(self, budget: Budget) -> None:
        """Models behind an API are asked: ``budget`` says what they are paid, now and at the end."""

    def waiting(self, message: str) -> AbstractContextManager[object]:  # noqa: ARG002
        """For the time that something takes which cannot be counted ("opening model lab ...")."""
        return nullcontext()

    def counting(self, total: int, done: int, label: str) -> AbstractContextManager[Any]:  # noqa: ARG002
        """What counts, as ``Progress`` does; ``done`` of ``total`` are from before."""
        return nullcontext(Progress())

    def line(self, figures: Mapping[str, Any]) -> None:
        """One more line of a training's ``metrics.jsonl``."""

    def tell(self, message: str) -> None:
        """A sentence worth knowing."""

    def warn(self, message: str) -> None:
        """A sentence about what may mislead; work goes on."""


SILENT = Watch()
