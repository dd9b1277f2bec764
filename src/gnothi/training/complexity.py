"""Labels for Adaptive-RAG's classifier (Jeong et al. 2024, section 3.3): which strategy is the simplest that suffices?

Made of a run of ``gnothi eval`` with a method that answers from memory, one that retrieves once and one that retrieves in
steps, over training questions. Where none of them is right, the kind of question tells instead: one that takes several hops is
taken to need steps, another one retrieval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gnothi.config import Settings
from gnothi.errors import InvalidInput, UnknownName, counted
from gnothi.fields import setting
from gnothi.filtering.complexity import STRATEGIES, Labelled, fit, write_complexity
from gnothi.roles import ALWAYS, REASONING, STEPWISE
from gnothi.runs.rows import Row
from gnothi.training.outcomes import Metric, hint, model_of, overlooked, rights, rows_of, settings_as

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Learnt:
    """Questions by label; how many of them were labelled by their kind, and left out for want of one. ``accuracy`` is that of
    classifiers on questions they were not trained on (five folds), ``majority`` that of always saying the commonest label.
    ``overlooked``: answers that hold a gold answer and count as wrong."""

    labels: dict[str, int]
    by_kind: int
    left_out: int
    accuracy: float
    majority: float
    overlooked: int = 0

    def report(self) -> list[tuple[str, str]]:
        """Terms and their explanations, for people."""
        names = {"none": "answered from memory", "once": "took one retrieval", "steps": "took steps"}
        held_out = f"{self.accuracy:.3f} on held-out questions (five folds); the commonest label alone {self.majority:.3f}"
        rows = [
            ("questions", ", ".join(f"{count:,} {names[strategy]}" for strategy, count in self.labels.items())),
            ("", f"of these {self.by_kind:,} labelled by their kind; {self.left_out:,} left out (no method was right)"),
            ("accuracy", held_out),
        ]
        if self.accuracy <= self.majority:
            rows.append(
                ("", f"The wording of {counted(sum(self.labels.values()), 'question')} tells nothing: take more of them.")
            )
        if self.overlooked:
            rows.append(("", hint(self.overlooked)))
        return rows


def label(
    rows: Sequence[Row], methods: Sequence[str], several_hops: Collection[str] | None, metric: Metric = "em"
) -> tuple[list[Labelled], list[Labelled], int]:
    """Questions labelled by outcome, those labelled by their kind, and the number left out.

    ``methods`` are for none, once, steps; a question counts where all of them gave an answer. ``several_hops`` are kinds; None
    leaves out what no method answered rightly.
    """
    right = rights(rows, metric)
    by_outcome, by_kind, left_out = [], [], 0
    for row in rows:
        outcomes = [right.get((method, row.question_id)) for method in methods]
        if row.method != methods[0] or None in outcomes:
            continue
        first = next((strategy for strategy, success in zip(STRATEGIES, outcomes, strict=True) if success), None)
        if first is not None:
            by_outcome.append(Labelled(row.question, first))
        elif several_hops is None:
            left_out += 1
        else:
            by_kind.append(Labelled(row.question, "steps" if row.kind in several_hops else "once"))
    return by_outcome, by_kind, left_out


@dataclass(frozen=True, slots=True)
class ComplexitySettings:
    memory: str = setting(REASONING, "The run's method that answers from memory.")
    once: str = setting(ALWAYS, "The run's method that retrieves once.")
    steps: str = setting(STEPWISE, "The run's method that retrieves in steps.")
    several_hops: tuple[str, ...] = setting(
        (), "Kinds of question that take several hops: those that no method answered rightly are labelled by their kind."
    )
    metric: Metric = setting("em", "An answer is right where it is a gold answer (em), or where it holds one (accuracy).")


def train_by(run: Path, out: Path, settings: Settings) -> Learnt:
    """As ``train``, by settings. Raises as that, and UnknownName or InvalidSetting for settings."""
    chosen = settings_as(settings, ComplexitySettings, "train complexity")
    return train(run, out, (chosen.memory, chosen.once, chosen.steps), chosen.several_hops or None, metric=chosen.metric)


def train(
    run: Path,
    out: Path,
    methods: Sequence[str] = (REASONING, ALWAYS, STEPWISE),
    several_hops: Collection[str] | None = None,
    strength: float = 1.0,
    metric: Metric = "em",
) -> Learnt:
    """Write the classifier learnt from a run folder. Raises as ``rows_of``, InvalidInput where all outcomes are of one kind,
    UnknownName for a kind that no question of the run is of."""
    rows = rows_of(run, methods)
    kinds = {row.kind for row in rows if row.kind}
    for kind in several_hops or ():
        if kind not in kinds:
            raise UnknownName(f"kind of question of {run}", kind, kinds)
    by_outcome, by_kind, left_out = label(rows, methods, several_hops, metric)
    labelled = [*by_outcome, *by_kind]
    unseen = overlooked(rows, methods, metric)
    try:
        classifier = fit(labelled, strength)
    except InvalidInput as error:
        raise InvalidInput(f"{run}: {error} {hint(unseen)}".rstrip()) from None
    counts = Counter(one.strategy for one in labelled)
    labels = {strategy: counts[strategy] for strategy in STRATEGIES}
    origin = {"model": model_of(run), "methods": list(methods), "labels": labels, "strength": strength, "metric": metric}
    write_complexity(out, classifier, origin)
    most = max(counts.values()) / len(labelled)
    return Learnt(labels, len(by_kind), left_out, _crossfit(labelled, strength), most, unseen)


def _crossfit(labelled: Sequence[Labelled], strength: float) -> float:
    """Share of questions whose label is predicted right by a classifier that saw the other folds."""
    right = 0
    for fold in range(FOLDS):
        held, rest = labelled[fold::FOLDS], [one for place, one in enumerate(labelled) if place % FOLDS != fold]
        if not held or len({one.strategy for one in rest}) < 2:
            continue
        predictions = fit(rest, strength).predict([one.question for one in held])
        right += sum(one.strategy == chances.strategy for one, chances in zip(held, predictions, strict=True))
    return right / len(labelled)
