"""Self-knowledge data: how often the model is right about each training question (SKILL-RAG, section 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

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
from gnothi.types import Passage, Question

ANSWERS = "answers.jsonl"

Line = dict[str, Any]
"""What ``answers.jsonl`` holds of a question: ``question_id``, ``question``, ``choices``, ``gold``, ``answers`` (the n sampled
ones), ``correct`` (one truth value each), ``acc_rate`` (their mean), ``usage``; or ``question_id`` and ``error``. A line of a
question that is shown a sentence has it as ``sentence``: ``id``, ``title``, ``text``."""


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
        return self.question.id if self.sentence is None else f"{self.question.id} after {self.sentence.id}"


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
    """One question's line. The question is put as every method puts it when it wants a short answer."""
    question = asked.question
    with question_scope(0, asked.name), record() as events:
        samples = await model.sample(ask(ANSWER, question, asked.passages), settings.n, settings.decoding)
    answers = [short_answer(generation.text) for generation in samples.generations]
    correct = [settings.correct(answer, question.answers, question.choices) for answer in answers]
    return {
        "question_id": question.id,
        **_shown(asked),
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
        self.out = out
        shown = sentences or {}
        self.asked = [Asked(question, one) for question in questions for one in (None, *shown.get(question.id, ()))]
        self._lock = claim(out, config, "folder of sampled answers")
        try:
            self._lines = _by_name(out)
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
    def missing(self) -> list[Asked]:
        return [asked for asked in self.asked if "acc_rate" not in self._lines.get(asked.name, {})]

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
            for asked in pending:
                line = await _line(asked, model, settings)
                self._journal.append(line)
                self._lines[asked.name] = line
                self.spent.update(line.get("usage", {}))
                if on_line is not None:
                    on_line(line)
                failures += "error" in line
                if max_failures is not None and failures > max_failures:
                    raise TooManyFailures(
                        f"stopped: {failures} questions failed, the last one ({asked.name}) with "
                        f"{line['error']['type']}: {line['error']['message']} What is finished is kept in {self.out}: remove "
                        "the cause and give the same command again, or allow more with --max-failures."
                    )

        await gather(*(work() for _ in range(min(concurrency, len(missing)))))

    def finish(self) -> list[Familiar]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        lines = [self._lines[asked.name] for asked in self.asked]
        self._journal.rewrite(lines)
        return familiar(self.asked, lines)


def read_answers(out: Path, questions: Sequence[Question]) -> list[Familiar]:
    """What a finished sampling says of the questions, in their order. Raises InvalidInput where some are missing."""
    lines = _by_name(out)
    missing = [question.id for question in questions if question.id not in lines]
    if missing:
        raise InvalidInput(
            f"{out / ANSWERS}: got answers to {len(lines)} questions, expected {len(missing)} more ({missing[0]!r}, ...). Give "
            "the same command with --answers-only first."
        )
    by_question: dict[str, list[Line]] = {}
    for line in lines.values():
        by_question.setdefault(line["question_id"], []).append(line)
    found = [(Asked(question, _sentence(line)), line) for question in questions for line in by_question[question.id]]
    return familiar([asked for asked, _ in found], [line for _, line in found])


def familiar(asked: Sequence[Asked], lines: Sequence[Line]) -> list[Familiar]:
    return [
        Familiar(one.question, tuple(line["answers"]), tuple(line["correct"]), one.sentence)
        for one, line in zip(asked, lines, strict=True)
        if "acc_rate" in line
    ]


def _by_name(out: Path) -> dict[str, Line]:
    """The lines on disk, the last one of each question and sentence."""
    lines = [line for _, line in read_lines(out / ANSWERS)]
    return {Asked(Question(line["question_id"], ""), _sentence(line)).name: line for line in lines}


def _shown(asked: Asked) -> Line:
    one = asked.sentence
    return {} if one is None else {"sentence": {"id": one.id, "title": one.title, "text": one.text}}


def _sentence(line: Line) -> Passage | None:
    one = line.get("sentence")
    return Passage(one["id"], one["text"], one["title"]) if one else None


async def _line(asked: Asked, model: LanguageModel, settings: AnswerSettings) -> Line:
    try:
        return await sample(asked, model, settings)
    except RunStopped:
        raise  # no fault of this question
    except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
        return {
            "question_id": asked.question.id,
            **_shown(asked),
            "error": {"type": type(error).__name__, "message": str(error)},
        }


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
