"""Recording, nesting and counting of events."""

from __future__ import annotations

import asyncio
import json

from gnothi import events
from gnothi.events import Drafted, ModelCall, Searched, Usage
from gnothi.types import Passage, ScoredPassage


async def test_recordings_nest_and_reach_tasks_started_inside() -> None:
    with events.record() as outer:
        events.emit(Drafted("one", None))
        with events.record() as inner:
            await asyncio.create_task(_emit("two"))
    assert [event.as_dict()["text"] for event in outer] == ["one", "two"]
    assert [event.as_dict()["text"] for event in inner] == ["two"]
    events.emit(Drafted("three", None))
    assert len(outer) == 2


async def test_concurrent_questions_do_not_see_each_other() -> None:
    async def answer(text: str) -> list[events.Event]:
        with events.record() as seen:
            await asyncio.sleep(0)
            await _emit(text)
            await asyncio.sleep(0)
        return seen

    first, second = await asyncio.gather(answer("a"), answer("b"))
    assert first == [Drafted("a", None)]
    assert second == [Drafted("b", None)]


def test_usage_counts_calls_searches_and_tokens() -> None:
    searched = Searched("query", (ScoredPassage(Passage("1", "text"), 2.0),), 0.1)
    seen = [ModelCall("m", "generate", "reason", 10, 3, 0.1), searched, ModelCall("m", "sample", "reason", 10, 40, 0.2)]
    assert Usage.of(seen) == Usage(retrievals=1, model_calls=2, prompt_tokens=20, generated_tokens=43)


def test_events_are_json_ready() -> None:
    searched = Searched("query", (ScoredPassage(Passage("1", "text"), 2.0),), 0.1)
    assert json.loads(json.dumps(searched.as_dict()))["event"] == "searched"


async def _emit(text: str) -> None:
    events.emit(Drafted(text, None))
