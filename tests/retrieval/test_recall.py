"""Recall on real questions (shared/data, not part of the project), and on made ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.types import Passage
from tests import made_data as made
from tests.retrieval.documents import write_jsonl

SETS = {"hotpotqa": 0.72, "2wikimultihopqa": 0.65}
APART = {"hotpotqa": 0.75, "2wikimultihopqa": 0.67}


def questions(data: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def corpus(data: Path) -> Iterator[tuple[str, str]]:
    for name in SETS:
        for question in questions(data, name):
            yield from ((passage["title"], passage["text"]) for passage in question["passages"])
    for passage in json.loads((data / "2wikimultihopqa_corpus.json").read_text(encoding="utf-8")):
        yield passage["title"], passage["text"]


def recalls(data: Path, folder: Path, fields: str = "") -> tuple[int, dict[str, float]]:
    """How many passages there are; of each set the share of a question's supporting ones among the first five, as a mean."""
    ids = {passage: f"p{i}" for i, passage in enumerate(dict.fromkeys(corpus(data)))}
    source = write_jsonl(folder / "corpus.jsonl", (Passage(key, text, title) for (title, text), key in ids.items()))
    assert build([source], folder / "index", words=0, fields=fields).passages == len(ids)
    index = BM25Index.open(folder / "index")
    shares: dict[str, list[float]] = {name: [] for name in SETS}
    for name, found_of in shares.items():
        for question in questions(data, name):
            gold = {ids[passage["title"], passage["text"]] for passage in question["passages"] if passage["supporting"]}
            found = {result.passage.id for result in index.search_blocking(question["question"], 5)}
            found_of.append(len(gold & found) / len(gold))
    return len(ids), {name: sum(values) / len(values) for name, values in shares.items()}


def test_what_names_the_question_is_found(made_data: Path, tmp_path: Path) -> None:
    assert recalls(made_data, tmp_path) == (2 * made.QUESTIONS + 1, {"hotpotqa": 1.0, "2wikimultihopqa": 1.0})


@pytest.mark.parametrize(("fields", "least"), [("cross", SETS), ("best", APART)])
def test_recall_at_5(fields: str, least: dict[str, float], shared_data: Path, tmp_path: Path) -> None:
    passages, found = recalls(shared_data, tmp_path, fields)
    assert passages == 13_797
    assert {name: share for name, share in found.items() if share < least[name]} == {}
