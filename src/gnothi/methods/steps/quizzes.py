"""A question as several simple ones ("quizzes"): read from a model's list, asked as soon as what they refer to is answered.

``#2`` in a quiz stands for the answer to quiz 2 (KEQA, section 3.3).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.fields import setting
from gnothi.methods.steps.prompts import DECOMPOSE
from gnothi.methods.steps.reader import Reason, reasons_about
from gnothi.methods.steps.settings import LIST_STOPS, MethodSettings
from gnothi.protocols import LanguageModel
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Decoding, Passage, Prompt, Question

UNKNOWN = "unknown"

_REFERENCE = re.compile(r"#(\d+)")
# "1." "1 ." "1.Who" "1)" "(1)" "1:" "Q1:" "#1:" "Quiz 1." "**1.**"; a bullet has no number. Nothing else makes
# a line an item.
_NUMBERED = re.compile(
    r"^\W{0,4}(?:(?:q|quiz|question|sub-?question|step)\s*)?[(#]*(\d{1,3})\s*[.):]+[*_]*(?:\s+|(?=[^\W\d_]))", re.IGNORECASE
)
_BULLET = re.compile(r"^\s*[-*•–]\s+")
_DECORATION = '*_"“”` \t'


@dataclass(frozen=True, slots=True)
class Quiz:
    """``text`` as listed; ``needs`` are the places (from 0) of the quizzes whose answers it refers to, by number as written."""

    text: str
    needs: Mapping[str, int]

    def filled(self, answers: Mapping[int, str]) -> str:
        """The text with each reference replaced by the answer of that place.

        All at once and each number as a whole: ``#10`` is not ``#1`` and a zero, and an answer may hold a ``#2``."""

        def answer(reference: re.Match[str]) -> str:
            place = self.needs.get(reference.group(1))
            return reference.group() if place is None else answers[place]

        return _REFERENCE.sub(answer, self.text)


def parse_quizzes(reply: str, question: str, at_most: int) -> tuple[Quiz, ...]:
    """The quizzes a model lists in ``reply``; empty where there is no list that can be used.

    That is prose, a list longer than ``at_most``, and one with references that cannot be resolved: to itself, in a circle, or
    to a number that is not listed. Leaving out such quizzes could leave out the one that answers the question. References
    forwards are fine. What the ``question`` itself spells ``#1`` is no reference. A quiz that is listed again counts once. A
    list that holds the question itself splits nothing: that is its only quiz.
    """
    items = _items(reply)
    if not items or len(items) > at_most:
        return ()
    literal = set(_REFERENCE.findall(question))
    numbers = [number for number, _ in items]
    places = {str(number): place for place, number in enumerate(numbers)}
    quizzes = []
    for _, text in items:
        named = [number for number in _REFERENCE.findall(text) if number not in literal]
        if any(str(int(number)) not in places for number in named):
            return ()
        quizzes.append(Quiz(text, {number: places[str(int(number))] for number in named}))
    try:
        TopologicalSorter({place: set(quiz.needs.values()) for place, quiz in enumerate(quizzes)}).prepare()
    except CycleError:
        return ()
    if any(normalized(quiz.text) == normalized(question) for quiz in quizzes):
        return whole(question)
    return _each_once(quizzes)


def _each_once(quizzes: Sequence[Quiz]) -> tuple[Quiz, ...]:
    """Without those that an earlier one, which needs no other answer either, asks word for word; references go to that one."""
    different: list[Quiz] = []
    places: list[int] = []
    for quiz in quizzes:
        same = [place for place, one in enumerate(different) if not one.needs and one.text.casefold() == quiz.text.casefold()]
        places.append(same[0] if same else len(different))
        different += [] if same else [quiz]
    return tuple(Quiz(one.text, {number: places[place] for number, place in one.needs.items()}) for one in different)


def _items(reply: str) -> list[tuple[int, str]]:
    """(number, text) of the list's items: one per line, or all on one line where there is only one such line.

    Numbers are as written, or 1, 2, 3 ... where there are none or one occurs twice. Lines that are no items are left out.
    """
    entries: list[tuple[int | None, str]] = []
    for line in reply.splitlines():
        if numbered := _NUMBERED.match(line):
            entries.append((int(numbered.group(1)), line[numbered.end() :]))
        elif bullet := _BULLET.match(line):
            entries.append((None, line[bullet.end() :]))
    if len(entries) == 1 and entries[0][0] is not None:
        entries = _on_one_line(entries[0][0], entries[0][1])
    items = [(number, text.strip(_DECORATION)) for number, text in entries]
    items = [(number, text) for number, text in items if any(letter.isalnum() for letter in text)]
    numbers = [number for number, _ in items]
    if None in numbers or len(set(numbers)) < len(numbers):
        return [(place, text) for place, (_, text) in enumerate(items, start=1)]
    return [(number, text) for number, text in items if number is not None]


