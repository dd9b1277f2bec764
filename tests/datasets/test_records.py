"""Files of questions: packed or not, and answers in all shapes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.datasets import load
from gnothi.errors import InvalidInput
from tests.cases import each
from tests.messages import refused

# Packed files of questions read as the plain ones do.

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
    with refused(InvalidInput):
        load(str(path))


# The data that tests are made of have the shapes of the real ones: else they would show nothing.

HELD_IN = {"selfaware.json": "example", "xquad.en.json": "data"}
"""File → the key under which its records lie."""


def records(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".tsv":
        return [line.split("\t") for line in text.splitlines()]
    document = json.loads(text)
    return list(document[HELD_IN[path.name]] if path.name in HELD_IN else document)


def shapes(value: Any, at: str = "") -> set[str]:
    """Every place in a value, and of what type it is there."""
    if isinstance(value, dict):
        return {f"{at}: {', '.join(sorted(value))}"} | {one for key in value for one in shapes(value[key], f"{at}.{key}")}
    if isinstance(value, list):
        return {f"{at}: list"} | {one for item in value for one in shapes(item, f"{at}[]")}
    return {f"{at}: {type(value).__name__}"}


def of_real_shape(made: Path, real: Path) -> None:
    found = {shape for record in records(made) for shape in shapes(record)}
    expected = {shape for record in records(real) for shape in shapes(record)}
    assert found
    assert found - expected == set()
    if made.name in HELD_IN:
        documents = [json.loads(path.read_text("utf-8")) for path in (made, real)]
        assert documents[0].keys() == documents[1].keys()


def test_shapes_of_two_values_differ_where_they_do() -> None:
    one = {"a": [1, "x"], "b": None}
    assert shapes(one) == {": a, b", ".a: list", ".a[]: int", ".a[]: str", ".b: NoneType"}
    assert shapes(one) - shapes({"a": [1], "b": None}) == {".a[]: str"}


def test_made_data_have_the_shape_of_the_real(made_data: Path, shared_data: Path) -> None:
    files = sorted(path.relative_to(made_data) for path in made_data.rglob("*") if path.is_file())
    assert len(files) >= 20
    each(of_real_shape, [(made_data / file, shared_data / file) for file in files])
