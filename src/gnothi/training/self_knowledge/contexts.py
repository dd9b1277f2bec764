"""Sentences to be shown before training questions, so that a model learns to say whether it knows, given a sentence.

Not in the paper: it trains without (SKILL-RAG, sections 4.1 and 4.2) and filters with a sentence in front (section 4.3), which
it takes the model to carry over.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from gnothi.concurrency import gather
from gnothi.filtering.leading import includes
from gnothi.filtering.sentences import sentences_of
from gnothi.protocols import Retriever
from gnothi.types import Passage, Question


async def find(questions: Sequence[Question], retriever: Retriever, count: int, k: int) -> dict[str, tuple[Passage, ...]]:
    """``count`` sentences for each question, by its id, of the best ``k`` passages, each under its passage's title.

    Up to half of them (rounded up) hold a gold answer, the others none; where one kind is short, the other makes it up.
    The same questions and index give the same sentences.
    """

    async def one(question: Question) -> tuple[Passage, ...]:
        found = await retriever.search(question.text, k)
        # One sentence may stand in several passages of a title.
        alone = {(one.source.title, one.text): one.passage for one in sentences_of(scored.passage for scored in found)}
        return choose(question, list(alone.values()), count)

    return dict(zip((one.id for one in questions), await gather(*map(one, questions)), strict=True))


def choose(question: Question, sentences: Sequence[Passage], count: int) -> tuple[Passage, ...]:
    """``count`` of the sentences at random (all, where there are no more), as ``find`` says."""
    shuffled = random.Random(question.id).sample(sentences, len(sentences))
    holding = [one for one in shuffled if includes(one.text, question.answers)]
    others = [one for one in shuffled if not includes(one.text, question.answers)]
    first = holding[: max(-(-count // 2), count - len(others))]
    return (*first, *others[: count - len(first)])
