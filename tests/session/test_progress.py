"""What is told of a run before its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gnothi.runs.rows import Row
from gnothi.session import progress
from gnothi.session.execute import claimed, execute
from gnothi.session.plan import Execution, Request, resolve, with_questions
from gnothi.session.progress import Ahead, outlook, seconds_left
from gnothi.session.watch import Watch
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage
from tests.command_line import script
from tests.patience import until


def test_what_is_left_follows_from_the_tokens_of_the_answers_there_are() -> None:
    # 100 answers of 1,000 tokens; 20 are in, and 10,000 tokens of others are done: 30,000 in 60 seconds.
    found = outlook({"rag": Ahead(100, [1000.0] * 20, [2.0] * 20, 30_000, 50)}, 60.0)
    assert found is not None
    assert (found.answers, found.calls, found.tokens, found.seconds, found.unseen) == (80, 150, 70_000, 140.0, [])
    assert found.between == pytest.approx((105.0, 175.0))


def test_methods_without_answers_are_left_out_and_named() -> None:
    found = outlook(
        {"rag": Ahead(100, [1000.0] * 20, [1.0] * 20, 20_000), "keqa": Ahead(100, [5.0] * 2, [1.0] * 2, 10_000)}, 30.0
    )
    assert found is not None
    assert (found.answers, found.seconds, found.unseen) == (80, 80.0, ["keqa"])


@pytest.mark.parametrize(
    "methods",
    [{}, {"rag": Ahead(3, [9.0] * 3, [1.0] * 3, 27)}, {"rag": Ahead(3, [], [], 27)}, {"rag": Ahead(9, [0.0] * 8, [0.0] * 8)}],
)
def test_where_nothing_can_be_said_nothing_is(methods: dict[str, Ahead]) -> None:
    assert outlook(methods, 60.0) is None


def test_what_is_under_way_counts_for_the_time_left() -> None:
    # Four minutes of reading, then five short waits: by answers alone 95 x 50 s, by tokens 1,500 of 2,000 are still to come.
    ahead = {"seakr": Ahead(100, [20.0] * 5, [1.0] * 5, 500)}
    assert seconds_left(ahead, 250.0) == 750.0
    assert seconds_left({**ahead, "rag": Ahead(9, [20.0] * 4, [1.0] * 4, 80)}, 250.0) is None  # too few answers of one
    assert seconds_left({"seakr": Ahead(100, [20.0] * 99, [1.0] * 99, 2_500)}, 250.0) is None  # the last one takes longer
    assert seconds_left({"seakr": Ahead(0, [], [])}, 250.0) is None


class Heard(Watch):
    def __init__(self) -> None:
        self.pulses: list[tuple[int, dict[str, int]]] = []
        self.told: list[str] = []
        self.warned: list[str] = []
        self.methods: list[str] = []

    def row(self, row: Row, label: str) -> None:  # noqa: ARG002
        self.methods.append(row.method)

    def pulse(self, read: int, calls: Mapping[str, int], left: float | None) -> None:  # noqa: ARG002
        self.pulses.append((read, dict(calls)))

    def info(self, text: str) -> None:
        self.told.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


class Counting(Scripted):
    """As the engine does, it counts what it reads before a reply is there; no reply comes before the next pulse, which is told
    to ``heard``."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(script)
        self.statistics: Mapping[str, int] = {"read_tokens": 5}
        self._heard = heard

    async def generate(self, *given: Any) -> Any:
        self.statistics = {"read_tokens": self.statistics["read_tokens"] + 700}
        before = len(self._heard.pulses)
        await until(lambda: len(self._heard.pulses) > before)
        return await super().generate(*given)


def _run(out: Path, model: Any, methods: list[str], limit: int, heard: Heard | None = None) -> Heard:
    plan = resolve(Request(methods, model, ScriptedRetriever([Passage("p", "text")])))
    plan = with_questions(plan, "lab:one_hop", limit=limit, execution=Execution(concurrency=1))
    heard = heard or Heard()
    with claimed(plan, out) as run:
        asyncio.run(execute([run], heard))
    return heard


def test_calls_are_counted_by_method_and_tokens_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PULSE", 0.001)
    heard = Heard()
    _run(tmp_path / "run", Counting(heard), ["direct", "rag"], 3, heard)
    reads = [read for read, _ in heard.pulses]
    assert reads == sorted(reads)
    assert set(reads) - {0} == {700 * calls for calls in range(1, 7)}  # without the 5 of before
    for told in ((700, {}), (4200, {"direct": 3, "rag": 2})):  # what is read counts before it is answered
        assert told in heard.pulses


def test_the_first_questions_of_every_method_come_first(tmp_path: Path) -> None:
    heard = _run(tmp_path / "run", Scripted(script), ["direct", "rag"], 25)
    assert heard.methods == ["direct"] * 20 + ["rag"] * 20 + ["direct"] * 5 + ["rag"] * 5


def test_what_is_odd_is_told_after_the_first_questions(tmp_path: Path) -> None:
    def cut(_: object) -> str:
        return "word " * 400

    heard = _run(tmp_path / "run", Scripted(cut), ["direct"], 22)
    assert len(heard.warned) == 1
    assert heard.warned[0].startswith("direct, after the first 20 questions: 20 of 20 replies were cut")


def test_what_the_whole_takes_is_told_of_some_and_once_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PULSE", 0.001)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    heard = Heard()
    _run(tmp_path / "run", Counting(heard), ["direct", "rag"], 40, heard)
    assert ["not counted" in told for told in heard.told] == [True, False]
    for told in heard.told:
        assert told.startswith("still to come: about ")
        assert "peak memory so far" in told
