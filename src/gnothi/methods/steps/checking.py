"""Evidence checked before it is believed: what each passage says read alone, and how likely it makes both answers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gnothi.concurrency import gather
from gnothi.filtering.traits import traits_of_checking
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel
from gnothi.types import Answer, Passage, Question

UNKNOWN = "unknown"


async def each_alone(
    reader: AnsweringSettings,
    model: LanguageModel,
    question: Question,
    memory: Answer,
    evidence: Answer,
    passages: tuple[Passage, ...],
) -> Mapping[str, float | None]:
    """What each passage says where it is read alone and, if the model can score, how likely it finds both answers."""
    read = (reader.answer_at_once(model, ask(ANSWER, question, (one,))) for one in passages)
    answers = await gather(*read)
    doubts = [doubt for one in answers if (doubt := spread(one.uncertainty)) is not None]
    found: dict[str, float | None] = dict(traits_of_checking(memory.text, evidence.text, [one.text for one in answers]))
    found |= {
        "passages alone: the least doubt": min(doubts, default=None),
        "passages alone: doubt on average": sum(doubts) / len(doubts) if doubts else None,
    }
    return found | (await _likelihoods(model, question, memory, evidence, passages) if model.capabilities.scoring else {})


async def _likelihoods(
    model: LanguageModel, question: Question, memory: Answer, evidence: Answer, passages: tuple[Passage, ...]
) -> dict[str, float | None]:
    """Nats per token, as a short answer."""
    texts = [one.text or UNKNOWN for one in (memory, evidence)]
    without, with_ = await gather(*(model.score(ask(ANSWER, question, shown), texts) for shown in ((), passages)))
    each = [[one.mean_logprob for one in scored] for scored in (without, with_)]
    return {
        "memory's answer is likelier by the passages": each[1][0] - each[0][0],
        "evidence's answer is likelier by the passages": each[1][1] - each[0][1],
        "with the passages, evidence's answer is likelier": each[1][1] - each[1][0],
    }


def spread(uncertainty: float | None) -> float | None:
    """Perplexities spread over magnitudes; None where there is none."""
    return None if uncertainty is None or not math.isfinite(uncertainty) else math.log1p(max(uncertainty, 0.0))
