"""Packed files of questions read as the plain ones do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput

CONTENT = {
    "lines.jsonl": '{"question": "A?", "answer": "b"}\n{"question": "C?", "answer": "d"}\n',
    "array.json": '[\n{"question": "A?", "answer": "b"}, {"question": "C?", "answer": "d"}]',
    "object.json": '{\n"data": [{"title": "T", "paragraphs": [{"qas": [{"id": "1", "question": "A?", "answers": []}]}]}]}',
    "table.csv": "question,answer\nA?,b\n",
    "table.tsv": "question\tanswer\nA?\tb\n",
}


@pytest.mark.parametrize("name", CONTENT)
def test_packed_as_plain(tmp_path: Path, name: str) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(CONTENT[name], encoding="utf-8")
    packed.write_bytes(gzip.compress(CONTENT[name].encode()))
    assert load(str(packed)) == load(str(plain))


@pytest.mark.parametrize("name", ["array.json.gz", "lines.jsonl.gz", "table.csv.gz"])
@pytest.mark.parametrize(
    "damaged",
    [b"", b"not packed", gzip.compress(json.dumps([1] * 999).encode())[:40]],
    ids=["empty", "not packed", "cut short"],
)
def test_a_damaged_file_is_told(tmp_path: Path, name: str, damaged: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(damaged)
    with pytest.raises(InvalidInput, match=r"gz file|holds no questions"):
        load(str(path))
