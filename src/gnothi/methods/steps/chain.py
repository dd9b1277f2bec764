"""The answer that a chain of thought comes to; asked anew where it is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gnothi import events
from gnothi.concurrency import gather
from gnothi.methods.steps.extraction import OURS, Extraction
from gnothi.methods.steps.parsing import as_choice, concluding, read_reply, until_it_repeats, without_opening
from gnothi.methods.steps.prompts import ANSWER, CONCLUSION, REASON, ask
from gnothi.methods.steps.wording import naming, offers_a_choice
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Answer, Decoding, Generation, Passage, Prompt, Question
from gnothi.yes_or_no import asks_yes_or_no

_OWNER = re.compile(r"['’]s\b")
_EXAMPLE_ANSWERS = frozenset(normalized(read_reply(one.answer).conclusion) for one in REASON.demonstrations)


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
    results = await gather(*(conclude(model, prompt, Generation(reply), decoding, extraction) for reply in different))
    conclusions = dict(zip(different, results, strict=True))
    return [conclusions[reply] for reply in replies]


def only_repeats(answer: str, question: Question) -> bool:
    """Whether an answer has no word, or none that is not in the question, which names nothing to choose from."""
    form = normalized(answer)
    if question.choices or not form or offers_a_choice(question.text):
        return not form
    words, question_words = (set(normalized(_OWNER.sub("", text)).split()) for text in (answer, question.text))
    return words <= question_words


def copies_an_example(answer: Answer, question: Question) -> bool:
    """Whether passages were read and the answer is that of a worked example of reasoning, of which neither they nor the
    question say a word. Of examples that a user gives (``model.demonstrations``) nothing is known here."""
    if (
        question.choices
        or not answer.evidence
        or normalized(answer.text) not in _EXAMPLE_ANSWERS
        or asks_yes_or_no(question.text)
    ):
        return False
    texts = (text for passage in answer.evidence for text in (passage.title, passage.text))
    return not any((f" {normalized(answer.text)} " in f" {normalized(text)} ") for text in (question.text, *texts))


async def reread(model: LanguageModel, question: Question, answer: Answer, decoding: Decoding) -> Answer:
    """The answer without circles. Where it only repeats the question, as a chain of thought that says no more than what it is
    about, or copies a worked example, the short answer asked at once: from the first passage read that is about what the
    question names, or from memory where nothing was read. Emits Decided with kind ``answer`` and the verdict ``repeats`` or
    ``copies`` then."""
    answer = replace(answer, text=without_opening(until_it_repeats(answer.text)))
    if only_repeats(answer.text, question):
        verdict = "repeats"
    elif copies_an_example(answer, question):
        verdict = "copies"
    else:
        return answer
    events.emit(events.Decided("answer", "", None, None, verdict, answer.text))
    reply = await model.generate(ask(ANSWER, question, naming(question.text, answer.evidence)[:1]), decoding)
    return replace(answer, text=read_reply(reply.text, question.text, question.choices).once.answer)
