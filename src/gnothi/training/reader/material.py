"""What a reader learns from: the prompts that a method would put before it, each with the gold answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from gnothi import methods
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ANSWER
from gnothi.training.collecting import Collecting, Line
from gnothi.types import Demonstration, Passage, Prompt, Question, Task

PROMPTS = "prompts.jsonl"
"""Lines of ``question_id``, ``question``, ``choices``, ``passages`` (id, text, title), ``task`` (None: the usual one for short
answers), ``usage``; or ``question_id`` and ``error``."""


class Asking(Protocol):
    """A method that can train its reader."""

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked, with all that the method puts before the question."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the answer it should get."""

    question: Question
    prompt: Prompt
    target: str


class Material(Collecting):
    """The prompts for a list of questions, in a folder of its own that survives any interruption."""

    file, what = PROMPTS, "folder of a reader's prompts"
    why = "it is what the reader learns to say"

    @classmethod
    def require_usable(cls, questions: Sequence[Question]) -> None:
        """Raise InvalidInput also for a question whose choices do not hold the gold answer."""
        super().require_usable(questions)
        for question in questions:
            if question.choices and target(question) not in question.choices:
                raise InvalidInput(
                    f"question {question.id!r}: the gold answer {question.answers[0]!r} is none of the choices "
                    f"({', '.join(question.choices)}). Correct the question, or leave it out."
                )

    def finish(self) -> list[Example]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        lines = zip(self.questions, self.in_order(), strict=True)
        return [Example(question, _read(line), target(question)) for question, line in lines if "error" not in line]


async def prompt_of(question: Question, method: Asking) -> Line:
    """The line of one question."""
    return _written(await method.prompt(question))


def require_prompts(name: str) -> None:
    """Raise UnknownName for a method that there is not, InvalidSetting for one that does not say what its reader is asked."""
    if not hasattr(methods.spec(name).method, "prompt"):
        able = [other for other in methods.names() if hasattr(methods.spec(other).method, "prompt")]
        raise InvalidSetting(
            f"<--method>: got {name!r}, which reads in several steps and has no one prompt to learn from; expected "
            f"one of {', '.join(able)}."
        )


def target(question: Question) -> str:
    """What the reader is to say: the first gold answer, as its choice is written where there are choices."""
    return as_choice(question.answers[0], question.choices)


def _written(prompt: Prompt) -> Line:
    if prompt.task.name != ANSWER.name or prompt.answer_so_far:
        raise InvalidSetting(
            f"got a prompt of the task {prompt.task.name!r}, expected {ANSWER.name!r}: gold answers teach to answer, not to "
            "reason. Use "
            f"<--set reason=false>, or a method that asks for the answer at once."
        )
    return {
        "question": prompt.question,
        "choices": list(prompt.choices),
        "passages": [asdict(passage) for passage in prompt.passages],
        "task": None if prompt.task == ANSWER else asdict(prompt.task),
    }


def _read(line: Line) -> Prompt:
    passages = tuple(Passage(**passage) for passage in line["passages"])
    task = ANSWER if line["task"] is None else _task(line["task"])
    return Prompt(task, line["question"], passages, tuple(line["choices"]))


def _task(record: Mapping[str, Any]) -> Task:
    demonstrations = tuple(
        Demonstration(
            demonstration["question"],
            demonstration["answer"],
            tuple(Passage(**passage) for passage in demonstration["passages"]),
            tuple(demonstration["choices"]),
        )
        for demonstration in record["demonstrations"]
    )
    return Task(record["name"], record["instruction"], demonstrations, record["answer_label"], record.get("form", ""))
