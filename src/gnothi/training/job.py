"""What is trained from, with and to, and all that trainings ask ``gnothi.session`` for: a plan, its record, what it opens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gnothi import config, methods
from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import MODEL_SECTION, SERVER_SECTIONS, check_sections
from gnothi.models import LAB
from gnothi.models.registry import scheme_of
from gnothi.models.scheme import LABORATORYS
from gnothi.models.settings import HereSettings
from gnothi.protocols import KnowledgeGraph, LanguageModel, Retriever
from gnothi.runs.journal import EXECUTION
from gnothi.session import sources, worlds
from gnothi.session.data import refuse_test_questions
from gnothi.session.fingerprints import Named, fingerprints
from gnothi.session.plan import Execution, Plan, QuestionSet, Request, resolve, with_questions
from gnothi.session.record import of_questions, of_sources
from gnothi.session.resources import label, opened_methods, under_way
from gnothi.session.watch import SILENT, Watch
from gnothi.session.workers import is_elsewhere, where, workers
from gnothi.training.collecting import Finding, Line, line_of
from gnothi.training.finetuning import Origin
from gnothi.types import Question
from gnothi.version import __version__

S = TypeVar("S")
R = TypeVar("R", LanguageModel, Retriever, KnowledgeGraph)
Data = str | Sequence[str] | Sequence[Question]
"""A data set, a file, several of these, or questions."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to train from, and where to: ``data`` to ``out``, a folder.

    ``model``, ``index`` and ``graph`` are names; the last two are the laboratory's with the laboratory's model. ``findings`` is
    a folder for what is found out first, which several trainings may share (None: in ``out``); with ``collect_only`` that is
    all. It is found out in so many ``workers``, ``on`` a cluster of Ray with ``gpus`` each, as in ``Execution``. Raises
    InvalidSetting for the laboratory's test questions.
    """

    data: Data
    out: Path
    settings: Settings | Mapping[str, object] = field(default_factory=Settings)
    model: str = LAB
    index: str | None = None
    graph: str | None = None
    findings: Path | None = None
    collect_only: bool = False
    format: str | None = None
    limit: int | None = None
    concurrency: int | None = None
    max_failures: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    workers: int = 1
    on: str | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        for one in [self.data] if isinstance(self.data, str) else self.data:
            if isinstance(one, str):
                refuse_test_questions(one)

    @property
    def typed_settings(self) -> Settings:
        return Settings.of(self.settings)

    @property
    def execution(self) -> Execution:
        """How training questions are asked."""
        return Execution(0, self.concurrency, self.workers, self.max_failures, self.on, self.gpus)

    def settings_as(self, kind: type[S], name: str) -> S:
        """The settings of the thing that is trained. Raises UnknownName or InvalidSetting."""
        check_sections(self.typed_settings, ())
        return config.build(kind, self.typed_settings.plain({MODEL_SECTION, *SERVER_SECTIONS, *methods.names()}), name)

    def plan(self, method: str | None = None, settings: Settings | None = None) -> Plan:
        """Model, index, graph and the method, resolved; ``settings`` None: with the settings of the model. Raises as
        ``resolve``."""
        if settings is None:
            of_model = f"{MODEL_SECTION}."
            settings = Settings({key: one for key, one in self.typed_settings.given.items() if key.startswith(of_model)})
        return resolve(
            Request(
                methods=[] if method is None else [method],
                model=self.model,
                index=self.index,
                graph=self.graph,
                settings=settings,
                max_cost=self.max_cost,
                max_tokens=self.max_tokens,
            )
        )

    def or_lab(self, spec: str | None, lacking: str) -> str:
        """The spec, or that of its world with a laboratory's model. Raises InvalidSetting, which says ``lacking``, where there
        is none."""
        if (named := spec or worlds.own(self.model)) is None:
            raise InvalidSetting(lacking)
        return named

    def origin(self, plan: Plan) -> Origin:
        """The model as one whose weights are trained; one under vLLM finds out what is learnt from, and the library trains it.
        Raises InvalidSetting where the weights are not at hand."""
        settings, argument = plan.models[self.model], scheme_of(self.model)[2]
        if not isinstance(settings, HereSettings):
            raise InvalidSetting(
                f"<--model>: got {self.model!r}, expected 'lab', a folder or a hub id, also as vllm:MODEL: a model is trained "
                "in this process, by its weights."
            )
        return Origin(self.model, str(LABORATORYS.get(argument, argument)), settings)

    def question_set(self, plan: Plan) -> QuestionSet:
        """Raises UnknownName or InvalidInput."""
        return with_questions(plan, self.data, self.format, self.limit, self.execution).questions


def record(plan: Plan, question_set: QuestionSet, named: Mapping[str, Named]) -> dict[str, Any]:
    """What anything learnt depends on: questions, model, what else is ``named``, methods."""
    return {
        **of_questions(question_set),
        **of_sources(plan, named),
        **({"methods": [method.name for method in plan.methods]} if plan.methods else {}),
        **plan.resolved,
        f"{EXECUTION}gnothi": __version__,
    }


def of_named(**named: Named) -> dict[str, Any]:
    return {key: spec for key, (_, spec) in named.items()} | fingerprints(named)


def of_settings(prefix: str, settings: object, without: str = "") -> dict[str, Any]:
    """All of them, ``without`` those of a section."""
    values = config.resolved(settings)
    return {f"{prefix}.{key}": value for key, value in values.items() if key.partition(".")[0] != without}


class Sources:
    """What a plan names, opened when it is asked for, the model once, and closed together."""

    def __init__(self, plan: Plan, watch: Watch, opened: AsyncExitStack) -> None:
        self.plan, self.watch, self._opened = plan, watch, opened
        self._model: LanguageModel | None = None
        self.under_way: int | None = None  # questions that what is opened gains from at a time, if it says

    def model(self) -> LanguageModel:
        if self._model is None:
            spec = self.plan.sources.model
            self._model = self._keep(f"model {spec}", lambda: sources.open_model(spec, self.plan.models[spec]))
            self.under_way = under_way(self._model)
        return self._model

    def index(self, spec: str) -> Retriever:
        return self._keep(f"index {spec}", lambda: sources.open_index(spec))

    def graph(self, spec: str) -> KnowledgeGraph:
        return self._keep(f"graph {spec}", lambda: sources.open_graph(spec))

    async def method(self) -> Any:
        """The plan's only method, over resources of its own."""
        (method,) = self.plan.methods
        with self.watch.waiting(f"opening model {self.plan.sources.model} ..."):
            methods = await self._opened.enter_async_context(opened_methods([self.plan]))
        self.under_way = methods.under_way
        return methods[label(0, method.name)]

    def _keep(self, what: str, opening: Callable[[], R]) -> R:
        with self.watch.waiting(f"opening {what} ..."):
            resource = opening()
        self._opened.push_async_callback(resource.aclose)
        return resource


