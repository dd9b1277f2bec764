"""Passages from what other frameworks find; objects by import path."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import IndexUnavailable, MissingDependency
from gnothi.retrieval.foreign import Foreign, Results, imported, named, scored
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage
from tests.messages import refused

A, B = Passage("a", "one"), Passage("b", "two")


@given(st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=1))))
def test_the_order_stays_whatever_the_scores(scores: list[Any]) -> None:
    found = scored([(A, score) for score in scores])
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(found) == len(scores)


def test_scores_that_fall_are_kept() -> None:
    assert [one.score for one in scored([(A, 2.5), (B, -1)])] == [2.5, -1.0]
    assert [one.score for one in scored([(A, 0.1), (B, 0.9)])] == [1.0, 0.5]  # distances


def test_every_text_once_and_no_id_twice() -> None:
    found = named([(A, 1), (Passage("", "x"), 0.9), (A, 0.8), (Passage("a", "another"), 0.7), (Passage("", "x"), 0.6)])
    assert [passage.text for passage, _ in found] == ["one", "x", "another"]
    assert len({passage.id for passage, _ in found}) == 3
    assert all(passage.id for passage, _ in found)


class TestConformance(RetrieverConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def retriever(cls) -> Foreign:
        from gnothi.retrieval.bm25 import BM25Index

        index = BM25Index.in_memory(CORPUS)

        async def find(query: str, k: int) -> Results:
            return [(one.passage, one.score) for one in await index.search(query, k)]

        return Foreign("another's", find)


async def test_what_it_raises_is_an_index_that_is_not_there() -> None:
    async def broken(*_: Any) -> Sequence[Any]:
        raise RuntimeError("no route to host")

    async def slow(*_: Any) -> Sequence[Any]:
        await asyncio.sleep(60)
        return ()

    with refused(IndexUnavailable):
        await Foreign("theirs", broken).search("x", 1)
    with refused(IndexUnavailable):
        await Foreign("theirs", slow, 0.01).search("x", 1)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module beside which a command is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine_of_tests", raising=False)
    file = tmp_path / "mine_of_tests.py"
    file.write_text("class Box:\n    held = 5\n\ndef make():\n    return 7\n\ndef broken():\n    raise OSError('no server')\n")
    return file


def number(thing: object) -> bool:
    return isinstance(thing, int)


@pytest.mark.usefixtures("module")
def test_an_object_or_a_function_that_makes_one() -> None:
    assert imported("langchain", "mine_of_tests:Box.held", "json", number) == 5
    assert imported("langchain", "mine_of_tests:make", "json", number) == 7


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    "argument",
    "mine_of_tests :x no_such_module:x .mine_of_tests:x mine_of_tests:nothing mine_of_tests:broken mine_of_tests:Box".split(),
)
def test_what_cannot_be_imported_is_told(argument: str) -> None:
    with refused(IndexUnavailable):
        imported("langchain", argument, "json", number)


def test_a_framework_that_is_not_installed_names_its_extra() -> None:
    with refused(MissingDependency):
        imported("langchain", "a:b", "no_such_framework", number)
