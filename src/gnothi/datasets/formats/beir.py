"""BEIR and MTEB: queries whose relevant passages are known, and no answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.datasets.packed import opened
from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_SPLITS = ("test", "dev", "train")


def question(record: Record) -> Question:
    """Metadata's ``supporting_ids`` are the passages that the judgements call relevant. There is no gold answer."""
    relevant = record.data.get("qrels")
    return Question(
        id=record.identity("_id", "id"), text=record.text("text"), metadata={"supporting_ids": relevant} if relevant else {}
    )


def beside(path: Path) -> Callable[[Record], Record]:
    """Adds the judgements of ``qrels/test.tsv`` (else dev, train) beside the queries, where they lie there."""
    files = [path.parent / "qrels" / f"{split}.tsv" for split in _SPLITS]
    relevant: dict[str, tuple[str, ...]] = {}
    for query, passage in _judged(next((file for file in files if file.is_file()), None)):
        relevant[query] = (*relevant.get(query, ()), passage)
    return lambda record: replace(record, data={**record.data, "qrels": relevant.get(record.identity("_id", "id"))})


def _judged(path: Path | None) -> Iterator[tuple[str, str]]:
    """Query and passage of each line ``query-id corpus-id score`` (TREC's have a 0 in between) with a score above 0."""
    if path is None:
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
    "BEIR and MTEB: a file whose name holds 'quer' (_id, text), with qrels beside it",
    recognises,
    question,
    named="quer",
    beside=beside,
)
