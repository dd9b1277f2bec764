"""Where a judge's worked examples come from: passages whose use for a question is known (KEQA, section 3.4)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from gnothi.types import Demonstration, Passage


@runtime_checkable
class DemonstrationSource(Protocol):
    """Labelled pairs of question and passage; ``answer`` of each demonstration is "Yes" (helpful) or "No".

    Both calls give at most ``n`` demonstrations, the best last (nearest to what the judge reads next), with at least
    ``at_least`` of each label where the source holds as many; none from an empty source.
    """

    async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:
        """The demonstrations most like the pair of ``question`` and ``passage``."""
        ...

    async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
        """Demonstrations drawn by chance, for the ablation; the same seed gives the same ones."""
        ...
