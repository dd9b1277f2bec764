"""From the answers to several quizzes to the answer of the question they came from (KEQA, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi import events
from gnothi.concurrency import gather
from gnothi.methods.steps.chain import Conclusion, conclude
from gnothi.methods.steps.extraction import OURS, Extraction
from gnothi.methods.steps.parsing import concludes, read_reply, split_sentences, yes_or_no
from gnothi.methods.steps.prompts import REASON, SUMMARISE, SUMMARISE_YES_NO, ask
from gnothi.methods.steps.quizzes import Solved
from gnothi.methods.steps.settings import SHORT_STOPS, chain_stops
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Decoding, Passage, Question


def note(solved: Solved) -> str:
    """Quiz and answer side by side."""
    return f"{solved.question} {solved.answer}"


async def stated(model: LanguageModel, solved: Solved, decoding: Decoding) -> str:
    """The answer as full sentences: the model's chain of thought about the quiz, where it comes to that very answer,
    without its conclusion; else quiz and answer side by side, as for a quiz that nobody answered."""
    if solved.source == "nothing":
        return note(solved)
    reply = await model.generate(ask(REASON, Question("", solved.question), solved.evidence), decoding)
    chain = " ".join(reply.text.split())
    premises = [sentence for sentence in split_sentences(chain) if sentence and not concludes(sentence)]
    agrees = normalized(read_reply(chain).conclusion) == normalized(solved.answer)
    return " ".join(premises) if premises and agrees else note(solved)


async def summarise(
    model: LanguageModel,
    reader: LanguageModel,
    question: Question,
    solved: Sequence[Solved],
    yes_no: bool,
    max_tokens: int,
    sentences: bool = True,
    extraction: Extraction = OURS,
) -> Conclusion:
    """The explanation and the answer it comes to, by a chain of thought that is shown the solved quizzes. Emits Summarised.

    With ``sentences`` each is stated by who answered it: ``reader`` from passages, else ``model``. ``yes_no``: the answer is to
    be yes or no."""
    chain, short = Decoding(max_tokens, stop=chain_stops(extraction)), Decoding(max_tokens, stop=SHORT_STOPS)
    notes = [note(one) for one in solved]
    if sentences:
        notes = await gather(*(stated(reader if one.source == "passages" else model, one, chain) for one in solved))
    passages = tuple(Passage(f"note {number}", text) for number, text in enumerate(notes, start=1))
    prompt = ask(SUMMARISE_YES_NO if yes_no else SUMMARISE, question, passages)
    conclusion = await conclude(model, prompt, await model.generate(prompt, chain), short, extraction)
    events.emit(events.Summarised(question.text, tuple(notes), conclusion.rationale, conclusion.answer))
    return Conclusion(yes_or_no(conclusion.answer), conclusion.rationale) if yes_no else conclusion


def evidence_of(solved: Sequence[Solved]) -> tuple[Passage, ...]:
    """What was read for any quiz, each passage once."""
    return tuple({passage.id: passage for one in solved for passage in one.evidence}.values())


def uncertainty_of(solved: Sequence[Solved]) -> float | None:
    """The largest disagreement: an answer is as sure as the least known of its parts."""
    return max((one.disagreement for one in solved if one.disagreement is not None), default=None)
