"""The one walk of everything that is trained from questions: ``run``.

A ``Trainable`` is one thing that can be trained; each folder of ``gnothi.training`` has one. First something is found out about
each question, by a model, an index or a method, whatever interrupts it; then it is learnt from.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

from gnothi.errors import InvalidInput, UnknownName
from gnothi.models.remote import budget as books
from gnothi.models.remote.budget import Budget
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.runs.journal import claim
from gnothi.runs.runner import CONCURRENCY
from gnothi.session.execute import budget_of
from gnothi.session.fingerprints import Named
from gnothi.session.plan import QuestionSet
from gnothi.session.watch import SILENT, Watch
from gnothi.training import memory, processes
from gnothi.training.collecting import Collecting
from gnothi.training.finetuning import LIBRARIES, read_header, require_libraries
from gnothi.training.job import Data, Job, Opening, Sources, asking, record
from gnothi.types import Question

C = TypeVar("C", bound=Collecting)
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a training: its folder, how many questions ``failed``, and figures as plain data; ``report``: the main ones
    for people, terms with their explanations (empty in all but the first of several processes)."""

    out: Path
    failed: int
    figures: dict[str, Any]
    report: Sequence[tuple[str, str]] = ()


class Trainable(ABC, Generic[C]):
    """One thing that is trained from questions. To make one checks names and settings, and opens nothing."""

    kind: ClassVar[type[Collecting]]
    """What keeps the findings about the questions."""
    named: Mapping[str, Named] = MappingProxyType({})
    """Indexes and graphs that the findings depend on, by the keys they are recorded under."""
    encoder: str | None = None
    """What the finished thing is searched with; None for most."""
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What it takes, and the extra that brings it."""
    recorded: Mapping[str, Any] = MappingProxyType({})
    """What else they depend on, beside questions, model and method."""

    def __init__(self, job: Job) -> None:
        self.job, self.plan = job, job.plan()

    @classmethod
    def of(cls, data: Data, out: str | Path, **settings: Any) -> Self:
        """``settings`` are what ``Job`` takes, and what this kind does. Raises UnknownName for what neither takes."""
        shared, own = {item.name for item in fields(Job)}, inspect.signature(cls).parameters.keys() - {"job"}
        for name in settings.keys() - shared - own:
            raise UnknownName("parameter of a training", name, shared | own)
        job = Job(data, Path(out), **{name: value for name, value in settings.items() if name in shared})
        return cls(job, **{name: value for name, value in settings.items() if name in own})

    @classmethod
    def train_from(cls, data: Data, out: str | Path, *, watch: Watch = SILENT, **settings: Any) -> Trained:
        """Train from ``data`` to the folder ``out``. ``settings`` as in ``of``; raises as that and ``run``."""
        return run(cls.of(data, out, **settings), watch)

    @property
    def opens(self) -> Iterator[Named]:
        """The protocol and the name of everything that is opened to train it."""
        yield from self.plan.opens
        yield from (one for one in self.named.values() if one[1] is not None)
        if self.encoder is not None:
            yield Encoder, self.encoder

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.job.out

    @property
    def label(self) -> str:
        return self.question_set.dataset

    @cached_property
    def question_set(self) -> QuestionSet:
        """Raises UnknownName or InvalidInput."""
        return self.job.question_set(self.plan)

    def claim(self, locks: ExitStack, about: Mapping[str, Any]) -> None:
        """Lock further folders; ``about`` says what the findings depend on."""

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> C:  # noqa: ARG002
        """The findings so far."""
        findings: C = self.kind(self.folder, questions, about)  # type: ignore[assignment]
        return findings

    def announce(self, watch: Watch) -> None:
        """Tell what it will take, before anything is found out."""

    @abstractmethod
    def opening(self, collecting: C) -> Opening:
        """What opens that which finds out about a question."""

    @abstractmethod
    def conclude(self, collecting: C, watch: Watch) -> Trained:
        """Learn from what was found out, and put what is learnt into the folder."""

    @abstractmethod
    def report(self, trained: Trained) -> list[tuple[str, str]]:
        """Terms and their explanations, for people."""


def run(trainable: Trainable[Any], watch: Watch = SILENT, budget: Budget | None = None) -> Trained:
    """Train. The same call goes on with an interrupted one, and tries failed questions again. ``budget`` None: as the job
    limits what models behind an API may cost.

    Raises UnknownName, InvalidSetting and InvalidInput before there is a folder; TooManyFailures, BudgetSpent, and whatever
    opening and training raise.
    """
    questions = trainable.question_set.questions
    trainable.kind.require_usable(questions)
    about = record(trainable.plan, trainable.question_set, trainable.named) | dict(trainable.recorded)
    trainable.announce(watch)
    budget = budget or budget_of(trainable.plan)
    if trainable.plan.remote:
        watch.paying(budget)
    with books.spending(budget), ExitStack() as locks:
        trainable.claim(locks, about)
        collecting = asyncio.run(_collect(trainable, questions, about, watch, locks))
        trained = trainable.conclude(collecting, watch)
    return replace(trained, report=trainable.report(trained)) if processes.leads() else trained


async def _collect(
    trainable: Trainable[C], questions: Sequence[Question], about: Mapping[str, Any], watch: Watch, locks: ExitStack
) -> C:
    job = trainable.job
    async with AsyncExitStack() as opened:  # closed at the end, since what learns may need the model's memory
        sources = Sources(trainable.plan, watch, opened)
        collecting = await trainable.opened(questions, about, sources)
        locks.enter_context(collecting)
        missing = len(collecting.missing)
        if missing and collecting.writes:
            total = len(collecting.questions)
            async with asking(trainable.opening(collecting), sources, job.execution, missing) as (line_of, under_way):
                with watch.counting(total, total - missing, trainable.label) as progress:
                    await collecting.collect_lines(
                        line_of,
                        job.concurrency or under_way or CONCURRENCY,
                        job.max_failures,
                        lambda line: progress.advance("error" in line, _cost(collecting.spent)),
                    )
    return collecting


def _cost(spent: Counter[str]) -> str:
    """What finding out took, beside the progress."""
    tokens = spent["prompt_tokens"] + spent["generated_tokens"]
    parts = ((spent["retrievals"], "searches"), (spent["model_calls"], "calls"), (tokens, "tokens"))
    return ", ".join(f"{count:,} {what}" for count, what in parts if count)


class Staged(Trainable[C], Generic[C, Row]):
    """Trained step by step, in a folder of its own, from findings that several trainings may share."""

    stage: ClassVar[str]
    """The folder of the findings in ``out``, where no other is named."""
    training: Mapping[str, Any]
    """What the training depends on, beside the findings."""
    libraries: ClassVar[Mapping[str, str]] = LIBRARIES

    def __init__(self, job: Job) -> None:
        """Raises MissingDependency before hours of finding out."""
        super().__init__(job)
        if not job.collect_only:
            require_libraries("this training", self.libraries)
            processes.check()

    @property
    def folder(self) -> Path:
        return Path(self.job.findings or self.job.out / self.stage)

    @property
    def label(self) -> str:
        return f"{self.question_set.dataset}: {self.stage}"

    def claim(self, locks: ExitStack, about: Mapping[str, Any]) -> None:
        if processes.leads():
            locks.enter_context(claim(self.job.out, {**about, **self.training}, "training"))

    def announce(self, watch: Watch) -> None:
        if not self.job.collect_only and processes.leads() and read_header(self.job.out) is None:
            need = self.memory()
            if need is not None:
                memory.report(need, watch)

    def memory(self) -> memory.Memory | None:
        """What the training will hold, None where that is not known."""
        return None

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> C:
        """Several processes only read: they would wait for each other too long. Raises InvalidInput where they find nothing."""
        if processes.count() == 1:
            return await super().opened(questions, about, sources)
        findings = self.read(questions)
        findings.require_finished("<--collect-only>")
        return findings

    def read(self, questions: Sequence[Question]) -> C:
        """What was found out, only to be read."""
        findings: C = self.kind(self.folder, questions, None)  # type: ignore[assignment]
        return findings

    def conclude(self, collecting: C, watch: Watch) -> Trained:
        failed = collecting.failed
        if len(collecting.missing) == len(collecting.questions):
            raise InvalidInput(f"all {failed} questions failed; {self.folder} says why. Remove the cause and try again.")
        examples, figures = self.gather(collecting)
        collecting.close()
        if not self.job.collect_only:
            figures["training"] = self.train(examples, watch)
        return Trained(self.job.out, failed, figures)

    @abstractmethod
    def gather(self, collecting: C) -> tuple[Sequence[Row], dict[str, Any]]:
        """What the findings teach, and their figures."""

    @abstractmethod
    def train(self, examples: Sequence[Row], watch: Watch) -> dict[str, Any]:
        """Figures of the training, at its end."""


# --- words ---------------------------------------------------------------------------------------------------------


def number(figures: Mapping[str, Any] | None, key: str) -> str:
    """A figure for people; a dash where there is none."""
    value = (figures or {}).get(key)
    return "-" if value is None else f"{value:.3f}"


def changes(training: Mapping[str, Any], labels: Mapping[str, str], left_out: str = "") -> list[tuple[str, str]]:
    """What a training changed: figures before and after, by what they are called, and what they were measured on."""
    before, after = training["before"], training["after"]
    rows = [(label, f"{number(before, key)} -> {number(after, key)}") for label, key in labels.items()]
    validated = f"{training['questions']['validation']} questions{left_out}"
    return [*rows, ("validated on", f"{validated}; best after {training['best_step']} steps")]


def failures(trained: Trained) -> str:
    return f", {trained.failed} failed" if trained.failed else ""
