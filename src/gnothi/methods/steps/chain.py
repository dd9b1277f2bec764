"""A chain of thought and the answer it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gnothi.concurrency import gather
from gnothi.methods.steps.extraction import OURS, Extraction
from gnothi.methods.steps.parsing import as_choice, concluding
from gnothi.methods.steps.prompts import CONCLUSION
from gnothi.protocols import LanguageModel
from gnothi.types import Answer, Decoding, Generation, Passage, Prompt


@dataclass(frozen=True, slots=True)
class Conclusion:
    answer: str
    rationale: str


async def conclude(
    model: LanguageModel, prompt: Prompt, reply: Generation, decoding: Decoding, extraction: Extraction = OURS
) -> Conclusion:
    """The answer that ``reply``, a chain of thought continuing ``prompt``, comes to.

    A chain that ends without naming an answer is continued with "So the answer is" (SeaKR, section 3.4).
    """
    chain = f"{prompt.answer_so_far} {reply.text}".strip()
    rationale, answer = " ".join(chain.split()), extraction.concluded(chain)
    if answer or rationale.endswith(CONCLUSION) or not extraction.forced:
        return Conclusion(answer, rationale)
    opening = concluding(rationale)
    named = await model.generate(replace(prompt, answer_so_far=opening), decoding)
    return Conclusion(extraction.short(named.text, prompt.question), f"{opening} {named.text.strip()}".strip())


async def answer_to(
    model: LanguageModel,
    prompt: Prompt,
    decoding: Decoding,
    evidence: tuple[Passage, ...],
    uncertainty: float | None = None,
    extraction: Extraction = OURS,
) -> Answer:
    """The answer that the chain of thought in ``prompt`` comes to as it stands."""
    conclusion = await conclude(model, prompt, Generation(""), decoding, extraction)
    return Answer(as_choice(conclusion.answer, prompt.choices), conclusion.rationale, evidence, uncertainty)


async def conclude_each(
    model: LanguageModel, prompt: Prompt, replies: Sequence[str], decoding: Decoding, extraction: Extraction = OURS
) -> list[Conclusion]:
    """What each of several chains of thought comes to. The same words come to the same, and are asked to conclude once."""
    different = list(dict.fromkeys(replies))
    found = await gather(*(conclude(model, prompt, Generation(reply), decoding, extraction) for reply in different))
    conclusions = dict(zip(different, found, strict=True))
    return [conclusions[reply] for reply in replies]
