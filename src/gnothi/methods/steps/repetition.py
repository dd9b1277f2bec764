"""Text that goes round in circles, as that of small models does: where it begins to, and what adds nothing to what was said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gnothi import events
from gnothi.methods.steps.naming import naming
from gnothi.methods.steps.parsing import as_choice, final_answer, short_answer, without_opening
from gnothi.methods.steps.prompts import ANSWER, REASON, ask
from gnothi.methods.steps.queries import bare, is_content
from gnothi.methods.steps.yes_no import asks_yes_or_no
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Answer, Decoding, Question

# The longest stretch that is looked for, in words; from _LONG words on, twice is a circle, below three times.
_LONGEST, _LONG = 16, 4
_OWNER = re.compile(r"['’]s\b")
_OFFERING = frozenset("or both between among than either neither".split())
_JOINED = re.compile(r"[A-Z][^\s,]*,? and (?:the )?[A-Z]")  # "Ann and Mira": two things, of which one may be asked for
_PIECES = re.compile(r"\s*[^\s-]*[\s-]*")  # "Irish-Irish-Irish" goes round, too
_WITHIN = re.compile(r"((?!0)[^\W_]\S{0,29}?[^\d\s])\1{5,}")  # "200.200.200.200.200.200"; numbers may have many zeros
_SHOWN = frozenset(normalized(final_answer(one.answer)) for one in REASON.demonstrations)


def until_it_repeats(text: str) -> str:
    """The text up to where it says the same words again and again; the first time stays.

    Three times in a row is a circle ("very very" is none), of stretches of four words and more already twice; within a word,
    six times. Case and punctuation do not matter."""
    if circle := _WITHIN.search(text):
        text = text[: circle.end(1)]
    words = _PIECES.findall(text)
    forms = [bare(word).casefold() for word in words]
    for end in range(1, len(words)):
        for length in range(1, min(_LONGEST, end) + 1):
            times = 2 if length >= _LONG else 3
            start = end - length
            if forms[start : start + times * length] == forms[start:end] * times:
                return "".join(words[:end]).strip(" -\n")
    return text


def adds_nothing(sentence: str, chain: Sequence[str]) -> bool:
    """Whether every word of a sentence that says something stands in the ``chain`` already."""
    said = {bare(word).casefold() for one in chain for word in one.split()}
    words = [bare(word).casefold() for place, word in enumerate(sentence.split()) if is_content(word, place == 0)]
    return all(word in said for word in words)


def only_repeats(answer: str, question: Question) -> bool:
    """Whether an answer has no word, or none that is not in the question, which names nothing to choose from."""
    form = normalized(answer)
    if question.choices or not form or offers_a_choice(question.text):
        return not form
    said, asked = (set(normalized(_OWNER.sub("", text)).split()) for text in (answer, question.text))
    return said <= asked


def offers_a_choice(question: str) -> bool:
    """Whether the wording asks for yes or no, or for one of the things that it names ("Who is older, Ann or Mira?", "Which of
    Ann and Mira ..."): its own words may then be the answer. English."""
    return asks_yes_or_no(question) or bool(_OFFERING.intersection(question.casefold().split()) or _JOINED.search(question))


def copies_an_example(answer: Answer, question: Question) -> bool:
    """Whether passages were read and the answer is that of a worked example of reasoning, of which neither they nor the
    question say a word. Of examples that a user gives (``model.demonstrations``) nothing is known here."""
    if question.choices or not answer.evidence or normalized(answer.text) not in _SHOWN or asks_yes_or_no(question.text):
        return False
    read = (text for passage in answer.evidence for text in (passage.title, passage.text))
    return not any(_stands_in(answer.text, text) for text in (question.text, *read))


def _stands_in(answer: str, text: str) -> bool:
    return f" {normalized(answer)} " in f" {normalized(text)} "


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
    return replace(answer, text=as_choice(short_answer(until_it_repeats(reply.text), question.text), question.choices))
