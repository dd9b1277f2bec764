"""How relevant a text is to a question, by a judge's P("Yes"): the retrieval evaluator of CRAG (Yan et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.concurrency import gather
from gnothi.protocols import LanguageModel
from gnothi.signals.self_report import AFFIRMATIVE, NEGATIVE, probability_of_yes
from gnothi.types import Passage, Prompt, Task


async def relevance(judge: LanguageModel, task: Task, question: str, passages: Sequence[Passage]) -> list[float]:
    """P("Yes") among "Yes" and "No" for each passage by itself, in [0, 1]; all are scored at a time."""
    prompts = [Prompt(task, question, (passage,)) for passage in passages]
    scores = await gather(*(judge.score(prompt, (AFFIRMATIVE, NEGATIVE)) for prompt in prompts))
    return [probability_of_yes(yes.logprob, no.logprob) for yes, no in scores]
