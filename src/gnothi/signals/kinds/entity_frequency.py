"""How rare the names of a question are in a corpus (QuCo-RAG, Min et al. 2025, arXiv 2512.19134): it takes no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnothi.concurrency import gather
from gnothi.protocols import Count, LanguageModel
from gnothi.signals.base import PromptSignal
from gnothi.signals.names import runs_of_names
from gnothi.types import Capabilities, Prompt


async def mean_count(count: Count, names: Sequence[str]) -> float:
    """Passages that hold a name, as a mean over at least one of them."""
    return sum(await gather(*(count([name]) for name in names))) / len(names)


@dataclass(frozen=True, slots=True)
class EntityFrequency(PromptSignal):
    """Less the mean number of passages of an index that hold a name of the question: -12 for twelve. A question without names
    is no measurement: infinity."""

    count: Count

    name: ClassVar[str] = "entity_frequency"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = None  # it depends on the index

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:  # noqa: ARG002
        """The uncertainty, without a reply."""
        names = runs_of_names(prompt.question)
        return -await mean_count(self.count, names) if names else float("inf")
