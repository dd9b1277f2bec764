"""Text that goes round in circles, as that of small models does: where it begins to, and what adds nothing to what was said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gnothi.methods.steps.naming import naming
from gnothi.methods.steps.parsing import as_choice, short_answer
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.methods.steps.queries import bare, is_content
from gnothi.methods.steps.yes_no import asks_yes_or_no
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized
from gnothi.types import Answer, Decoding, Question

# The longest stretch that is looked for, in words; from _LONG words on, twice is a circle, below three times.
_LONGEST, _LONG = 16, 4
_PIECES = re.compile(r"\s*[^\s-]*[\s-]*")  # "Irish-Irish-Irish" goes round, too


def until_it_repeats(text: str) -> str:
    """The text up to where it says the same words again and again; the first time stays.

    Three times in a row is a circle ("very very" is none), of stretches of four words and more already twice. Case and
    punctuation do not matter."""
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
    """Whether an answer has no word, or none that is not in the question, which names no alternatives to choose from."""
    form = normalized(answer)
    if question.choices or " or " in question.text or asks_yes_or_no(question.text):
        return not form
    return not form or f" {form} " in f" {normalized(question.text)} "


async def reread(model: LanguageModel, question: Question, answer: Answer, decoding: Decoding) -> Answer:
    """The answer without circles; where it only repeats the question and something was read, the short answer to be read
    in the first passage that is about what the question names."""
    answer = replace(answer, text=until_it_repeats(answer.text))
    if not (answer.evidence and only_repeats(answer.text, question)):
        return answer
    reply = await model.generate(ask(ANSWER, question, naming(question.text, answer.evidence)[:1]), decoding)
    return replace(answer, text=as_choice(short_answer(until_it_repeats(reply.text), question.text), question.choices))
