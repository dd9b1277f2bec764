"""The data that tests are made of have the shapes of the real ones: else they would show nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from tests.cases import each

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
