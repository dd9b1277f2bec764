"""What is to be done, resolved once: names, files, environment, settings, calibration, probes and defaults become a ``Plan``.

Opening, running, recording and resuming read the plan and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi import config
from gnothi.calibration import layer, mismatch
from gnothi.calibration.probes import check_learnt, evaluating_warning, learnt_from, with_probe
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, PlannedMethod, fitting, name_of, plan_methods
from gnothi.models import LAB, check_model, model_settings
from gnothi.models.scheme import FORM
from gnothi.own_code import importable
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.registry import Own
from gnothi.runs.on_ray import address_of
from gnothi.session import worlds
from gnothi.session.data import load_several
from gnothi.session.default_method import default_method
from gnothi.session.searches import SearchSettings
from gnothi.signals.registry import PROBE
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration
    from gnothi.models.settings import CallCache


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller wants, as it was given. ``methods`` None: the one that suits (``default_method``). ``model`` None: the
    calibration's, else the laboratory's. ``index`` and ``graph`` are names or objects; None is that of its world with a
    laboratory's model, and nothing with any other. ``ignore_mismatch``: use a calibration or a probe that was made for another
    model or with other settings; None where the caller cannot ask for that."""

    methods: Sequence[str] | None = None
    model: Any = None
    index: Any = None
    graph: Any = None
    settings: Settings = field(default_factory=Settings)
    calibration: Calibration | None = None
    ignore_mismatch: bool | None = False
    max_cost: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions to be asked, and how they were named and read."""

    dataset: str
    questions: Sequence[Question]
    format: str | None = None
    limit: int | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Execution:
    """How questions are asked. Answers depend on ``seed`` alone. ``concurrency`` None: as many as the model gains from. ``on``:
    the cluster whose actors are the ``workers`` (``gnothi.runs.on_ray``), each with ``gpus``; None: this machine."""

    seed: int = 0
    concurrency: int | None = None
    workers: int = 1
    max_failures: int | None = None
    on: str | None = None
    gpus: float | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """What is opened: names or objects. Plans of equal sources share what they open. ``given`` are the settings of models and
    searches that somebody gave, as text."""

    model: Any
    index: Any
    graph: Any
    searches: SearchSettings
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """``models`` are the settings of every model that is opened by name, the main one and those that methods name;
    ``settings`` all that was given, ``notes`` what a person should know of how it was resolved, ``warnings`` what may mislead.
    ``max_cost`` and ``max_tokens`` limit what models behind an API may cost. ``unnamed``: nobody named
    the model, which is the laboratory's."""

    sources: Sources
    methods: tuple[PlannedMethod, ...]
    models: Mapping[str, CallCache]
    settings: Settings
    max_cost: float | None = None
    max_tokens: int | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    calibration: Calibration | None = None
    question_set: QuestionSet | None = None
    execution: Execution = Execution()
    unnamed: bool = False

    @property
    def remote(self) -> bool:
        """Whether a model behind an API is asked."""
        from gnothi.models import is_remote

        return any(map(is_remote, self.models))

    @property
    def opens(self) -> Iterator[tuple[type, Any]]:
        """The protocol and the name, or the object, of everything that is opened to answer."""
        searches = self.sources.searches
        yield from ((LanguageModel, model) for model in (self.sources.model, *self.models))
        yield from ((Retriever, one) for one in (self.sources.index,) if one is not None)
        yield from ((KnowledgeGraph, one) for one in (self.sources.graph,) if one is not None)
        yield from ((Reranker, one) for one in (searches.reranker,) if one is not None)
        yield from (one for method in self.methods for one in method.named.values())

    @property
    def trusting(self) -> list[str]:
        """The methods whose gate is set never to fire."""
        return [method.name for method in self.methods if method.never_retrieves]

    @property
    def questions(self) -> QuestionSet:
        if self.question_set is None:
            raise ValueError("a plan without questions: expected one of `with_questions`")
        return self.question_set

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Method and question of every answer."""
        return [(method.name, question.id) for method in self.methods for question in self.questions.questions]

    @property
    def resolved(self) -> dict[str, Any]:
        """Every setting of every method with its value, by ``method.NAME.KEY``."""
        return {f"method.{one.name}.{key}": value for one in self.methods for key, value in one.values.items()}

    def in_precision(self, precision: str) -> Plan:
        """With the main model in it (empty: any), where nobody gave one."""
        main = self.sources.model
        settings = self.models.get(main) if isinstance(main, str) else None
        if not precision or getattr(settings, "dtype", None) != "auto":
            return self
        kept: Any = settings
        return replace(self, models={**self.models, main: replace(kept, dtype=precision)})

    def on_date(self, date: str) -> Plan:
        """With prompts that take it for today, where nobody gave another."""
        models: dict[str, Any] = dict(self.models)
        dated = {name: replace(one, date=date) for name, one in models.items() if getattr(one, "date", None) == "auto"}
        return replace(self, models=models | dated)

    def method(self, name: str) -> PlannedMethod:
        return next(method for method in self.methods if method.name == name)

    def changed(self, values: Mapping[str, Any], source: str) -> Plan:
        """With other values for settings of its only method."""
        (method,) = self.methods
        return replace(self, methods=(method.changed(values, source),))


def resolve(request: Request) -> Plan:
    """Check and resolve everything that can be before anything heavy is opened.

    Raises UnknownName, InvalidSetting, InvalidInput, OtherModel, or ModelUnavailable for a folder that is not there. Of a
    wrong model and a missing index, the model is reported first.
    """
    settings, found = request.settings, request.calibration
    if (model := fitting(request.model, LanguageModel, "model")) is None:
        model = (found and layer.model_of(found)) or LAB
    unnamed = request.model is None and model == LAB
    index, graph = fitting(request.index, Retriever, "index"), fitting(request.graph, KnowledgeGraph, "graph")
    names, notes = request.methods, [f"model {model}: the calibration is of it"] * (request.model is None and not unnamed)
    if names is None:
        suits, why = default_method(model, settings, found)
        names = [suits]
        notes += filter(None, [why])
    own = dict[str, Given]()
    if found is not None:
        own = layer.settings_of(found, names, settings, None if request.ignore_mismatch else model)
        settings = settings.over(own)
    planned = plan_methods(names, settings, model)
    if found is not None:
        notes += mismatch.check(found, planned, own, model, bool(request.ignore_mismatch))
    if any(PROBE in method.named for method in planned):
        planned = tuple(with_probe(method, model, request.ignore_mismatch, notes.append) for method in planned)
    for method in planned:
        if method.named:
            check_learnt(method, model, request.ignore_mismatch)
    further = (one for method in planned for protocol, one in method.named.values() if protocol is LanguageModel)
    named = list(dict.fromkeys(one for one in (model, *further) if isinstance(one, str)))
    models = model_settings(named, settings.section(MODEL_SECTION))
    index, graph = worlds.beside(model, index, graph)
    if isinstance(model, str):
        check_model(model, on_the_hub=False)
    if index is None:
        check_no_retriever(planned, model)
    searches = config.build(SearchSettings, settings.section(INDEX_SECTION), INDEX_SECTION)
    fields = {key for method in planned for key in (*method.spec.required, *method.spec.optional)}
    reads_graph = "graph" in fields
    fuses, weight = isinstance(index, str) and index.startswith("hybrid:"), settings.given.get(f"{INDEX_SECTION}.dense_weight")
    if not fuses and weight is not None and weight.shared:
        searches = replace(searches, dense_weight=None)
    shared = (MODEL_SECTION, INDEX_SECTION)
    given = sorted((key, repr(one.value)) for key, one in settings.given.items() if key.partition(".")[0] in shared)
    plan = Plan(
        Sources(model, index, graph if reads_graph else None, searches, tuple(given)),
        planned,
        models,
        settings,
        request.max_cost,
        request.max_tokens,
        tuple(notes),
        tuple(method.warning for method in planned if method.warning),
        found,
        unnamed=unnamed,
    )
    if request.max_cost is not None or request.max_tokens is not None:
        _check_budget(plan)
    if found is None or request.ignore_mismatch:
        return plan
    precision = getattr(models[model], "dtype", None) if isinstance(model, str) else model.profile.precision
    mismatch.check_computing(found, precision, form_of(model, models))
    return plan.in_precision(found.precision)


def together(plan: Plan, questions: Sequence[Question] = ()) -> Plan:
    """The plan with a warning where of model and index one is the laboratory's and the other not: a model of an invented world
    knows nothing of other documents, and no other model knows that world. So with ``questions``, some of which are not the
    laboratory's; where all are, it warns of nothing.

    Raises InvalidSetting where nobody named the model, for it was forgotten then."""
    others = [question for question in questions if not worlds.is_of_one(question)]
    if questions and not others:
        return plan
    sources = plan.sources
    warning = worlds.apart(sources.model, sources.index, sources.graph, plan.unnamed)
    if others and not warning:
        warning = worlds.unknown(sources.model, len(others))
    return replace(plan, warnings=(*plan.warnings, warning)) if warning else plan


def form_of(model: Any, models: Mapping[str, CallCache]) -> dict[str, str]:
    """How prompts of the model of that name are written, as far as its settings say."""
    given = models.get(model) if isinstance(model, str) else None
    return {key: str(one) for key in FORM if (one := getattr(given, key, None))}


def with_questions(
    plan: Plan,
    data: str | Path | Sequence[str] | Sequence[Question] | QuestionSet,
    format: str | None = None,
    limit: int | None = None,
    execution: Execution | None = None,
) -> Plan:
    """The plan with questions: of a data set, of a file, of several, themselves, or another plan's. Warns where a probe, or the
    threshold of the calibration, was made with them. Raises UnknownName, InvalidInput, or InvalidSetting for an execution that
    cannot be."""
    execution = execution or Execution()
    _check_execution(plan, execution)
    question_set = data if isinstance(data, QuestionSet) else read_questions(data, format, limit, plan.sources.model)
    plan = together(plan, question_set.questions)
    warnings = [
        evaluating_warning(spec, question_set.dataset)
        for spec in learnt_from(plan.methods, question_set.dataset, question_set.fingerprint)
    ]
    if plan.calibration and (warning := mismatch.chosen_on(plan.calibration, question_set.dataset, question_set.fingerprint)):
        warnings.append(warning)
    return replace(plan, question_set=question_set, execution=execution, warnings=(*plan.warnings, *warnings))


def read_questions(
    data: str | Path | Sequence[str] | Sequence[Question], format: str | None, limit: int | None, model: Any
) -> QuestionSet:
    """Questions of a data set, of a file, of several, or themselves, to be asked of that model. Raises UnknownName,
    InvalidInput, or InvalidSetting for those of another world than the model's."""
    from gnothi.runs.questions import fingerprint

    given: list[str | Question] = [str(data)] if isinstance(data, str | Path) else [*data]
    if named := [one for one in given if isinstance(one, str)]:
        for one in named:
            worlds.check_questions(model, one)
        questions = load_several(named, format, limit)
        return QuestionSet(" + ".join(named), questions, format, limit, fingerprint(questions))
    questions = [one for one in given if not isinstance(one, str)][:limit]
    check_questions(questions)
    return QuestionSet("questions", questions, None, None, fingerprint(questions))


