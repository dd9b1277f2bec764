"""BEIR and MTEB: queries whose relevant passages are known, and no answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.datasets.packed import opened
from gnothi.datasets.records import Format, Record, read_records
from gnothi.types import Question

_SPLITS = ("test", "dev", "train")


def question(record: Record) -> Question:
    """Metadata's ``supporting_ids`` are the passages that the judgements call relevant. There is no gold answer."""
    relevant = record.data.get("qrels")
    return Question(
        id=record.identity("_id", "id"), text=record.text("text"), metadata={"supporting_ids": relevant} if relevant else {}
    )


def beside(path: Path) -> Callable[[Record], Record]:
    """Adds the judgements of ``qrels/test.tsv`` or ``.jsonl`` (else dev, train) beside the queries, where they lie there."""
    folders = (path.parent / "qrels", path.parent.parent / "qrels")
    files = [folder / f"{split}{end}" for split in _SPLITS for folder in folders for end in (".tsv", ".jsonl")]
    relevant: dict[str, tuple[str, ...]] = {}
    for query, passage in _judged(next((file for file in files if file.is_file()), None)):
        relevant[query] = (*relevant.get(query, ()), passage)
    return lambda record: replace(record, data={**record.data, "qrels": relevant.get(record.identity("_id", "id"))})


def _judged(path: Path | None) -> Iterator[tuple[str, str]]:
    """Query and passage of each line ``query-id corpus-id score`` (TREC's have a 0 in between) with a score above 0."""
    if path is None:
        return
    if path.suffix == ".jsonl":
        for record in read_records(path):
            if isinstance(score := record.data.get("score"), int | float) and score > 0:
                yield record.identity("query-id"), record.identity("corpus-id")
        return
    with opened(path) as file:
        for line in file:
            fields = line.decode("utf-8", "replace").split()
            if len(fields) in (3, 4) and fields[-1].isdigit() and int(fields[-1]) > 0:
                yield fields[0], fields[-2]


def recognises(first: Mapping[str, Any]) -> bool:
    return isinstance(first.get("text"), str) and first.keys() - {"text", "metadata", "title"} in ({"_id"}, {"id"})


FORMAT = Format(
    "beir",
    "BEIR and MTEB: a file or folder whose name holds 'quer' (_id, text), with qrels beside it",
    recognises,
    question,
    named="quer",
    beside=beside,
)
