"""Documents and corpora for the tests of this package."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import tantivy

from gnothi.retrieval import analysis
from gnothi.types import Passage


def write_jsonl(path: Path, passages: Iterable[Passage]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for passage in passages:
            file.write(json.dumps({**passage.metadata, "_id": passage.id, "title": passage.title, "text": passage.text}) + "\n")
    return path


def made_up(seed: int, size: int, words: int = 30) -> list[Passage]:
    rng = random.Random(seed)
    vocabulary = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"]
    return [
        Passage(f"s{seed}-{i}", " ".join(rng.choices(vocabulary, k=words)), rng.choice(vocabulary).title()) for i in range(size)
    ]


def sourced(passage: Passage, source: str) -> Passage:
    """As a build puts it."""
    return replace(passage, metadata={**passage.metadata, "source": source})


def bare(passage: Passage) -> Passage:
    """As it was before a build put it."""
    return replace(passage, metadata={key: value for key, value in passage.metadata.items() if key != "source"})


def contents(path: Path) -> dict[str, Passage]:
    """Every passage of an index folder by id, read by tantivy alone; fails when an id occurs twice."""
    index = tantivy.Index.open(str(path))
    analysis.register(index)
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), limit=max(searcher.num_docs, 1), count=False).hits
    passages = [analysis.passage(searcher.doc(address)) for _, address in hits]
    by_id = {passage.id: passage for passage in passages}
    assert len(by_id) == len(passages) == searcher.num_docs
    return by_id


def make_pdf(path: Path, pages: Sequence[Sequence[str]], title: str = "") -> Path:
    """A minimal PDF: Helvetica, one line of text under the other."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for lines in pages:
        shown = " ".join(f"({line.translate(_ESCAPES)}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"/Resources << /Font << /F1 {font} >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    body = "%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>"
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n{trailer}\nstartxref\n{len(body)}\n%%EOF\n"
    path.write_bytes(body.encode("latin-1"))
    return path


_ESCAPES = {ord("("): r"\(", ord(")"): r"\)", ord("\\"): r"\\"}
