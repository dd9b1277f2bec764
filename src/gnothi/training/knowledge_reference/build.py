"""The knowledge reference (SKR, section 3): which training questions could the model answer from memory?

Made of a run of ``gnothi eval`` with a method that answers from memory and one that retrieves, over training questions.
``gnothi.filtering.knowledge`` reads the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gnothi.errors import InvalidInput
from gnothi.filtering.encoders import LEXICAL, SentenceEncoder, encoder_name
from gnothi.filtering.knowledge import Experience, write_knowledge
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row

METRIC = "em"


class Counts(NamedTuple):
    """What became of the questions of a run; ``undecided``: wrong with and without retrieval, which says nothing."""

    known: int
    unknown: int
    undecided: int


def experiences(rows: Sequence[Row], memory: str, retrieval: str) -> list[Experience]:
    """One per question that either method answered rightly: known where the method without retrieval did."""
    right = {row.key: row.metrics[METRIC] == 1 for row in rows if METRIC in row.metrics}
    asked = [row for row in rows if row.method == memory and (retrieval, row.question_id) in right and row.key in right]
    return [Experience(row.question, right[row.key]) for row in asked if right[row.key] or right[retrieval, row.question_id]]


def build(run: Path, out: Path, memory: str = "direct", retrieval: str = "rag", encoder: str = LEXICAL) -> Counts:
    """Write the knowledge reference of a run folder. Raises InvalidInput where the run holds no such methods or outcomes,
    ModelUnavailable or MissingDependency where the encoder cannot be opened."""
    rows = read_rows(run)
    both = {row.question_id for row in rows if row.method == memory} & {
        row.question_id for row in rows if row.method == retrieval
    }
    if not both:
        methods = ", ".join(sorted({row.method for row in rows})) or "none"
        raise InvalidInput(
            f"{run}: got answers by {methods}, expected {memory} and {retrieval} over the same questions. Make a run with "
            f"`gnothi eval TRAINING-QUESTIONS --method {memory},{retrieval} --out {run}`."
        )
    found = experiences(rows, memory, retrieval)
    known = sum(one.known for one in found)
    if not 0 < known < len(found):
        raise InvalidInput(
            f"{run}: got {known} questions that the model knew and {len(found) - known} that only retrieval answered, expected "
            "some of each. Use more questions, or ones that are neither all known nor all unknown."
        )
    if encoder != LEXICAL:
        SentenceEncoder(encoder)  # one that cannot be opened is told now, not at the first question
    write_knowledge(out, found, encoder_name(encoder))
    return Counts(known, len(found) - known, len(both) - len(found))
