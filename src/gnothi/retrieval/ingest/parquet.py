"""Parquet (``pip install 'gnothi[parquet]'``): a record a row, as the hub keeps its collections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest.base import Checkpoint, Step, Unreadable
from gnothi.retrieval.ingest.corpora import AS_FOUND, Given, Keys, steps

_ROWS = 200


def read(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:  # noqa: ARG001
    """A row without an id gets ``key#number``."""
    given = _records(path)
    first = next(given, None)
    if first is not None:
        yield from steps(path, chain([first], given), first.record, key, words, keys)


def _records(path: Path) -> Iterator[Given]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingDependency("pyarrow", "parquet", f"reading {path}") from None
    size = path.stat().st_size
    number = 0
    try:
        with ParquetFile(path) as file:
            count = file.metadata.num_rows
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield Given(row, number, read=size * number // max(count, 1))
    except pyarrow.ArrowException as error:
        raise Unreadable(f"{path} is not a Parquet file that can be read: {error}. Fetch it again.") from None