def _on_one_line(first: int, text: str) -> list[tuple[int | None, str]]:
    """``Who ...? 2. Where ...?`` from its first item on: each next number in turn begins an item, no other number does."""
    items: list[tuple[int | None, str]] = []
    while True:
        following = re.search(rf"(?<=[?.!])\s+\(?{first + 1}[.):]\s+", text)
        items.append((first, text[: following.start()] if following else text))
        if following is None:
            return items
        first, text = first + 1, text[following.end() :]


async def split_up(model: LanguageModel, question: str, decoding: Decoding, at_most: int) -> tuple[Quiz, ...]:
    """The quizzes the model splits ``question`` into; the question itself where its list cannot be used. Emits Decomposed."""
    reply = await model.generate(Prompt(DECOMPOSE, question), decoding)
    quizzes = parse_quizzes(reply.text, question, at_most)
    parts = quizzes or whole(question)
    events.emit(events.Decomposed(question, tuple(quiz.text for quiz in parts), bool(quizzes)))
    return parts


def whole(question: str) -> tuple[Quiz, ...]:
    """The question as its only quiz."""
    return (Quiz(question, {}),)


@dataclass(frozen=True, slots=True)
class Solved:
    """A quiz as it was asked and its answer. ``source`` is where that came from: memory, the passages of ``evidence``, a
    guess, or nothing (``answer`` is "unknown"). ``disagreement`` is that of the tries from memory, None without any."""

    question: str
    answer: str
    source: Literal["memory", "passages", "guess", "nothing"]
    evidence: tuple[Passage, ...] = ()
    disagreement: float | None = None


def each_once(solved: Sequence[Solved]) -> list[Solved]:
    """Without quizzes that came to the same words as an earlier one."""
    return list({one.question: one for one in solved}.values())


async def ask_in_order(quizzes: Sequence[Quiz], ask: Callable[[str], Awaitable[Solved]]) -> list[Solved]:
    """Every quiz with its answer, each asked as soon as what it refers to is answered, whatever the others do.

    A quiz that refers to an unknown answer is unknown without being asked; one that comes to the same words as another is not
    asked again. One failure cancels all. ``quizzes`` hold no circle. Emits QuizAnswered for each.
    """
    solved: dict[int, Solved] = {}
    places: dict[str, int] = {}
    # Events, not futures: who waits on a future and is cancelled cancels it for everyone.
    answered = [asyncio.Event() for _ in quizzes]

    async def run(place: int, quiz: Quiz) -> Solved:
        needed = sorted(set(quiz.needs.values()))
        for other in needed:
            await answered[other].wait()
        text = quiz.filled({other: solved[other].answer for other in needed})
        if (first := places.setdefault(text, place)) != place:
            await answered[first].wait()
            outcome = solved[first]
        elif any(says_nothing(solved[other].answer) for other in needed):
            outcome = Solved(text, UNKNOWN, "nothing")
        else:
            outcome = await ask(text)
        solved[place] = outcome
        events.emit(events.QuizAnswered(place + 1, text, outcome.answer, outcome.source))
        answered[place].set()
        return outcome

    return await gather(*(run(place, quiz) for place, quiz in enumerate(quizzes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings(MethodSettings):
    """Whether a question is split into several."""

    decompose: Reason = setting(
        "auto",
        "Split the question into simple ones; false (ablation): it is the only one; auto: where one fact does not seem enough.",
    )
    max_list_tokens: int = setting(300, "Tokens the list of simple questions may have.", at_least=1)

    group: ClassVar[str] = "splitting"

    async def parts_of(self, question: Question, model: LanguageModel, at_most: int) -> tuple[Quiz, ...]:
        """The simple questions that the model lists, or the question alone."""
        if not reasons_about(self.decompose, question, model):
            return whole(question.text)
        return await split_up(model, question.text, Decoding(self.max_list_tokens, stop=LIST_STOPS), at_most)
