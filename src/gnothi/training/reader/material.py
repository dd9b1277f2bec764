"""What a reader learns from: the prompts that a method would put before it, each with the gold answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from gnothi import methods
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ANSWER
from gnothi.training.collecting import Collecting, Line, require_answers, require_distinct
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

    def __init__(self, out: Path, questions: Sequence[Question], config: Mapping[str, Any]) -> None:
        """Raises InvalidSetting where ``out`` was made with another ``config``, InvalidInput as ``require_usable``."""
        require_usable(questions)
        super().__init__(out, questions, config, PROMPTS, "folder of a reader's prompts")

    async def run(
        self,
        method: Asking,
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Ask the method what is missing. Raises as ``Collecting.collect``."""

        async def find(question: Question) -> Line:
            return _written(await method.prompt(question))

        await self.collect(find, concurrency, max_failures, on_line)

    def finish(self) -> list[Example]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        lines = zip(self.questions, self.in_order(), strict=True)
        return [Example(question, _read(line), target(question)) for question, line in lines if "error" not in line]


def require_usable(questions: Sequence[Question]) -> None:
    """Raise InvalidInput for a question without a gold answer, or whose choices do not hold it, or where two share an id."""
    require_answers(questions, "it is what the reader learns to say")
    require_distinct(questions)
    for question in questions:
        if question.choices and target(question) not in question.choices:
            raise InvalidInput(
                f"question {question.id!r}: the gold answer {question.answers[0]!r} is none of the choices "
                f"({', '.join(question.choices)}). Correct the question, or leave it out."
            )


def require_prompts(name: str) -> None:
    """Raise UnknownName for a method that there is not, InvalidSetting for one that does not say what its reader is asked."""
    if not hasattr(methods.find(name), "prompt"):
        able = [other for other in methods.names() if hasattr(methods.find(other), "prompt")]
        raise InvalidSetting(
            f"--method: got {name!r}, which reads in several steps and has no one prompt to learn from; expected one of "
            f"{', '.join(able)}."
        )


def target(question: Question) -> str:
    """What the reader is to say: the first gold answer, as its choice is written where there are choices."""
    return as_choice(question.answers[0], question.choices)


def _written(prompt: Prompt) -> Line:
    if prompt.task.name != ANSWER.name or prompt.answer_so_far:
        raise InvalidSetting(
            f"got a prompt of the task {prompt.task.name!r}, expected {ANSWER.name!r}: gold answers teach to answer, not to "
            "reason. Use --set reason=false, or a method that asks for the answer at once."
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


def _task(given: Mapping[str, Any]) -> Task:
    shown = tuple(
        Demonstration(
            one["question"],
            one["answer"],
            tuple(Passage(**passage) for passage in one["passages"]),
            tuple(one["choices"]),
        )
        for one in given["demonstrations"]
    )
    return Task(given["name"], given["instruction"], shown, given["answer_label"])
