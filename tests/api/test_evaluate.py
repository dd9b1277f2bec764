"""``gnothi.evaluate``: the same run as ``gnothi eval``, whoever starts it."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.api.given import request_of
from gnothi.config import to_toml
from gnothi.errors import InvalidSetting
from gnothi.runs.folder import read_config, read_rows
from gnothi.session.watch import Watch
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, Run, script
from tests.messages import refused
from tests.patience import PATIENCE
from tests.test_notebook import Cells

METHODS = "rag,seakr"


def rows(run: Path) -> bytes:
    """The file without times."""
    lines = [json.loads(line) for line in (run / "rows.jsonl").read_bytes().splitlines()]
    for line in lines:
        del line["cost"]["seconds"]
    return json.dumps(lines, ensure_ascii=False).encode()


@pytest.mark.usefixtures("scripted")
def test_rows_are_those_of_the_command_line(gnothi_run: Run, tmp_path: Path) -> None:
    given = ("--method", METHODS, "--limit", "6", "--set", "seakr.threshold=-3", "--seed", "2", "--set", "index.depth=7")
    assert gnothi_run("eval", "lab", *given, "--out", str(tmp_path / "typed"))[0] == 0
    more: dict[str, Any] = {"limit": 6, "seed": 2, "index_settings": {"depth": 7}}
    named = gnothi.evaluate("lab", ["rag", "seakr"], tmp_path / "named", settings={"seakr.threshold": -3}, **more)
    with gnothi.open("seakr", threshold=-3, index_settings={"depth": 7}) as rag:
        more.pop("index_settings")
        held = gnothi.evaluate("lab", ["rag", rag], tmp_path / "held", **more)
    expected = rows(tmp_path / "typed")
    assert rows(named.path) == rows(held.path) == expected
    told = {key: value for key, value in read_config(tmp_path / "typed").items() if not key.startswith("execution.")}
    for run in (named, held):
        assert {key: value for key, value in read_config(run.path).items() if not key.startswith("execution.")} == told
    # and each goes on with the other's
    assert gnothi_run("eval", "lab", *given, "--out", str(named.path))[0] == 0


async def test_awaited_it_is_the_same(scripted: Scripted, tmp_path: Path) -> None:
    sync = await asyncio.to_thread(gnothi.evaluate, "lab", METHODS.split(","), tmp_path / "sync", limit=4)
    seen: list[str] = []
    first = await gnothi.aevaluate(
        "lab", METHODS.split(","), tmp_path / "one", limit=4, on_row=lambda row: seen.append(row.method)
    )
    assert len(seen) == len(first.rows) == 8
    asked = len(scripted.prompts)
    again = await gnothi.aevaluate("lab", METHODS.split(","), tmp_path / "one", limit=4)
    assert len(scripted.prompts) == asked
    assert rows(again.path) == rows(first.path) == rows(sync.path)
    assert (first.failures, [row.method for row in first.rows[:4]]) == (0, ["rag"] * 4)


@pytest.mark.usefixtures("scripted")
async def test_cancelled_it_stops_and_goes_on(tmp_path: Path) -> None:
    seen, cancelled = asyncio.Event(), threading.Event()
    here = asyncio.get_running_loop()
    before = set(threading.enumerate())

    def first(_: object) -> None:
        here.call_soon_threadsafe(seen.set)
        assert cancelled.wait(PATIENCE)

    work = asyncio.create_task(gnothi.aevaluate("lab", "seakr", tmp_path / "run", limit=30, concurrency=1, on_row=first))
    await seen.wait()
    work.cancel()
    here.call_later(0.0, here.call_soon, cancelled.set)  # when the run has been told
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not [one for one in set(threading.enumerate()) - before if one.name == "gnothi"]  # nothing goes on
    kept = len(read_rows(tmp_path / "run"))
    assert 1 <= kept <= 2  # what was under way
    again = await gnothi.aevaluate("lab", "seakr", tmp_path / "run", limit=30)
    assert (len(again.rows), again.failures) == (30, 0)


def test_questions_and_models_of_ones_own(tmp_path: Path) -> None:
    asked = [gnothi.Question("1", KNOWN, ("Ada Bram",)), gnothi.Question("2", "Who?", ("Bo",))]
    model = Scripted(script, name="mine")
    run = gnothi.evaluate(asked, "direct", tmp_path / "run", model=model)
    assert [row.metrics["em"] for row in run.rows] == [1.0, 0.0]
    assert read_config(run.path)["objects.model.name"].endswith("Scripted")
    with refused(InvalidSetting):
        gnothi.evaluate(asked, "direct", tmp_path / "run", model=Other(script, name="mine"))


class Other(Scripted):
    pass


@pytest.mark.usefixtures("scripted")
def test_a_run_is_repeated_from_its_record(tmp_path: Path) -> None:
    first = gnothi.evaluate("lab", "rag", tmp_path / "one", limit=3, settings={"k": 2})
    again = gnothi.evaluate("lab", "rag", tmp_path / "two", limit=3, config=first.path / "config.toml")
    assert rows(again.path) == rows(first.path)
    with gnothi.open(config=first.path / "config.toml") as rag:
        assert (rag.method, rag.settings["k"], rag.plan.sources.index) == ("rag", 2, "lab")


def test_the_record_of_a_run_says_what_it_asked_and_searched(tmp_path: Path) -> None:
    said = {"dataset.fingerprint": "", "methods": ["rag"], "model.name": "openai:some", "index": "mine", "graph": "none"}
    (tmp_path / "config.toml").write_text(to_toml(said), "utf-8")
    nothing = dict.fromkeys(("model", "index", "graph", "calibration", "budget"))
    asked = {**nothing, "ignore_mismatch": False, "config": tmp_path / "config.toml"}
    request = request_of(asked, None)
    assert (request.model, request.index, request.graph) == ("openai:some", "mine", None)
    assert request_of({**asked, "model": "lab"}, None).model == "lab"


@pytest.mark.usefixtures("scripted")
def test_a_run_shows_as_a_table_and_becomes_a_data_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs the extra 'parquet'")
    run = gnothi.evaluate("lab", METHODS.split(","), tmp_path / "run", limit=4)
    assert len(repr(run)) < 200
    headings, *shown = Cells(run._repr_html_()).rows
    assert headings[:3] == ["method", "n", "exact match"]
    assert [row[:2] for row in shown if row[0]] == [["rag", "4"], ["seakr", "4"]]
    frame = run.to_pandas()
    assert frame.groupby("method", sort=False).size().to_dict() == {"rag": 4, "seakr": 4}
    assert frame.groupby("method")["em"].mean().to_dict() == {one.method: one.em for one in run.summary.methods}
    assert list(frame["answer"]) == [row.answer for row in run.rows]


@pytest.mark.usefixtures("scripted")
def test_a_run_is_repeated_with_its_warnings(tmp_path: Path) -> None:
    """As with ``gnothi eval --config``: what is no longer what it was is warned of, from Python, too."""
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": "a", "question": "Who?", "answer": "x"}\n')
    gnothi.evaluate(file, "direct", tmp_path / "one")
    file.write_text('{"id": "a", "question": "Who else?", "answer": "x"}\n')
    again = gnothi.evaluate(file, "direct", tmp_path / "two", config=tmp_path / "one" / "config.toml")
    assert any("is not what it was" in warning for warning in again.warnings)
    with refused(InvalidSetting):
        gnothi.evaluate(file, "direct", tmp_path / "three", watch=Watch(), on_row=print)
