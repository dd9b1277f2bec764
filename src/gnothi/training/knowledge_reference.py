"""The knowledge reference (SKR, section 3): which training questions could the model answer from memory?

Made of a run of ``gnothi eval`` with a method that answers from memory and one that retrieves, over training questions.
``gnothi.filtering.knowledge`` reads the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gnothi.config import Settings
from gnothi.errors import InvalidInput
from gnothi.fields import setting
from gnothi.filtering.encoders import LEXICAL, SentenceEncoder
from gnothi.filtering.knowledge import Experience, write_knowledge
from gnothi.roles import ALWAYS, AT_ONCE
from gnothi.runs.rows import Row
from gnothi.training.outcomes import Metric, hint, model_of, overlooked, rights, rows_of, settings_as

Labels = Literal["better", "right"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the questions of a run; ``undecided`` ones said nothing. ``overlooked``: answers that hold
    a gold answer and count as wrong."""

    known: int
    unknown: int
    undecided: int
    overlooked: int = 0

    def report(self) -> list[tuple[str, str]]:
        """Terms and their explanations, for people."""
        counts = f"{self.known:,} known, {self.unknown:,} unknown, {self.undecided:,} left out"
        return [("questions", counts), *([("", hint(self.overlooked))] if self.overlooked else [])]


def experiences(
    rows: Sequence[Row], memory: str, retrieval: str, labels: Labels = "better", metric: Metric = "em"
) -> list[Experience]:
    """One per question that says something: known where memory was right, unknown where only retrieval was.

    ``better``: where both were right says nothing (the authors' code); ``right``: it is known (the paper)."""
    right = rights(rows, metric)
    recalled = [row for row in rows if row.method == memory and (retrieval, row.question_id) in right and row.key in right]
    pairs = [(row.question, right[row.key], right[retrieval, row.question_id]) for row in recalled]
    return [Experience(text, knew) for text, knew, searched in pairs if knew != searched or (knew and labels == "right")]


@dataclass(frozen=True, slots=True)
class KnowledgeSettings:
    memory: str = setting(AT_ONCE, "The run's method that answers from memory.")
    retrieval: str = setting(ALWAYS, "The run's method that retrieves.")
    labels: Labels = setting("better", "What is known: what memory alone got right (better), or both, too (right).")
    metric: Metric = setting("em", "An answer is right where it is a gold answer (em), or where it holds one (accuracy).")


def train_by(run: Path, out: Path, settings: Settings, encoder: str = LEXICAL) -> Counts:
    """As ``train``, by settings. Raises as that, and UnknownName or InvalidSetting for settings."""
    return train(run, out, encoder=encoder, **asdict(settings_as(settings, KnowledgeSettings, "train knowledge-reference")))


def train(
    run: Path,
    out: Path,
    memory: str = AT_ONCE,
    retrieval: str = ALWAYS,
    encoder: str = LEXICAL,
    labels: Labels = "better",
    metric: Metric = "em",
) -> Counts:
    """Write the knowledge reference of a run folder. Raises as ``rows_of``, InvalidInput where all outcomes are of one kind,
    ModelUnavailable or MissingDependency where the encoder cannot be opened."""
    rows = rows_of(run, (memory, retrieval))
    learnt = experiences(rows, memory, retrieval, labels, metric)
    known, unseen = sum(one.known for one in learnt), overlooked(rows, (memory, retrieval), metric)
    if not 0 < known < len(learnt):
        raise InvalidInput(
            f"{run}: got {known} known questions and {len(learnt) - known} that only retrieval answered, expected "
            f"some of each. Use more questions, or ones that are neither all known nor all unknown. {hint(unseen)}".rstrip()
        )
    if encoder != LEXICAL:
        encoder = SentenceEncoder(encoder).name  # one that cannot be opened is told now, not at the first question
    both = {row.question_id for row in rows if row.method == memory} & {
        row.question_id for row in rows if row.method == retrieval
    }
    silent = len(both) - len(learnt)
    write_knowledge(out, learnt, encoder, silent, model_of(run))
    return Counts(known, len(learnt) - known, silent, unseen)