Opening = Callable[[Sources], Awaitable[Finding]]
"""Opens what finds out about a question. Other processes call it, too, so it must be a function of a module, or a ``partial``
of one."""
Asking = Callable[[Question], Awaitable[Line]]


class _Open(dict[str, Finding]):
    """What is open in another process, and how many questions it gains from at a time, if it says."""

    under_way: int | None = None


@asynccontextmanager
async def asking(
    opening: Opening, sources: Sources, execution: Execution, missing: int
) -> AsyncIterator[tuple[Asking, int | None]]:
    """What asks one question, and how many it gains from at a time, if it says. ``missing`` questions need no more processes
    than that. Raises what opening raises."""
    plan, watch = sources.plan, sources.watch
    count = min(execution.workers, missing)
    if not is_elsewhere(execution, count):
        find = await opening(sources)
        yield partial(line_of, "", find), sources.under_way
        return
    several = workers(execution, count, partial(_opened, plan, opening), line_of, watch.warn)
    async with AsyncExitStack() as stack:
        with watch.waiting(f"opening model {plan.sources.model}{where(execution, count)} ..."):
            worker = await stack.enter_async_context(several)
        yield partial(worker, ""), worker.under_way


@asynccontextmanager
async def _opened(plan: Plan, opening: Opening) -> AsyncIterator[_Open]:
    async with AsyncExitStack() as stack:
        sources = Sources(plan, SILENT, stack)
        opened = _Open({"": await opening(sources)})
        opened.under_way = sources.under_way
        yield opened
