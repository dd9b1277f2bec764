"""Evidence checked before it is believed: what each passage says read alone, whether they contradict each other, and how likely
they make both answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from gnothi.concurrency import gather
from gnothi.filtering.traits import traits_of_checking
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ANSWER, EQUIVALENT, ask
from gnothi.methods.steps.requirements import speaks
from gnothi.protocols import LanguageModel
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Passage, Prompt, Question

UNKNOWN = "unknown"


async def each_alone(
    reader: AnsweringSettings,
    model: LanguageModel,
    question: Question,
    memory: Answer,
    evidence: Answer,
    passages: tuple[Passage, ...],
) -> Mapping[str, float | None]:
    """What each passage says where it is read alone, how many contradict most of them in the model's own judgement and, if
    it can score, how likely it finds both answers."""
    read = (reader.answer_at_once(model, ask(ANSWER, question, (one,))) for one in passages)
    answers = await gather(*read)
    doubts = [doubt for one in answers if (doubt := spread(one.uncertainty)) is not None]
    found: dict[str, float | None] = dict(traits_of_checking(memory.text, evidence.text, [one.text for one in answers]))
    found |= {
        "passages alone: the least doubt": min(doubts, default=None),
        "passages alone: doubt on average": sum(doubts) / len(doubts) if doubts else None,
        "passages alone: contradict most of them": await _contradicting(model, question, [one.text for one in answers]),
    }
    return found | (await _likelihoods(model, question, memory, evidence, passages) if model.capabilities.scoring else {})


async def _contradicting(model: LanguageModel, question: Question, said: Sequence[str]) -> float:
    """The share of passages that say something else than most of them, and do not mean the same to the model."""
    votes = Counter(normalized(text) for text in said if not says_nothing(text))
    wording = {normalized(text): text for text in said}
    if len(votes) < 2 or not speaks(model, EQUIVALENT):
        return (votes.total() - max(votes.values(), default=0)) / max(1, len(said))
    (leading, _), *others = votes.most_common()
    pairs = [(wording[leading], wording[other]) for other, _ in others]
    same = await gather(*(says_yes(model, Prompt(EQUIVALENT, question.text, choices=pair)) for pair in pairs))
    return sum(count for (_, count), means_the_same in zip(others, same, strict=True) if not means_the_same) / len(said)


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
