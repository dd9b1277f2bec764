"""What a study came to: each variant's quality and cost, and how far it is from the full method on the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gnothi.config import as_text
from gnothi.metrics import METRICS
from gnothi.report.comparison import Comparison, paired
from gnothi.report.summary import Summary
from gnothi.reproduce.study import Figure, Study, Variant
from gnothi.runs.rows import MERGED, Row, rounded, scored
from gnothi.stats.intervals import Interval, mean, mean_interval

MEASURES = (*METRICS, "retrieval_rate", "retrievals", "model_calls", "tokens", "gate_auroc")
"""Of every variant, each with its interval"""


@dataclass(frozen=True, slots=True)
class Quality:
    n: int
    em: float | None
    f1: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A variant. ``means`` and their ``intervals`` are of the ``MEASURES``, over the questions that did not fail.

    ``groups``: in the laboratory, quality by what is right to do about a question. ``difference``, by metric: variant less full
    method, corrected for all variants of the table; None for the full method itself."""

    label: str
    group: str
    series: str
    at: float | None
    method: str
    settings: Mapping[str, str]
    note: str
    n: int
    failures: int
    means: Mapping[str, float | None] = field(metadata=MERGED)
    intervals: Mapping[str, Interval | None]
    groups: Mapping[str, Quality]
    difference: Mapping[str, Comparison] | None
    paper: tuple[Figure, ...]
    run: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """A study's table. ``metric`` is that of the differences."""

    model: str
    study: str
    title: str
    source: str
    note: str
    dataset: str
    questions: int
    metric: str
    axis: str
    full: str
    variants: tuple[Line, ...]
    left_out: tuple[LeftOut, ...]
    warnings: tuple[str, ...]

    @property
    def papers(self) -> list[tuple[str, str]]:
        """Data set and metric of the paper's figures that are worth a column: those in the table's metric, else all."""
        every = list(dict.fromkeys((one.dataset, one.metric) for variant in self.variants for one in variant.paper))
        return [column for column in every if column[1] == self.metric] or every

    @property
    def gated(self) -> bool:
        return any(variant.means["gate_auroc"] is not None for variant in self.variants)


def document(
    study: Study,
    model: str,
    dataset: str,
    rows: Mapping[str, Sequence[Row]],
    summaries: Mapping[str, Summary],
    folders: Mapping[str, Path],
    left_out: Mapping[str, str],
) -> Table:
    """``rows`` and ``summaries`` (what ``summarise`` says of them) are by label, as are the ``folders`` of the runs and the
    reasons why variants were ``left_out``; the full method is among the rows."""
    differences = _differences(study.full, rows)
    table = Table(
        model=model,
        study=study.name,
        title=study.title,
        source=study.source,
        note=" ".join(study.note.split()),
        dataset=dataset,
        questions=max(len(own) for own in rows.values()),
        metric=study.metric,
        axis=study.axis,
        full=study.full,
        variants=tuple(
            _line(variant, rows[label], summaries[label], differences.get(label), folders[label])
            for variant in study.variants
            if (label := variant.label) in rows
        ),
        left_out=tuple(LeftOut(label, reason) for label, reason in left_out.items()),
        warnings=tuple(f"{label}: {warning}" for label in rows for warning in summaries[label].methods[0].warnings),
    )
    return rounded(table)


def _line(
    variant: Variant, rows: Sequence[Row], summary: Summary, difference: Mapping[str, Comparison] | None, folder: Path
) -> Line:
    (means,) = summary.methods
    tokens = [row.cost["prompt_tokens"] + row.cost["generated_tokens"] for row in rows if not row.failed]
    measured = [name for name in MEASURES if name != "tokens"]
    return Line(
        label=variant.label,
        group=variant.group,
        series=variant.series,
        at=variant.at,
        method=variant.method,
        settings={key: as_text(value) for key, value in variant.settings.items()},
        note=variant.note,
        n=means.n,
        failures=means.failures,
        means={name: mean(tokens) if name == "tokens" else getattr(means, name) for name in MEASURES},
        intervals={**{name: means.intervals[name] for name in measured}, "tokens": mean_interval(tokens, share=False)},
        groups=_groups(rows),
        difference=difference,
        paper=variant.paper,
        run=str(folder),
    )


def _differences(full: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, Comparison]]:
    """By label and metric; empty of what no two runs have in common."""
    tests: dict[str, dict[str, Comparison]] = {label: {} for label in rows if label != full}
    tables = {label: scored(own) for label, own in rows.items()}
    for one in paired(tables, [(label, full) for label in tests]):
        tests[one.first][one.metric] = one
    return tests


def _groups(rows: Sequence[Row]) -> dict[str, Quality]:
    """By what is right to do about a question: trust memory, retrieve, abstain."""
    by_action: dict[str, list[Row]] = {}
    for row in rows:
        if row.metrics and (action := row.metadata.get("right_action")):
            by_action.setdefault(str(action), []).append(row)
    return {
        action: Quality(len(own), **{metric: mean(row.metrics[metric] for row in own) for metric in METRICS})
        for action, own in sorted(by_action.items())
    }
