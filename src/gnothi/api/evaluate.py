"""``gnothi.evaluate``: methods over questions into a run folder, as ``gnothi eval`` writes it."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi import methods
from gnothi.api import given
from gnothi.api.given import refuse_running_loop
from gnothi.api.rag import Rag
from gnothi.concurrency import Loop
from gnothi.config import Settings, load_toml
from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.models.remote.budget import Budget
from gnothi.report.summary import Summary
from gnothi.roles import ALWAYS, GATED
from gnothi.runs.rows import Row
from gnothi.session.execute import claimed, execute
from gnothi.session.plan import Execution, Plan, resolve, unanswered, with_questions
from gnothi.session.record import changed_since, is_run, record
from gnothi.session.watch import Watch
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration
    from gnothi.protocols import KnowledgeGraph, LanguageModel, Method
    from gnothi.retrieval.foreign import Searches


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run: its folder, a row per method and question, what they come to, and what to be warned of."""

    path: Path
    rows: tuple[Row, ...]
    summary: Summary
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """The table that ``gnothi eval`` prints."""
        from gnothi.report.terminal import console, summary_table

        text = io.StringIO()
        summary_table.show(console.console(to=text), self.summary)
        return f"{text.getvalue()}run: {self.path}"

    def __repr__(self) -> str:
        methods = ", ".join(one.method for one in self.summary.methods)
        return f"<gnothi.Evaluation {methods}: {len(self.rows):,} rows, {self.failures:,} failed, in {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        from gnothi.report.tables import methods

        return methods(self.summary.methods).__html__()

    def to_pandas(self) -> Any:
        """A data frame with a row per method and question, in the columns of the ``questions.csv`` of ``gnothi report --csv``.
        Raises MissingDependency without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise MissingDependency("pandas", "parquet", "a data frame") from error
        from gnothi.report.spreadsheet import questions

        return pandas.DataFrame(questions(self.rows))

    @property
    def failures(self) -> int:
        """Questions that could not be answered; the same call tries them again."""
        return sum(row.failed for row in self.rows)


class _OnRow(Watch):
    def __init__(self, on_row: Callable[[Row], None] | None) -> None:
        self._on_row = on_row

    def row(self, row: Row, label: str) -> None:  # noqa: ARG002
        if self._on_row is not None:
            self._on_row(row)


def evaluate(
    data: str | os.PathLike[str] | Sequence[Question],
    methods: str | Rag | type[Method] | Callable[..., Any] | Sequence[str | Rag | type[Method] | Callable[..., Any]] | None,
    out: str | os.PathLike[str],
    *,
    model: str | LanguageModel | Callable[[str], Any] | None = None,
    index: str | os.PathLike[str] | Searches | Callable[[str, int], Any] | None = None,
    graph: str | os.PathLike[str] | KnowledgeGraph | None = None,
    limit: int | None = None,
    format: str | None = None,
    seed: int = 0,
    concurrency: int | None = None,
    workers: int = 1,
    on: str | None = None,
    gpus: float | None = None,
    max_failures: int | None = None,
    calibration: str | os.PathLike[str] | Calibration | None = None,
    ignore_mismatch: bool = False,
    settings: Mapping[str, Any] | Settings | None = None,
    model_settings: Mapping[str, Any] | None = None,
    index_settings: Mapping[str, Any] | None = None,
    filters: Any = None,
    config: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    on_row: Callable[[Row], None] | None = None,
    watch: Watch | None = None,
    answered: bool = True,
) -> Evaluation:
    """Ask every question with every method, and keep a run in the folder ``out``; the same call goes on with an unfinished
    one.

    ``data``: a data set's name, a file, or questions; ``answered`` False for a file of questions without answers, such as one
    question per line. ``methods``: names, functions, classes, or what ``gnothi.open`` returned, whose model, index and settings
    are then used; None as for ``gnothi.open``. ``settings`` by key, also under a method's name, as in
    ``{"seakr.threshold": -3}``. ``on_row`` hears of each row as it is finished, ``watch`` of everything on the way
    (``gnothi.session.watch.Watch``). The rest as for ``gnothi.open``.

    Raises as ``gnothi.open``, and TooManyFailures, BudgetSpent or WorkerDied, after which what is finished is kept.
    """
    refuse_running_loop("evaluate()", "gnothi.aevaluate(...)")
    args = dict(locals())
    plan, rag = planned(args)
    work = _evaluate(plan, rag, args)
    return rag.loop.run(work) if rag else asyncio.run(work)


async def aevaluate(
    data: str | os.PathLike[str] | Sequence[Question],
    methods: str | Rag | type[Method] | Callable[..., Any] | Sequence[str | Rag | type[Method] | Callable[..., Any]],
    out: str | os.PathLike[str],
    **keywords: Any,
) -> Evaluation:
    """As ``evaluate``, awaited; cancelling it stops the run, which the same call completes."""
    bound = inspect.signature(evaluate).bind(data, methods, out, **keywords)
    bound.apply_defaults()
    plan, rag = await asyncio.to_thread(planned, bound.arguments)
    loop = rag.loop if rag else Loop()
    try:
        return await loop.arun(_evaluate(plan, rag, bound.arguments))
    finally:
        if rag is None:
            await asyncio.to_thread(loop.stop)


async def _evaluate(plan: Plan, rag: Rag | None, args: Mapping[str, Any]) -> Evaluation:
    out, watch = given.as_path(args["out"], "out"), args["watch"] or _OnRow(args["on_row"])
    for line in plan.notes:
        watch.info(line)
    for warning in plan.warnings:
        watch.warn(warning)
    with claimed(plan, out) as run:
        (rows,) = await execute([run], watch, rag.opened.others if rag else None, args["budget"])
        summary = run.summarise(rows)
    return Evaluation(out, tuple(rows), summary, (*plan.warnings, *summary.warnings))


def planned(args: Mapping[str, Any]) -> tuple[Plan, Rag | None]:
    """The arguments of ``evaluate`` as a plan, with the open one whose model it asks. Raises as ``evaluate``, before anything
    is opened."""
    named = args["methods"]
    if args["watch"] is not None and args["on_row"] is not None:
        raise InvalidSetting("got both watch and on_row, expected one of them: a watch hears of rows, too.")
    wanted = [named] if isinstance(named, str | Rag) or named is None or callable(named) else list(named)
    if not wanted:
        raise InvalidSetting(f"methods: got none, expected at least one, as in {[ALWAYS, GATED]}.")
    rags = [one for one in wanted if isinstance(one, Rag)]
    for one in rags:
        one.check_open()
    first = rags[0] if rags else None
    if first is not None and (args["workers"] > 1 or args["on"] is not None):
        key, instead = ("workers", "1") if args["on"] is None else ("on", "none")
        raise InvalidSetting(
            f"{key}: got {args[key]} with a gnothi.Rag, expected {instead}: processes cannot share its model. Name the method."
        )
    names = [methods.spec(one).name for one in wanted if not isinstance(one, Rag | None)]
    asked = args if first is None else _over_sources_of(first, args)
    plan = resolve(given.request_of(asked, names if named is not None else None))
    if first is not None:
        plan = replace(plan, sources=first.plan.sources, models={**first.plan.models, **plan.models})
    if named is None:
        wanted = [method.name for method in plan.methods]
    planned = {method.name: method for method in plan.methods}
    given_too = any(args[key] is not None for key in ("model", "index", "graph"))
    for one in rags:
        if given_too or (first and one.plan.sources != first.plan.sources):
            raise InvalidSetting(
                f"methods: {one!r} has a model and an index of its own, and a run has one of each. Leave out model, index and "
                "graph, or evaluate into several folders: gnothi report compares them."
            )
        if one.method in planned:
            raise InvalidSetting(f"methods: got {one.method!r} twice; a run has one set of settings for it. Use two folders.")
        planned[one.method] = one.plan.methods[0]
    order = [one.method if isinstance(one, Rag) else methods.spec(one).name for one in wanted]
    plan = replace(plan, methods=tuple(planned[name] for name in dict.fromkeys(order)))
    execution = Execution(**{item.name: args[item.name] for item in fields(Execution)})
    data, format, limit = given.as_data(args["data"]), args["format"], args["limit"]
    if not args["answered"]:
        data = unanswered(given.as_path(data, "data"), format, limit)
    plan = with_questions(plan, data, format, limit, execution)
    if (config := args["config"]) is not None and is_run(before := load_toml(Path(config))):
        plan = replace(plan, warnings=(*changed_since(before, record(plan), str(config)), *plan.warnings))
    return plan, first


def _over_sources_of(rag: Rag, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the model and the indexes of an open Rag, and their settings."""
    own = {key: one for key, one in rag.plan.settings.given.items() if key.startswith(("model.", "index."))}
    sources = {key: getattr(rag.plan.sources, key) for key in ("model", "index", "graph")}
    return {**args, **sources, "settings": Settings({**given.settings_of(args).given, **own}), "config": None}
