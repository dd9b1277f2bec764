"""How relevant a text is to a question: the retrieval evaluator of CRAG (Yan et al. 2024), a judge or a cross-encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gnothi.concurrency import gather
from gnothi.protocols import LanguageModel, Reranker
from gnothi.retrieval.reranked import shown
from gnothi.signals.kinds.self_report import AFFIRMATIVE, NEGATIVE, probability_of_yes
from gnothi.types import Passage, Prompt, Task


async def relevance(judge: LanguageModel, task: Task, question: str, passages: Sequence[Passage]) -> list[float]:
    """P("Yes") among "Yes" and "No" for each passage by itself, in [0, 1]; all are scored at a time."""
    prompts = [Prompt(task, question, (passage,)) for passage in passages]
    scores = await gather(*(judge.score(prompt, (AFFIRMATIVE, NEGATIVE)) for prompt in prompts))
    return [probability_of_yes(yes.logprob, no.logprob) for yes, no in scores]


async def fit(reranker: Reranker, question: str, passages: Sequence[Passage]) -> list[float]:
    """The logistic function of a re-ranker's score for each passage, in [0, 1]: a probability, if it was trained as one."""
    scores = await reranker.score(question, [shown(passage) for passage in passages])
    return [1 / (1 + math.exp(-score)) if score > 0 else math.exp(score) / (1 + math.exp(score)) for score in scores]
