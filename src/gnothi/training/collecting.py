"""Something found out about each of a list of questions, whatever interrupts it: the base of what training collects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, RunStopped, TooManyFailures, counted, reason, recorded, sentence
from gnothi.events import Usage, record
from gnothi.runs.journal import Journal, claim, read_lines
from gnothi.runs.questions import changed
from gnothi.seeding import question_scope
from gnothi.types import Question

Line = dict[str, Any]
"""What the journal holds of a question: ``question_id``, what was found out, ``usage``; or ``question_id`` and ``error``."""
Finding = Callable[[Question], Awaitable[Line]]
"""Finds out what there is to know about a question."""


class Collecting:
    """Findings about a list of questions in a folder of its own, by one process. Use as a context manager.

    Finished lines are on disk, whatever ends the process; the same questions and ``config`` go on from there and end in the
    same file, also where questions were added at the end. A question that raised is a line with its error, and is missing the
    next time.
    """

    file: ClassVar[str]
    """The journal's name in the folder."""
    what: ClassVar[str]
    """Names the folder in messages."""
    why: ClassVar[str]
    """What gold answers are needed for."""

    def __init__(self, out: Path, questions: Sequence[Question], config: Mapping[str, Any] | None) -> None:
        """``config`` None: only reads what is finished, beside a process that writes. Raises InvalidInput as
        ``require_usable``, InvalidSetting where ``out`` was made with another ``config``."""
        self.require_usable(questions)
        self.out, self.questions, self.config, self.writes = out, questions, config or {}, config is not None
        with ExitStack() as opened:
            if config is not None:
                opened.enter_context(claim(out, config, self.what, lambda before: changed(before, questions, ())))
            self._lines: dict[str, Line] = {line["question_id"]: line for _, line in read_lines(out / self.file)}
            self._journal = None if config is None else opened.enter_context(closing(Journal(out / self.file)))
            self._opened = opened.pop_all()
        self.spent = Counter[str]()
        for line in self._lines.values():
            self.spent.update(line.get("usage", {}))

    @classmethod
    def require_usable(cls, questions: Sequence[Question]) -> None:
        """Raise InvalidInput for a question without a gold answer, or where two share an id, by which findings are kept."""
        for question in questions:
            if not question.answers:
                raise InvalidInput(
                    f"question {question.id!r} has no gold answer, expected one: {cls.why}. Leave such questions out."
                )
        twice = [name for name, count in Counter(question.id for question in questions).items() if count > 1]
        if twice:
            raise InvalidInput(f"got the question id {twice[0]!r} more than once, expected each once. Remove the others.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Others may write to the folder from now on."""
        self._opened.close()

    @property
    def missing(self) -> list[Question]:
        """Questions about which nothing was found out yet."""
        return [question for question in self.questions if "error" in self._lines.get(question.id, {"error": None})]

    @property
    def failed(self) -> int:
        """How many questions something is missing of."""
        return len(self.missing)

    def require_finished(self, flag: str) -> None:
        """Raise InvalidInput for questions that nothing was tried for; with ``flag`` nothing else is done."""
        rest = [question.id for question in self.questions if question.id not in self._lines]
        if rest:
            raise InvalidInput(
                f"{self.out / self.file}: got {len(self.questions) - len(rest)} questions, expected {len(rest)} more "
                f"({rest[0]!r}, ...). First collect what is learnt from, in one process: run the same command without "
                f"the launcher and with {flag}."
            )

    def why_failed(self) -> str:
        """How many questions failed and the commonest reason, as a sentence; empty where none did."""
        errors = [error for line in self._lines.values() if (error := line.get("error"))]
        if not errors:
            return ""
        reasons = Counter(map(reason, errors))
        ((commonest, times),) = reasons.most_common(1)
        often = "all" if len(reasons) == 1 else f"{times} of them"
        return f"{len(errors)} of {len(self.questions)} questions failed, {often} with {sentence(commonest)}"

    async def collect(
        self,
        find: Finding,
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Find out what is missing, here. Raises as ``collect_lines``."""
        await self.collect_lines(partial(line_of, "", find), concurrency, max_failures, on_line)

    async def collect_lines(
        self,
        line_of: Callable[[Question], Awaitable[Line]],
        concurrency: int = 256,
        max_failures: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        """Gather the lines that are missing, wherever they are made. Raises TooManyFailures as soon as more than
        ``max_failures`` questions have raised, and BudgetSpent when a model would cost more than it may."""
        missing = self.missing
        pending = iter(missing)
        failures = 0

        async def work() -> None:
            nonlocal failures
            for question in pending:
                line = await line_of(question)
                if self._journal is not None:
                    self._journal.append(line)
                self._lines[question.id] = line
                self.spent.update(line.get("usage", {}))
                if on_line is not None:
                    on_line(line)
                failures += "error" in line
                if max_failures is not None and failures > max_failures:
                    raise TooManyFailures(_hopeless(failures, line, self.out))

        await gather(*(work() for _ in range(min(concurrency, len(missing)))))

    def in_order(self) -> list[Line]:
        """All lines, put in the order of the questions in the file, too."""
        lines = [self._lines[question.id] for question in self.questions]
        if self._journal is not None:
            self._journal.rewrite(lines)
        return lines


async def line_of(name: str, find: Finding, question: Question) -> Line:  # noqa: ARG001 - as runs.host.Ask demands
    """What is found out about the question, or its error. Raises RunStopped alone."""
    try:
        with question_scope(0, question.id), record() as events:
            values = await find(question)
    except RunStopped:
        raise  # no fault of this question
    except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
        return {"question_id": question.id, "error": recorded(error)}
    return {"question_id": question.id, **values, "usage": asdict(Usage.of(events))}


def _hopeless(failures: int, line: Line, out: Path) -> str:
    return (
        f"stopped: {counted(failures, 'question')} failed, the last one ({line['question_id']}) with "
        f"{sentence(reason(line['error']))} What is finished is kept in {out}: remove the cause and give the same command "
        "again, or allow more with <--max-failures>."
    )
