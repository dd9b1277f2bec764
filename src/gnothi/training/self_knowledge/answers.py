"""Self-knowledge data: how often the model is right about each training question (SKILL-RAG, section 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, RunStopped, TooManyFailures
from gnothi.evaluation.journal import Journal, claim, read_lines
from gnothi.events import Usage, record
from gnothi.methods.answers import short_answer
from gnothi.methods.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.training.self_knowledge.reward import INDIFFERENT
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.types import Question

ANSWERS = "answers.jsonl"

Line = dict[str, Any]
"""What ``answers.jsonl`` holds of a question: ``question_id``, ``question``, ``choices``, ``gold``, ``answers`` (the n sampled
ones), ``correct`` (one truth value each), ``acc_rate`` (their mean), ``usage``; or ``question_id`` and ``error``."""


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
    """One question's line. The question is put as every method puts it when it wants a short answer from memory."""
    with question_scope(0, question.id), record() as events:
        samples = await model.sample(ask(ANSWER, question), settings.n, settings.decoding)
    answers = [short_answer(generation.text) for generation in samples.generations]
    correct = [settings.correct(answer, question.answers, question.choices) for answer in answers]
    return {
        "question_id": question.id,
        "question": question.text,
        "choices": list(question.choices),
        "gold": list(question.answers),
        "answers": answers,
        "correct": correct,
        "acc_rate": sum(correct) / len(correct),
        "usage": asdict(Usage.of(events)),
    }


class Collecting:
    """The sampling for a list of questions in a folder of its own, by one process. Use as a context manager.

    Finished lines are on disk, whatever ends the process; the same questions and ``config`` go on from there and end in the
    same file. A question that raised is a line with its error, and is missing the next time.
    """

    def __init__(self, out: Path, questions: Sequence[Question], config: Mapping[str, Any]) -> None:
        """Raises InvalidSetting where ``out`` was made with another ``config``, InvalidInput as ``require_usable``."""
        require_usable(questions)
        self.out, self.questions = out, questions
        self._lock = claim(out, config, "folder of sampled answers")
        try:
            self._lines: dict[str, Line] = {line["question_id"]: line for _, line in read_lines(out / ANSWERS)}
            self._journal = Journal(out / ANSWERS)
        except BaseException:
            self._lock.close()
            raise
        self.spent = Counter[str]()
        for line in self._lines.values():
            self.spent.update(line.get("usage", {}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        self._lock.close()

    @property
    def missing(self) -> list[Question]:
        return [question for question in self.questions if "acc_rate" not in self._lines.get(question.id, {})]

    async def run(
        self,
        model: LanguageModel,
        settings: AnswerSettings,
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Sample what is missing. Raises TooManyFailures as soon as more than ``max_failures`` questions have raised."""
        missing = self.missing
        pending = iter(missing)
        failures = 0

        async def work() -> None:
            nonlocal failures
            for question in pending:
                line = await _line(question, model, settings)
                self._journal.append(line)
                self._lines[question.id] = line
                self.spent.update(line.get("usage", {}))
                if on_line is not None:
                    on_line(line)
                failures += "error" in line
                if max_failures is not None and failures > max_failures:
                    raise TooManyFailures(
                        f"stopped: {failures} questions failed, the last one ({question.id}) with "
                        f"{line['error']['type']}: {line['error']['message']} What is finished is kept in {self.out}: remove "
                        "the cause and give the same command again, or allow more with --max-failures."
                    )

        await gather(*(work() for _ in range(min(concurrency, len(missing)))))

    def finish(self) -> list[Familiar]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        lines = [self._lines[question.id] for question in self.questions]
        self._journal.rewrite(lines)
        return familiar(self.questions, lines)


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


async def _line(question: Question, model: LanguageModel, settings: AnswerSettings) -> Line:
    try:
        return await sample(question, model, settings)
    except RunStopped:
        raise  # no fault of this question
    except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
        return {"question_id": question.id, "error": {"type": type(error).__name__, "message": str(error)}}


def require_usable(questions: Sequence[Question]) -> None:
    """Raise InvalidInput for a question without a gold answer, or where two share an id."""
    for question in questions:
        if not question.answers:
            raise InvalidInput(
                f"question {question.id!r} has no gold answer, expected one: without it there is no telling whether the model "
                "knows. Leave such questions out."
            )
    twice = [name for name, count in Counter(question.id for question in questions).items() if count > 1]
    if twice:
        raise InvalidInput(f"got the question id {twice[0]!r} more than once, expected each once. Remove the others.")
