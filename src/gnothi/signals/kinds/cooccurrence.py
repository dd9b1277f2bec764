"""Whether the names that a reply brings together meet in a corpus (QuCo-RAG, Min et al. 2025, arXiv 2512.19134)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.concurrency import gather
from gnothi.protocols import Count, LanguageModel
from gnothi.signals.base import Continued, FollowUp
from gnothi.signals.names import all_pairs
from gnothi.types import Capabilities, Prompt


@dataclass(frozen=True, slots=True)
class Cooccurrence(FollowUp):
    """Less the number of passages of an index in which two names of the greedy continuation meet, of the pair that meets least:
    0 for one that never does. A reply without a pair is no measurement: infinity."""

    count: Count

    name: ClassVar[str] = "cooccurrence"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = -1.0  # a pair that meets in no passage

    async def ask(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:  # noqa: ARG002
        pairs = all_pairs(continued.greedy.text, prompt.question)
        return -float(min(await gather(*(self.count(pair) for pair in pairs)))) if pairs else float("inf")
