"""What tells the sections of a report apart: the data set, and where several are of one, the runs or the file it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gnothi.calibration.compare import Compared


@dataclass(frozen=True, slots=True)
class Name:
    """``title`` and ``run`` are each unique within the report; the title is the data set's name where that is."""

    title: str
    dataset: str
    run: str


def names(sections: Sequence[tuple[str, Sequence[Path]]]) -> list[Name]:
    """Of sections, each of a data set and the runs (or the file) it comes from."""
    runs = _numbered(_shortest([paths for _, paths in sections]))
    datasets = [dataset for dataset, _ in sections]
    titles = [
        f"{dataset} ({run})" if datasets.count(dataset) > 1 else dataset for dataset, run in zip(datasets, runs, strict=True)
    ]
    return [Name(*one) for one in zip(titles, datasets, runs, strict=True)]


def name_all(documents: Sequence[Compared]) -> list[Name]:
    """What tells several documents apart."""
    return names([(document.dataset, (Path(document.file),)) for document in documents])


def _shortest(sources: Sequence[Sequence[Path]]) -> list[str]:
    """The paths' last parts, as few as tell all of them apart."""
    deepest = max((1, *(len(path.parts) for paths in sources for path in paths)))
    shortest = []
    for depth in range(1, deepest + 1):
        shortest = [", ".join(str(Path(*path.parts[-depth:])) for path in paths) for paths in sources]
        if len(set(shortest)) == len({tuple(paths) for paths in sources}):
            break
    return shortest


def _numbered(texts: Sequence[str]) -> list[str]:
    """The same file may be named twice."""
    return [f"{text} [{texts[: place + 1].count(text)}]" if texts.count(text) > 1 else text for place, text in enumerate(texts)]
