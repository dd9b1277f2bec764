"""What a recipe came to: of every row and data set the paper's figures beside ours, each of ours with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gnothi.metrics import METRICS
from gnothi.report.comparison import Comparison
from gnothi.reproduce.ablation import Line, Table
from gnothi.reproduce.counting import AS_THE_PAPER, Unit, counts_of
from gnothi.reproduce.parts import Job, Part
from gnothi.reproduce.recipe import papers
from gnothi.runs.rows import Row
from gnothi.stats.intervals import Interval, mean, mean_interval

SHARES = (*METRICS, "retrieval_rate", "gate_auroc")


@dataclass(frozen=True, slots=True)
class Cell:
    """``paper`` None: the paper has no figure. Shares lie between 0 and 1 in both. ``inside``: whether the paper's figure lies
    in our interval; None without one of them. ``wider``: how much more than ours alone the difference from the paper's varies,
    since the paper's figure is of a sample, too (``widening``)."""

    metric: str
    paper: float | None
    ours: float | None
    interval: Interval | None
    wider: float = math.sqrt(2)

    @property
    def inside(self) -> bool | None:
        if self.paper is None or self.interval is None:
            return None
        return self.interval.low <= self.paper <= self.interval.high

    @property
    def difference(self) -> Interval | None:
        """The 95% interval of ours less the paper's, as far as the choice of questions goes; no share can be above 1."""
        if self.paper is None or self.ours is None or self.interval is None:
            return None
        half = self.wider * (self.interval.high - self.interval.low) / 2
        low, high = self.ours - self.paper - half, self.ours - self.paper + half
        return Interval(max(low, -self.paper), min(high, 1 - self.paper)) if self.metric in SHARES else Interval(low, high)


def widening(ours: int, paper: int | None = None, population: int | None = None) -> float:
    """By what factor the difference of two means varies more than ours, of independent samples of that many questions, both
    drawn without replacement from ``population`` (None: a very large one). ``paper`` None: as many as ours. 0 where both asked
    all: chance has no part then."""
    if not ours:
        return math.sqrt(2)
    return math.sqrt(max(0.0, 1 + ours / (paper or ours) - (2 * ours / population if population else 0)))


def reach(wider: float) -> float:
    """The chance that the paper's figure lies in our 95% interval where both measure the same: .834 for two samples of one
    size, since the paper's varies as ours does."""
    return math.erf(1.959964 / wider / math.sqrt(2)) if wider else 1.0


@dataclass(frozen=True, slots=True)
class Compared:
    """A row on one data set; ``difference`` from the full method, paired, in the table's metric."""

    label: str
    group: str
    n: int
    failures: int
    cells: tuple[Cell, ...]
    difference: Comparison | None
    run: str


@dataclass(frozen=True, slots=True)
class OnData:
    name: str
    title: str
    questions: int
    metric: str
    full: str
    rows: tuple[Compared, ...]
    warnings: tuple[str, ...]

    @property
    def metrics(self) -> list[str]:
        return [cell.metric for cell in self.rows[0].cells]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``rehearsal``: another model and other questions, so that nothing is to be read from the numbers. ``missing``: rows and
    data sets of the paper's table that are not here. ``differs``: why the figures may differ."""

    recipe: str
    title: str
    source: str
    note: str
    rehearsal: bool
    models: tuple[str, ...]
    data: tuple[OnData, ...]
    covers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        return sum(row.failures for one in self.data for row in one.rows)

    @property
    def inside(self) -> tuple[int, int]:
        """How many of the paper's figures lie in our intervals, of how many."""
        known = [cell.inside for cell in self._cells if cell.inside is not None]
        return sum(known), len(known)

    @property
    def expected(self) -> float:
        """How many would in a perfect replication."""
        return sum(reach(cell.wider) for cell in self._cells if cell.inside is not None)

    @property
    def _cells(self) -> list[Cell]:
        return [cell for one in self.data for row in one.rows for cell in row.cells]


def outcome(job: Job, parts: list[Part], tables: list[Table], rows: list[list[list[Row]]]) -> Outcome:
    """``rows`` are those of each part and each line of its table."""
    study = job.recipe.study
    return Outcome(
        recipe=job.recipe.name,
        title=study.title,
        source=study.source,
        note=" ".join(study.note.split()),
        rehearsal=job.rehearse,
        models=tuple(
            dict.fromkeys(one for part in parts for one in (part.model, *(row.model for row in part.study.variants)) if one)
        ),
        data=tuple(_on(part, one, own) for part, one, own in zip(parts, tables, rows, strict=True)),
        covers=job.recipe.covers,
        missing=tuple(_missing(job, parts, tables)),
        differs=tuple(_differs(job, parts)),
    )


def _missing(job: Job, parts: list[Part], tables: list[Table]) -> Iterator[str]:
    run_data = {part.name for part in parts}
    yield from (source.title for source in job.recipe.data if source.name not in run_data)
    run = {line.label for table in tables for line in table.variants}
    yield from (row.label for row in job.recipe.study.variants if row.label not in run)


def _differs(job: Job, parts: list[Part]) -> Iterator[str]:
    if job.model:
        yield f"the model is {job.model} in place of {job.recipe.study.model}"
    if any(part.sample and part.sample < part.source.count for part in parts):
        yield "the questions are drawn at random"
    if settings := [one.source for one in job.settings.given.values()]:
        yield f"settings were given ({', '.join(dict.fromkeys(settings))})"
    if job.recipe.trainings:
        yield f"what is learnt first is learnt anew ({', '.join(dict.fromkeys(one.kind for one in job.recipe.trainings))})"
    if paper := papers().get(job.recipe.paper):
        yield f"some parts are ours (listed in the documentation under papers/{paper['page'].removesuffix('.md')})"


def _on(part: Part, table: Table, rows: list[list[Row]]) -> OnData:
    recipe = part.job.recipe
    printed = dict.fromkeys(figure.metric for line in table.variants for figure in line.paper)
    metrics = list(printed) or (["accuracy"] if table.metric == "accuracy" else ["em", "f1"])
    metrics += recipe.show
    return OnData(
        name=part.name,
        title=part.source.title + (": pairs of answers" if recipe.pairs is not None else ""),
        questions=table.questions,
        metric=table.metric,
        full=table.full,
        rows=tuple(_line(line, own, metrics, table.metric, part) for line, own in zip(table.variants, rows, strict=True)),
        warnings=table.warnings,
    )


def _line(line: Line, rows: list[Row], metrics: list[str], of: str, part: Part) -> Compared:
    recipe, population = part.job.recipe, part.source.count
    wider = widening(line.n) if recipe.pairs is not None else widening(line.n, recipe.questions or population, population)
    paper = {figure.metric: figure.value / (100 if recipe.percent and figure.metric in SHARES else 1) for figure in line.paper}
    cells = tuple(Cell(one, paper.get(one), *_ours(line, rows, one, recipe.calls), wider) for one in metrics)
    return Compared(line.label, line.group, line.n, line.failures, cells, (line.difference or {}).get(of), line.run)


def _ours(line: Line, rows: list[Row], metric: str, unit: Unit) -> tuple[float | None, Interval | None]:
    """Seconds are no measure of a study, for they differ each time, nor are calls and tokens as the paper counts them."""
    if metric in AS_THE_PAPER:
        spent: list[float] = [*counts_of(Path(line.run), rows, metric, unit)]
    elif metric == "seconds":
        spent = [row.cost[metric] for row in rows if not row.failed]
    else:
        return line.means[metric], line.intervals[metric]
    return mean(spent), mean_interval(spent, share=False)
