"""What models are asked to do: the default tasks by name, and prompts of them.

Instructions and demonstrations are data: ``gnothi/prompts/default.toml``. A model trained on a format of its own (the
laboratory's) sees the task's name only; another set is shown by the model's setting ``demonstrations``.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.errors import InvalidInput
from gnothi.prompts.sets import shipped
from gnothi.signals.kinds.self_report import KNOW
from gnothi.types import Passage, Prompt, Question, Task

CONCLUSION = "So the answer is"

_DEFAULT = shipped()
REASON = _DEFAULT["reason"]
STEP_BY_STEP = _DEFAULT["step_by_step"]
"""Zero-shot (Kojima et al. 2022): a model with a format of its own is asked as ever."""
ANSWER = _DEFAULT["answer"]
ANSWER_YES_NO = _DEFAULT["answer_yes_no"]
DECOMPOSE = _DEFAULT["decompose"]
EQUIVALENT = _DEFAULT["equivalent"]
USEFUL = _DEFAULT["useful"]
SUMMARISE = _DEFAULT["summarise"]
"""A chain of thought over notes: a model with a format of its own needs no other one for it."""
SUMMARISE_YES_NO = _DEFAULT["summarise_yes_no"]
DESCRIBE = _DEFAULT["describe"]
KNOWLEDGE = _DEFAULT["knowledge"]
"""Asked of a question instead of a thing: a model with a format of its own knows no other task that tells something."""
REVISE = _DEFAULT["revise"]

TASKS = {task.name: task for task in (REASON, ANSWER, KNOW, DECOMPOSE, EQUIVALENT, USEFUL, DESCRIBE, REVISE)}


def reasoning(demonstrations: bool) -> Task:
    """Chain of thought with worked examples, or with an instruction alone."""
    return REASON if demonstrations else STEP_BY_STEP


def require_text(question: Question) -> None:
    """Raise InvalidInput for a blank question: nothing can be searched for or answered."""
    if not question.text.strip():
        raise InvalidInput(f"question {question.id!r}: got no text, expected a question.")


def ask(task: Task, question: Question, passages: Sequence[Passage] = (), so_far: str = "") -> Prompt:
    """The prompt of ``task`` about ``question``, with the reply as it stands. Raises InvalidInput for a blank question."""
    require_text(question)
    return Prompt(task, question.text, tuple(passages), question.choices, so_far)