def unanswered(file: Path, format: str | None = None, limit: int | None = None) -> QuestionSet:
    """Questions of a file to be answered, whose answers nobody may know. Raises InvalidInput, UnknownName."""
    from gnothi.datasets import load_unanswered
    from gnothi.runs.questions import fingerprint

    questions = load_unanswered(str(file), format, limit)
    return QuestionSet(str(file), questions, format, limit, fingerprint(questions))


def check_questions(questions: Sequence[object]) -> None:
    """Raise InvalidInput for what is no list of questions with different ids."""
    from gnothi.errors import InvalidInput

    if not questions:
        raise InvalidInput("questions: got an empty list, expected at least one Question.")
    for one in questions:
        if not isinstance(one, Question):
            raise InvalidInput(f"questions: got {one!r:.80} among them, expected objects of the class gnothi.Question.")
    ids = [one.id for one in questions if isinstance(one, Question)]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InvalidInput(f"questions: got the id {twice!r} more than once, expected ids to be unique.")


def check_no_retriever(planned: Sequence[PlannedMethod], model: Any) -> None:
    """Raise InvalidSetting for the first method that cannot do without a retriever; where there is no such model either, that
    is reported first (ModelUnavailable)."""
    for method in planned:
        if "retriever" in method.spec.required:
            if isinstance(model, str):
                check_model(model)
            raise InvalidSetting(
                f"method {method.name!r} looks for evidence and got no index: give <--index PATH> (built with `gnothi "
                "index build`)."
            )


