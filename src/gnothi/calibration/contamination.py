"""Whether questions are those that a probe learnt from or a threshold was chosen on."""

from __future__ import annotations

from pathlib import Path


def same_questions(dataset: str, fingerprint: str, other: str, other_fingerprint: str) -> bool:
    """Whether two data sets share questions, by name whatever their kind, or by fingerprint whatever they are called; an empty
    fingerprint is not known."""
    return _whole(dataset) == _whole(other) or bool(fingerprint and fingerprint == other_fingerprint)


def _whole(dataset: str) -> str:
    """A data set without the kind that follows its name; a file by its full path."""
    path = Path(dataset)
    return str(path.resolve()) if path.is_file() else dataset.partition(":")[0]
