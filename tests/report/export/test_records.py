"""A run's answers as records that stand alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.report.export.records import RAGAS, Exported, exported, write_jsonl, write_parquet, write_ragas
from gnothi.runs.folder import read_events
from tests.messages import refused
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
    with refused(UnknownName):
        exported(path, ["rga"])
    with refused(InvalidSetting):
        exported(path).only("ragas")


def test_what_is_no_run(tmp_path: Path) -> None:
    with refused(InvalidInput):
        exported(tmp_path)


# JSON Lines, RAGAS' data set, Parquet; the last read back by pyarrow and pandas.


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n") if line]


@pytest.fixture
async def run(tmp_path: Path) -> Exported:
    return exported(await made(tmp_path / "run"))


async def test_a_line_a_question_and_method(run: Exported, tmp_path: Path) -> None:
    out = tmp_path / "new" / "run.jsonl"
    assert write_jsonl(run, out) == 14
    found = lines(out)
    assert [line["method"] for line in found] == ["scripted"] * 7 + ["rag"] * 7
    assert found[0]["decisions"][0]["signal"] == "gram"
    assert {"em", "f1", "seconds", "prompt_tokens"} <= found[0].keys()
    assert [line["error"] for line in found if line["response"] is None] == ["ValueError: the model broke"] * 2
    assert found[6]["metadata"] == {"hops": [1, 2]}
    assert [path.name for path in out.parent.iterdir()] == ["run.jsonl"]


async def test_ragas_has_its_names_alone_and_no_failures(tmp_path: Path) -> None:
    out = tmp_path / "ragas.jsonl"
    assert write_ragas(exported(await made(tmp_path / "run"), ["rag"]), out) == 6
    assert {tuple(line) for line in lines(out)} == {RAGAS}


async def test_parquet_says_the_same(run: Exported, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: the extra parquet")
    out = tmp_path / "run.parquet"
    assert write_parquet(run, out) == 14
    table = pq.read_table(out)
    rows = table.to_pylist()
    for row, one in zip(rows, run.records, strict=True):
        told = one.as_dict()
        assert json.loads(row.pop("metadata")) == told.pop("metadata")
        assert {item["signal"]: item["score"] for item in row.pop("signals")} == told.pop("signals")
        assert row == told
    assert json.loads(table.schema.metadata[b"gnothi.config"])["model.name"] == "fake"


async def test_pandas_reads_it(run: Exported, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra parquet")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    write_parquet(run, tmp_path / "run.parquet")
    write_jsonl(run, tmp_path / "run.jsonl")
    frame = pandas.read_parquet(tmp_path / "run.parquet")
    assert frame.groupby("method").em.mean().to_dict() == {"rag": pytest.approx(5 / 6), "scripted": pytest.approx(5 / 6)}
    assert len(pandas.read_json(tmp_path / "run.jsonl", lines=True)) == len(frame) == 14


async def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    run: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run.jsonl"
    out.write_text("old")
    monkeypatch.setattr("gnothi.report.export.records.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_jsonl(run, out)
    assert out.read_text() == "old"
    assert not (tmp_path / ".run.jsonl.new").exists()
