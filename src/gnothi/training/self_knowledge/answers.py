"""Self-knowledge data: how often the model is right about each training question (SKILL-RAG, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidInput
from gnothi.evaluation.journal import read_lines
from gnothi.methods.answers import short_answer
from gnothi.methods.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel
from gnothi.training.collecting import Collecting, Line, require_answers, require_distinct
from gnothi.training.self_knowledge.reward import INDIFFERENT
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.types import Question

ANSWERS = "answers.jsonl"
"""Lines of ``question_id``, ``question``, ``choices``, ``gold``, ``answers`` (the n sampled ones), ``correct`` (one truth value
each), ``acc_rate`` (their mean), ``usage``; or ``question_id`` and ``error``."""


@dataclass(frozen=True, slots=True)
class Familiar:
    """A training question with the answers that were sampled, and whether each was right."""

    question: Question
    answers: tuple[str, ...]
    correct: tuple[bool, ...]

    @property
    def acc_rate(self) -> float:
        return sum(self.correct) / len(self.correct)

    @property
    def known(self) -> bool:
        """Whether Yes is worth more than No."""
        return self.acc_rate > INDIFFERENT


async def sample(question: Question, model: LanguageModel, settings: AnswerSettings) -> Line:
    """What is found out about one question, which is put as every method puts it when it wants a short answer from memory."""
    samples = await model.sample(ask(ANSWER, question), settings.n, settings.decoding)
    answers = [short_answer(generation.text) for generation in samples.generations]
    correct = [settings.correct(answer, question.answers, question.choices) for answer in answers]
    return {
        "question": question.text,
        "choices": list(question.choices),
        "gold": list(question.answers),
        "answers": answers,
        "correct": correct,
        "acc_rate": sum(correct) / len(correct),
    }


class Answers(Collecting):
    """The sampling for a list of questions, in a folder of its own that survives any interruption."""

    def __init__(self, out: Path, questions: Sequence[Question], config: Mapping[str, Any]) -> None:
        """Raises InvalidSetting where ``out`` was made with another ``config``, InvalidInput as ``require_usable``."""
        require_usable(questions)
        super().__init__(out, questions, config, ANSWERS, "folder of sampled answers")

    async def run(
        self,
        model: LanguageModel,
        settings: AnswerSettings,
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Sample what is missing. Raises TooManyFailures as soon as more than ``max_failures`` questions have raised."""
        await self.collect(lambda question: sample(question, model, settings), concurrency, max_failures, on_line)

    def finish(self) -> list[Familiar]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        return familiar(self.questions, self.in_order())


def read_answers(out: Path, questions: Sequence[Question]) -> list[Familiar]:
    """What a finished sampling says of the questions, in their order. Raises InvalidInput where some are missing."""
    lines = {line["question_id"]: line for _, line in read_lines(out / ANSWERS)}
    missing = [question.id for question in questions if question.id not in lines]
    if missing:
        raise InvalidInput(
            f"{out / ANSWERS}: got answers to {len(lines)} questions, expected {len(missing)} more ({missing[0]!r}, ...). Give "
            "the same command with --answers-only first."
        )
    return familiar(questions, [lines[question.id] for question in questions])


def familiar(questions: Sequence[Question], lines: Sequence[Line]) -> list[Familiar]:
    return [
        Familiar(question, tuple(line["answers"]), tuple(line["correct"]))
        for question, line in zip(questions, lines, strict=True)
        if "acc_rate" in line
    ]


def require_usable(questions: Sequence[Question]) -> None:
    """Raise InvalidInput for a question without a gold answer, or where two share an id."""
    require_answers(questions, "without it there is no telling whether the model knows")
    require_distinct(questions)
