"""A run's answers as records that stand alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.report.export.records import exported
from gnothi.runs.folder import read_events
from tests.report.export.made import made


async def test_answers_with_the_texts_of_their_evidence(tmp_path: Path) -> None:
    run = exported(await made(tmp_path / "run"), ["rag"])
    first = run.records[0]
    assert (first.user_input, first.response, first.reference) == ("What is 0?", "0", "0")
    assert (first.retrieved_context_ids, first.retrieved_contexts) == (("p1",), ("Title: text",))
    assert first.metrics["em"] == 1
    assert first.cost["retrievals"] == 1
    assert (run.textless, len(run.records), len(run.answered)) == (0, 7, 6)
    assert [one.error for one in run.records if one.error] == ["ValueError: the model broke"]


async def test_evidence_whose_text_nobody_recorded_is_counted(tmp_path: Path) -> None:
    run = exported(await made(tmp_path / "run"), ["scripted"])  # answers from memory name p1 without a search
    memory = [one for one in run.answered if not one.cost["retrievals"]]
    assert run.textless == len(memory) > 0
    assert {one.retrieved_contexts for one in memory} == {("",)}


async def test_lines_of_other_kinds_among_the_events_hold_no_texts(tmp_path: Path) -> None:
    path = await made(tmp_path / "run")
    deep = "[" * 500 + "]" * 500
    with (path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"method": ["rag"], "question_id": {}, "events": 3}\n')
        file.write(f'{{"method": "rag", "question_id": "q", "events": {deep}}}\n')
    assert exported(path, ["rag"]).records[0].retrieved_contexts == ("Title: text",)
    assert read_events(path, [("rag", "q")]) == {("rag", "q"): json.loads(deep)}


async def test_all_methods_or_some(tmp_path: Path) -> None:
    path = await made(tmp_path / "run")
    assert [one.method for one in exported(path).records] == ["scripted"] * 7 + ["rag"] * 7
    with pytest.raises(UnknownName, match=r"got 'rga'.*Did you mean 'rag'"):
        exported(path, ["rga"])
    with pytest.raises(InvalidSetting, match=r"method=NAME"):
        exported(path).only("ragas")


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a run"):
        exported(tmp_path)
