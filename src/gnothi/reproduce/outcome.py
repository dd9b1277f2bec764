"""What a recipe came to: of every row and data set the paper's figures beside ours, each of ours with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gnothi.metrics import METRICS
from gnothi.report.comparison import Comparison
from gnothi.reproduce.ablation import Line, Table
from gnothi.reproduce.counting import Counted, calls_of
from gnothi.reproduce.parts import Job, Part
from gnothi.reproduce.recipe import Recipe
from gnothi.runs.rows import Row
from gnothi.stats.intervals import Interval, mean, mean_interval

SHARES = (*METRICS, "retrieval_rate", "gate_auroc")


@dataclass(frozen=True, slots=True)
class Cell:
    """``paper`` None: the paper has no figure. Shares lie between 0 and 1 in both. ``inside``: whether the paper's figure lies
    in our interval; None without one of them."""

    metric: str
    paper: float | None
    ours: float | None
    interval: Interval | None

    @property
    def inside(self) -> bool | None:
        if self.paper is None or self.interval is None:
            return None
        return self.interval.low <= self.paper <= self.interval.high


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
    """``rehearsal``: another model and other questions, so that nothing is to be read from the numbers."""

    recipe: str
    title: str
    source: str
    note: str
    rehearsal: bool
    models: tuple[str, ...]
    data: tuple[OnData, ...]

    @property
    def failures(self) -> int:
        return sum(row.failures for one in self.data for row in one.rows)

    @property
    def inside(self) -> tuple[int, int]:
        """How many of the paper's figures lie in our intervals, of how many."""
        known = [cell.inside for one in self.data for row in one.rows for cell in row.cells if cell.inside is not None]
        return sum(known), len(known)


def outcome(job: Job, found: list[Part], tables: list[Table], rows: list[list[list[Row]]]) -> Outcome:
    """``rows`` are those of each part and each line of its table."""
    study = job.recipe.study
    return Outcome(
        recipe=job.recipe.name,
        title=study.title,
        source=study.source,
        note=" ".join(study.note.split()),
        rehearsal=job.rehearse,
        models=tuple(
            dict.fromkeys(one for part in found for one in (part.model, *(row.model for row in part.study.variants)) if one)
        ),
        data=tuple(_on(part, one, own) for part, one, own in zip(found, tables, rows, strict=True)),
    )


def _on(part: Part, table: Table, rows: list[list[Row]]) -> OnData:
    recipe = part.job.recipe
    printed = dict.fromkeys(figure.metric for line in table.variants for figure in line.paper)
    wanted = list(printed) or (["accuracy"] if table.metric == "accuracy" else ["em", "f1"])
    wanted += recipe.show
    return OnData(
        name=part.name,
        title=part.source.title,
        questions=table.questions,
        metric=table.metric,
        full=table.full,
        rows=tuple(_line(line, own, wanted, table.metric, recipe) for line, own in zip(table.variants, rows, strict=True)),
        warnings=table.warnings,
    )


def _line(line: Line, rows: list[Row], metrics: list[str], of: str, recipe: Recipe) -> Compared:
    paper = {figure.metric: figure.value / (100 if recipe.percent and figure.metric in SHARES else 1) for figure in line.paper}
    cells = tuple(Cell(one, paper.get(one), *_ours(line, rows, one, recipe.calls)) for one in metrics)
    return Compared(line.label, line.group, line.n, line.failures, cells, (line.difference or {}).get(of), line.run)


def _ours(line: Line, rows: list[Row], metric: str, counted: Counted) -> tuple[float | None, Interval | None]:
    """Seconds are no measure of a study, for they differ each time, nor are calls as the paper counts them."""
    if metric == "paper_calls":
        spent: list[float] = [*calls_of(Path(line.run), rows, counted)]
    elif metric == "seconds":
        spent = [row.cost[metric] for row in rows if not row.failed]
    else:
        return line.means[metric], line.intervals[metric]
    return mean(spent), mean_interval(spent)
