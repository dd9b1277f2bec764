"""From the answers to several quizzes to the answer of the question they came from (KEQA, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi import events
from gnothi.methods.steps.chain import Conclusion, conclude
from gnothi.methods.steps.parsing import concludes, final_answer, split_sentences
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.quizzes import Solved
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Decoding, Passage, Question, Task


def note(solved: Solved) -> str:
    """Quiz and answer side by side."""
    return f"{solved.question} {solved.answer}"


async def stated(model: LanguageModel, solved: Solved, decoding: Decoding) -> str:
    """The answer as full sentences: the model's chain of thought about the quiz, where it comes to that very answer,
    without its conclusion; else quiz and answer side by side."""
    reply = await model.generate(ask(REASON, Question("", solved.question), solved.evidence), decoding)
    chain = " ".join(reply.text.split())
    premises = [sentence for sentence in split_sentences(chain) if sentence and not concludes(sentence)]
    agrees = normalized(final_answer(chain)) == normalized(solved.answer)
    return " ".join(premises) if premises and agrees else note(solved)


async def summarise(
    model: LanguageModel, task: Task, question: Question, notes: Sequence[str], decoding: Decoding, short: Decoding
) -> Conclusion:
    """The explanation and the answer it comes to, by a chain of thought that is shown the notes. Emits Summarised.

    ``decoding`` is that of the chain, ``short`` that of an answer asked for where the chain names none."""
    shown = tuple(Passage(f"note {number}", text) for number, text in enumerate(notes, start=1))
    prompt = ask(task, question, shown)
    conclusion = await conclude(model, prompt, await model.generate(prompt, decoding), short)
    events.emit(events.Summarised(question.text, tuple(notes), conclusion.rationale, conclusion.answer))
    return conclusion
