"""Runs: what is kept, what failures do, how an interrupted run goes on."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gnothi import events
from gnothi.errors import TooManyFailures
from gnothi.events import Decided, emit
from gnothi.runs.folder import RunFolder, read_events, read_rows
from gnothi.runs.questions import fingerprint
from gnothi.runs.rows import Row
from gnothi.runs.runner import Work, here, run
from gnothi.types import Answer, Passage, Question
from tests.messages import refused
from tests.runs import scripted
from tests.runs.scripted import ScriptedMethod, long_run, questions, run_one
from tests.stopping import Stopping, moments


def evaluate(out: Path, *methods: ScriptedMethod, n: int = 20, **options: int | None) -> list[Row]:
    with RunFolder(out, {"seed": 1}) as folder:
        by_name = {method.name: method for method in methods}
        return asyncio.run(run_one(here(by_name, 1), list(by_name), questions(n), folder, **options))  # type: ignore[arg-type]


def comparable(rows: list[Row]) -> list[dict[str, object]]:
    return [row.comparable() for row in rows]


def failing(*ids: str) -> Callable[[Question], str]:
    def reply(question: Question) -> str:
        if question.id in ids:
            raise RuntimeError(f"no answer to {question.id}")
        return question.answers[0]

    return reply


def test_a_row_holds_answer_metrics_cost_and_decisions(tmp_path: Path) -> None:
    rows = evaluate(tmp_path / "run", ScriptedMethod(), n=20)
    assert [row.question_id for row in rows] == [f"q{i}" for i in range(20)]
    row = rows[3]
    assert (row.method, row.question, row.answer, row.gold, row.kind) == ("scripted", "What is 3?", "3", ("3",), "one_hop")
    assert row.metrics == {"em": 1.0, "f1": 1.0, "accuracy": 1.0}
    assert {name: row.cost[name] for name in ("model_calls", "prompt_tokens", "generated_tokens")} == {
        "model_calls": 1,
        "prompt_tokens": 10,
        "generated_tokens": 5,
    }
    assert row.cost["seconds"] >= 0
    (decision,) = row.gate()
    assert decision["score"] == row.uncertainty
    assert (decision["verdict"] == "retrieve") == row.retrieved == (row.uncertainty is not None and row.uncertainty > 0.5)
    assert {row.retrieved for row in rows} == {True, False}


def test_files_say_the_same_as_what_is_returned(tmp_path: Path) -> None:
    rows = evaluate(tmp_path / "run", ScriptedMethod("a"), ScriptedMethod("b", always=True))
    assert read_rows(tmp_path / "run") == rows
    found = read_events(tmp_path / "run", [("b", "q5")])
    assert [event["event"] for event in found["b", "q5"]] == ["model_call", "decided", "searched"]
    assert found["b", "q5"][2]["passages"][0]["passage"]["title"] == "Title"


def test_many_questions_are_under_way_but_not_too_many(tmp_path: Path) -> None:
    active, most = 0, 0

    async def counting(question: Question) -> Answer:
        nonlocal active, most
        active += 1
        most = max(most, active)
        for _ in range(90):  # turns of the loop, not time: a slow machine takes as many
            await asyncio.sleep(0)
        active -= 1
        return Answer(question.text)

    with RunFolder(tmp_path / "run", {}) as folder:
        rows = asyncio.run(run_one(here({"counting": counting}, 0), ["counting"], questions(400), folder, concurrency=64))
    assert len(rows) == 400
    assert most == 64


def test_seeds_do_not_depend_on_what_runs_beside(tmp_path: Path) -> None:
    alone = evaluate(tmp_path / "alone", ScriptedMethod(), concurrency=1)
    crowded = evaluate(tmp_path / "crowded", ScriptedMethod("other", always=True), ScriptedMethod(), concurrency=64)
    assert comparable(alone) == comparable(crowded[20:])


def test_scores_keep_four_digits_in_rows_and_all_in_events(tmp_path: Path) -> None:
    async def method(question: Question) -> Answer:
        emit(Decided("retrieve", "gram", -6.123456789, -6.0, "trust", question.text))
        return Answer("x", uncertainty=0.000123456789)

    with RunFolder(tmp_path / "run", {}) as folder:
        (row,) = asyncio.run(run_one(here({"m": method}, 0), ["m"], questions(1), folder))
    assert (row.uncertainty, row.decisions[0]["score"], row.decisions[0]["threshold"]) == (0.0001235, -6.123, -6.0)
    assert read_events(tmp_path / "run", [row.key])[row.key][0]["score"] == -6.123456789


def test_a_failed_question_is_a_row_with_its_events_and_no_score(tmp_path: Path) -> None:
    rows = evaluate(tmp_path / "run", ScriptedMethod(reply=failing("q4")))
    assert [row.question_id for row in rows if row.failed] == ["q4"]
    error = rows[4].error or {}
    assert (error["type"], error["message"]) == ("RuntimeError", "no answer to q4")
    assert error["where"].startswith(__file__)
    assert rows[4].answer is None
    assert rows[4].metrics == {}
    assert rows[4].cost["model_calls"] == 1
    assert read_events(tmp_path / "run", [("scripted", "q4")])["scripted", "q4"][0]["event"] == "model_call"
    assert "no answer to q4" in (tmp_path / "run" / "events.jsonl").read_text(encoding="utf-8")


def test_failures_are_tried_again_and_only_they(tmp_path: Path) -> None:
    evaluate(tmp_path / "run", ScriptedMethod(reply=failing("q4", "q9")))
    asked = []

    def reply(question: Question) -> str:
        asked.append(question.id)
        return question.answers[0]

    again = evaluate(tmp_path / "run", ScriptedMethod(reply=reply))
    assert sorted(asked) == ["q4", "q9"]
    assert comparable(again) == comparable(evaluate(tmp_path / "undisturbed", ScriptedMethod()))
    assert len((tmp_path / "run" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 20


def test_a_hopeless_run_stops_and_can_go_on(tmp_path: Path) -> None:
    hopeless = ScriptedMethod(reply=failing(*(f"q{i}" for i in range(5, 20))))
    with refused(TooManyFailures):
        evaluate(tmp_path / "run", hopeless, max_failures=2, concurrency=1)
    assert len(read_rows(tmp_path / "run")) == 8
    assert len(evaluate(tmp_path / "run", ScriptedMethod())) == 20
    assert sum(row.failed for row in evaluate(tmp_path / "tolerant", hopeless, max_failures=15)) == 15


def test_cancelling_keeps_what_is_finished(tmp_path: Path) -> None:
    async def interrupted() -> None:
        with RunFolder(tmp_path / "run", {"seed": 1}) as folder:
            task = asyncio.create_task(
                run_one(here({"scripted": ScriptedMethod(seconds=0.01)}, 1), ["scripted"], questions(20), folder, concurrency=2)
            )
            while len(folder.rows) < 5:  # noqa: ASYNC110 - a folder tells nobody of its rows
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(interrupted())
    kept = read_rows(tmp_path / "run")
    assert 0 < len(kept) < 20
    assert not any(row.failed for row in kept)
    rows = evaluate(tmp_path / "run", ScriptedMethod())
    assert comparable(rows) == comparable(evaluate(tmp_path / "undisturbed", ScriptedMethod()))


def test_killed_and_resumed_gives_the_same_rows(tmp_path: Path) -> None:
    long_run(tmp_path / "undisturbed")
    out, chance = tmp_path / "killed", random.Random(5)
    before = 0
    for number in moments(120, 3):
        process = Stopping(scripted.__name__, str(out))
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        kept = len(read_rows(out))
        assert kept - before in (number, number + 1)  # the kill comes before the next row, or behind it
        before = kept
        torn(out, chance)
    assert before < 120, "the kills were to fall into the middle of the run"
    long_run(out)
    assert comparable(read_rows(out)) == comparable(read_rows(tmp_path / "undisturbed"))
    assert len((out / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 120
    keys = [row.key for row in read_rows(out)]
    assert read_events(out, keys) == read_events(tmp_path / "undisturbed", keys)


def torn(out: Path, chance: random.Random) -> None:
    """What a kill in the middle of a write leaves: the beginning of a line."""
    for name in ("rows.jsonl", "events.jsonl"):
        if chance.random() < 0.5:
            with (out / name).open("ab") as file:
                file.write(
                    json.dumps({"method": "first", "question_id": "q0", "answer": "é"}).encode()[: chance.randint(1, 40)]
                )


def test_the_fingerprint_notices_every_change() -> None:
    base = questions(3)
    changed = [base[:2], [*base[:2], Question("q2", "What is 2?", ("3",), kind="one_hop")], base[::-1]]
    assert len({fingerprint(found) for found in [base, *changed]}) == 4
    assert fingerprint(base) == fingerprint(questions(3))


def test_a_row_tells_what_was_cut_and_what_filters_kept(tmp_path: Path) -> None:
    class Filtering(ScriptedMethod):
        async def __call__(self, question: Question) -> Answer:
            events.emit(events.ModelCall("fake", "sample", "answer", 10, 5, 0.01, ("one", "two", "three"), cut=2))
            events.emit(events.ModelCall("fake", "score", "answer", 10, 5, 0.01, ("one",)))
            events.emit(events.Filtered("pmi", question.text, (("p", "kept", 1.0, True), ("p", "not", 0.0, False)), 0.5))
            events.emit(events.Picked("useful", question.text, (), (Passage("p", "text"),)))
            return await super().__call__(question)

    with RunFolder(tmp_path / "run", {}) as folder:
        (row,) = asyncio.run(run_one(here({"m": Filtering()}, 0), ["m"], questions(1), folder))
    assert row.tally == {"replies": 4, "cut": 2, "filters": 2, "emptied": 1}
    (kept,) = read_rows(tmp_path / "run")
    assert kept.tally == row.tally


def _note(order: list[str], name: str, row: Row) -> None:  # noqa: ARG001
    order.append(name)


def test_the_first_questions_of_all_works_come_first(tmp_path: Path) -> None:
    order: list[str] = []
    with RunFolder(tmp_path / "one", {}) as one, RunFolder(tmp_path / "two", {}) as two:
        works = [
            Work(here({"m": ScriptedMethod()}, 0), ["m"], questions(22), folder, on_row=partial(_note, order, name))
            for name, folder in (("one", one), ("two", two))
        ]
        rows = asyncio.run(run(works, concurrency=1))
    assert order == ["one"] * 20 + ["two"] * 20 + ["one"] * 2 + ["two"] * 2
    assert [[row.question_id for row in found] for found in rows] == [[f"q{n}" for n in range(22)]] * 2
