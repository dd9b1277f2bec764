"""From what a model writes to sentences and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnothi.methods.steps.prompts import CONCLUSION
from gnothi.methods.steps.stripping import answer_within
from gnothi.signals.replies import normalized

_MARKER = re.compile(r"\bthe (?:final )?answer is\b[\s:]*", re.IGNORECASE)
_NAMES_NOTHING = re.compile(r"(?:\s*\b(?:so )?the (?:final )?answer is\b[\s:]*)+$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
# What ends in a full stop within a sentence: initials ("J. R. R. Tolkien") and the commonest titles and abbreviations.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|(?:[A-Z]\.)+[A-Z]?|Dr|Mr|Mrs|Ms|St|Mt|Ft|Jr|Sr|Prof|Gen|Col|Capt|Lt|Rev|vs|ca)\.$"
)
_LABEL = re.compile(r"(?:(?:option|choice|answer)\s+)?\(?(?P<label>[A-Z])(?:[).:]+(?:\s+(?P<rest>.+))?)?", re.IGNORECASE)
# Anything but marks that end or part sentences: a sign ("+") can be an answer.
_WORD = re.compile(r"[^\s.,;:!?…\"'()\[\]*_–—-]")
_QUOTES = "\"'“”‘’«»"


def concludes(sentence: str) -> bool:
    """Whether a sentence states the answer and so ends a chain of thought."""
    return bool(_MARKER.search(sentence))


def final_answer(reply: str) -> str:
    """The answer that a chain of thought concludes with: what follows its first "the answer is", in that sentence.

    Empty where nothing is concluded.
    """
    found = _MARKER.search(reply)
    return short_answer(reply[found.end() :]) if found else ""


def short_answer(reply: str, question: str = "") -> str:
    """The answer in a reply that should hold only that: its first sentence without full stop and quotation marks.

    With the ``question``, that of a chatty reply, too: what "the answer is", or what its sentence says beyond the question
    (``stripping.answer_within``)."""
    if not question:
        return _first_sentence(reply)
    if named := final_answer(reply):
        return named
    lines = [line for line in reply.strip().removeprefix("Answer:").splitlines() if _WORD.search(line)]
    return answer_within(_first_sentence(lines[0]), question) if lines else ""


def _first_sentence(reply: str) -> str:
    lines = reply.strip().splitlines()
    first = split_sentences(lines[0])[0] if lines else ""
    return _unquoted(without_opening(_unquoted(first).removesuffix(".")).strip())


def without_opening(answer: str) -> str:
    """Without a "So the answer is" at its end, after which nothing came: models say it in circles."""
    return _NAMES_NOTHING.sub("", answer)


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return text[1:-1].strip()
    return text


def sentence(text: str) -> str:
    """A generated sentence with its full stop, which a stop string has cut off; empty for blank text."""
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def split_sentences(text: str) -> list[str]:
    """Sentences of a line, full stops kept; initials and common abbreviations do not end one. At least one, maybe empty."""
    sentences: list[str] = []
    for piece in _SENTENCE_END.split(text.strip()):
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] += " " + piece
        else:
            sentences.append(piece)
    return sentences


def before_answer(reply: str) -> str:
    """A chain of thought up to where its conclusion names the answer; one without a conclusion is opened for it."""
    found = _MARKER.search(reply)
    return reply[: found.end()].rstrip(" :") if found else concluding(reply.strip())


def concluding(*chain: str) -> str:
    """A chain of thought as it stands with the opening of its conclusion: the model only has to name the answer."""
    return " ".join([*(part for part in chain if part), CONCLUSION])


def as_choice(answer: str, choices: Sequence[str]) -> str:
    """The choice that ``answer`` names; ``answer`` itself where it names none.

    By its text, whatever its case and punctuation; by its label ("B", "(b)", "option B", "B) mall"; A is the first); or by its
    first sentence, where ``short_answer`` has left no more of it and no other choice begins alike.
    """
    if not choices or answer in choices:
        return answer
    form = normalized(answer)
    equal = next((choice for choice in choices if form and normalized(choice) == form), None)
    if equal is not None:
        return equal
    labelled = _LABEL.fullmatch(answer.strip())
    if labelled and (position := ord(labelled["label"].upper()) - ord("A")) < len(choices):
        named, rest = choices[position], normalized(labelled["rest"] or "")
        if not rest or rest == normalized(named):
            return named
    begun = {choice for choice in choices if form and normalized(short_answer(choice)) == form}
    return begun.pop() if len(begun) == 1 else answer