def _check_budget(plan: Plan) -> None:
    """Raises InvalidSetting where costs are limited and no model costs anything; what an object costs is not known."""
    limits = {"<--max-cost>": plan.max_cost, "<--max-tokens>": plan.max_tokens}
    given = [flag for flag, limit in limits.items() if limit is not None]
    if given and not plan.remote and isinstance(plan.sources.model, str):
        raise InvalidSetting(
            f"{given[0]} limits what a model behind an API may cost: got model {name_of(plan.sources.model)!r}, which runs "
            "here and is free; expected openai:NAME. (The length of replies is the setting max_tokens: <--set max_tokens=...>)"
        )


def _check_execution(plan: Plan, execution: Execution) -> None:
    """Raises InvalidSetting where other processes would wait for a model behind an API, or would have to share an object."""
    if execution.on is not None:
        address_of(execution.on)
    elif execution.gpus is not None:
        raise InvalidSetting(f"<--gpus>: got {execution.gpus:g} without a cluster, expected <--on ray> beside it.")
    names = [str(method.name) for method in plan.methods]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidSetting(
            f"methods: got two of the name {twice!r}, expected different names, which tell the rows apart. Give one another "
            "name, or run them into two folders."
        )
    if execution.workers <= 1 and execution.on is None:
        return
    given, instead = ("<--on>", "none") if execution.on else ("<--workers>", "1")
    got = f"{given}: got {execution.on or execution.workers}"
    if plan.remote:
        raise InvalidSetting(
            f"{got} with a model behind an API, expected {instead}: such a run waits for the server "
            "rather than computes, and one process counts what it costs. Raise <--set model.concurrency=...> instead."
        )
    for what in _objects(plan, execution.on is not None):
        raise InvalidSetting(
            f"{got} with {what}, which only this process knows, expected {instead}. Other processes "
            "know what has a name: of this package, of a folder, by another package's entry point, or a function of a module."
        )


def _objects(plan: Plan, on_others: bool) -> Iterator[str]:
    """What was given as an object, but for methods and signals that another process of this machine can import."""
    for key in ("model", "index", "graph"):
        if (value := getattr(plan.sources, key)) is not None and not isinstance(value, str):
            yield f"the {key} {name_of(value)!r} as an object"
    for method in plan.methods:
        for kind, name in (("method", method.name), *(("signal", value) for value in method.values.values())):
            if isinstance(name, Own) and (on_others or not importable(name.thing)):
                yield f"the {kind} {name!r} as an object"
        yield from (f"{key} as an object" for key, (_, given) in method.named.items() if not isinstance(given, str))
