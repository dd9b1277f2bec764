"""Self-knowledge data: how often the model is right about each training question (SKILL-RAG, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gnothi.errors import InvalidInput
from gnothi.methods.steps.parsing import short_answer
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel
from gnothi.runs.journal import read_lines
from gnothi.training.collecting import Collecting, Line, require_answers, require_distinct
from gnothi.training.self_knowledge.reward import INDIFFERENT
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.types import Passage, Question

ANSWERS = "answers.jsonl"
"""Lines of ``question_id``, ``question``, ``choices``, ``gold``, ``answers`` (the n sampled ones), ``correct`` (one truth value
each), ``acc_rate`` (their mean), ``usage``; or ``question_id`` and ``error``. Where the question is shown a sentence, it stands
under ``sentence`` (``id``, ``title``, ``text``), and ``question_id`` names it, too."""


class Asked(NamedTuple):
    """A training question, and the sentence it is shown, None where it is asked from memory."""

    question: Question
    sentence: Passage | None = None

    @property
    def passages(self) -> tuple[Passage, ...]:
        return () if self.sentence is None else (self.sentence,)

    @property
    def name(self) -> str:
        """The question's id, with that of the sentence."""
        return f"{self.question.id}{_after(self.sentence)}"


@dataclass(frozen=True, slots=True)
class Familiar:
    """A training question with the answers that were sampled, and whether each was right. ``sentence`` is what was shown."""

    question: Question
    answers: tuple[str, ...]
    correct: tuple[bool, ...]
    sentence: Passage | None = None

    @property
    def asked(self) -> Asked:
        return Asked(self.question, self.sentence)

    @property
    def acc_rate(self) -> float:
        return sum(self.correct) / len(self.correct)

    @property
    def known(self) -> bool:
        """Whether Yes is worth more than No."""
        return self.acc_rate > INDIFFERENT


async def sample(asked: Asked, model: LanguageModel, settings: AnswerSettings) -> Line:
    """What is found out about one question, which is put as every method puts it when it wants a short answer."""
    question = asked.question
    samples = await model.sample(ask(ANSWER, question, asked.passages), settings.n, settings.decoding)
    answers = [short_answer(generation.text) for generation in samples.generations]
    correct = [settings.correct(answer, question.answers, question.choices) for answer in answers]
    return {
        **_shown(asked.sentence),
        "question": question.text,
        "choices": list(question.choices),
        "gold": list(question.answers),
        "answers": answers,
        "correct": correct,
        "acc_rate": sum(correct) / len(correct),
    }


class Answers(Collecting):
    """The sampling for a list of questions, in a folder of its own that survives any interruption."""

    def __init__(
        self,
        out: Path,
        questions: Sequence[Question],
        config: Mapping[str, Any],
        sentences: Mapping[str, Sequence[Passage]] | None = None,
    ) -> None:
        """``sentences`` by question id: the question is asked after each of them, too. Raises InvalidSetting where ``out`` was
        made with another ``config``, InvalidInput as ``require_usable``."""
        require_usable(questions)
        shown = sentences or {}
        self.asked = [Asked(question, one) for question in questions for one in (None, *shown.get(question.id, ()))]
        self._by_name = {asked.name: asked for asked in self.asked}
        named = [replace(asked.question, id=asked.name) for asked in self.asked]
        super().__init__(out, named, config, ANSWERS, "folder of sampled answers")

    @property
    def failed(self) -> int:
        """Questions of which a sampling is missing, after a sentence or without."""
        return len({self._by_name[question.id].question.id for question in self.missing})

    async def run(
        self,
        model: LanguageModel,
        settings: AnswerSettings,
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Sample what is missing. Raises TooManyFailures as soon as more than ``max_failures`` questions have raised."""

        async def find(question: Question) -> Line:
            return await sample(self._by_name[question.id], model, settings)

        await self.collect(find, concurrency, max_failures, on_line)

    def finish(self) -> list[Familiar]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        return familiar(self.asked, self.in_order())


def read_answers(out: Path, questions: Sequence[Question]) -> list[Familiar]:
    """What a finished sampling says of the questions, in their order. Raises InvalidInput where some are missing."""
    by_question: dict[str, dict[str, Line]] = {}
    for _, line in read_lines(out / ANSWERS):
        name = line["question_id"]
        by_question.setdefault(name.removesuffix(_after(_sentence(line))), {})[name] = line
    missing = [question.id for question in questions if question.id not in by_question]
    if missing:
        raise InvalidInput(
            f"{out / ANSWERS}: got {len(by_question)} questions, expected {len(missing)} more ({missing[0]!r}, ...). "
            "Give the same command with --answers-only first."
        )
    found = [(Asked(one, _sentence(line)), line) for one in questions for line in by_question[one.id].values()]
    return familiar([asked for asked, _ in found], [line for _, line in found])


def familiar(asked: Sequence[Asked], lines: Sequence[Line]) -> list[Familiar]:
    return [
        Familiar(one.question, tuple(line["answers"]), tuple(line["correct"]), one.sentence)
        for one, line in zip(asked, lines, strict=True)
        if "acc_rate" in line
    ]


def _after(sentence: Passage | None) -> str:
    return "" if sentence is None else f" after {sentence.id}"


def _shown(sentence: Passage | None) -> Line:
    return {} if sentence is None else {"sentence": {"id": sentence.id, "title": sentence.title, "text": sentence.text}}


def _sentence(line: Line) -> Passage | None:
    one = line.get("sentence")
    return Passage(one["id"], one["text"], one["title"]) if one else None


def require_usable(questions: Sequence[Question]) -> None:
    """Raise InvalidInput for a question without a gold answer, or where two share an id."""
    require_answers(questions, "without it there is no telling whether the model knows")
    require_distinct(questions)
