"""Recall on real questions (shared/data, not part of the project)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.types import Passage
from tests.retrieval.documents import write_jsonl

SETS = {"hotpotqa": 0.72, "2wikimultihopqa": 0.65}


def questions(data: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def corpus(data: Path) -> Iterator[tuple[str, str]]:
    for name in SETS:
        for question in questions(data, name):
            yield from ((passage["title"], passage["text"]) for passage in question["passages"])
    for passage in json.loads((data / "2wikimultihopqa_corpus.json").read_text(encoding="utf-8")):
        yield passage["title"], passage["text"]


@pytest.fixture(scope="module")
def ids(shared_data: Path) -> dict[tuple[str, str], str]:
    return {passage: f"p{i}" for i, passage in enumerate(dict.fromkeys(corpus(shared_data)))}


@pytest.fixture(scope="module")
def index(ids: dict[tuple[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    folder = tmp_path_factory.mktemp("recall")
    source = write_jsonl(folder / "corpus.jsonl", (Passage(key, text, title) for (title, text), key in ids.items()))
    report = build([source], folder / "index", words=0)
    assert report.passages == len(ids) == 13_797
    return BM25Index.open(folder / "index")


@pytest.mark.parametrize(("name", "least"), SETS.items())
def test_recall_at_5(name: str, least: float, shared_data: Path, ids: dict[tuple[str, str], str], index: BM25Index) -> None:
    """The share of a question's supporting passages among the first five, as a mean over questions."""
    shares = []
    for question in questions(shared_data, name):
        gold = {ids[passage["title"], passage["text"]] for passage in question["passages"] if passage["supporting"]}
        found = {result.passage.id for result in index.search_blocking(question["question"], 5)}
        shares.append(len(gold & found) / len(gold))
    assert sum(shares) / len(shares) >= least
