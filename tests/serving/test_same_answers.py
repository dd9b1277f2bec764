"""The laboratory's own model: one question has one answer, by command line, Python, API and MCP, alone and in a crowd."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import mcp
import pytest

import gnothi
from gnothi import lab
from gnothi.signals.gate import decisive
from gnothi.types import Decoding, Prompt, Task
from tests.patience import until
from tests.serving.served import served
from tests.serving.test_responses import client

pytestmark = pytest.mark.slow
METHODS = ("seakr", "rag", "direct")


def decisions(found: list[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Scores in the digits that gates decide by."""
    return [(one["signal"], decisive(one["score"]), one["verdict"], one["subject"]) for one in found]


def essence(found: Mapping[str, Any], evidence: str) -> tuple[Any, ...]:
    sources = [one["id"] for one in found[evidence]]
    return found["answer"], found["rationale"], decisions(found["decisions"]), sources, found["usage"]["prompt_tokens"]


async def test_one_question_one_answer(gnothi_run_json: Any) -> None:
    questions = [question.text for question in lab.questions(lab.world(), None, 40)]
    first, others = questions[:2], questions[2:11]
    by_command = {one: essence(await asyncio.to_thread(gnothi_run_json, "ask", one), "evidence") for one in first}
    async with await gnothi.aopen("seakr") as rag:
        by_face = {one: essence((await rag.aask(one)).as_dict(), "evidence") for one in first}
    assert by_face == by_command
    async with served("lab", METHODS) as server, client(server) as asking:
        assert {one: essence((await server.chat(one)).json()["gnothi"], "sources") for one in first} == by_command
        crowd = [server.chat(one, f"gnothi/{METHODS[place % 3]}", stream=place % 2 == 0) for place, one in enumerate(others)]
        everyone = await asyncio.gather(*(server.chat(one) for one in first), *crowd)
        assert {each.status_code for each in everyone} == {200}
        found = zip(first, everyone, strict=False)
        assert {one: essence(each.json()["gnothi"], "sources") for one, each in found} == by_command
        async with mcp.Client(f"{server.url}/mcp") as tools:
            for one in first:
                asked = (await tools.call_tool("ask", {"question": one})).structured_content or {}
                sources = [source["id"] for source in asked["sources"]]
                assert (asked["answer"], sources) == (by_command[one][0], by_command[one][3])
        for one in first:
            response = await asking.responses.create(model="gnothi/seakr", input=one)
            assert essence(response.model_extra["gnothi"], "sources") == by_command[one]
            async for event in await asking.responses.create(model="gnothi/seakr", input=one, stream=True):
                if event.type == "response.completed":
                    assert essence(event.response.model_extra["gnothi"], "sources") == by_command[one]


@pytest.mark.parametrize("stream", [False, True])
async def test_tokens_stop_when_the_clients_leave(stream: bool) -> None:
    questions = [question.text for question in lab.questions(lab.world(), "two_hop", 8)]
    async with served("lab", ("seakr",)) as server:
        model: Any = server.context.service.find("seakr").opened.model
        asking = [asyncio.ensure_future(server.chat(one, stream=stream)) for one in questions]
        await until(lambda: model.statistics["steps"] > 10)
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await until(lambda: not server.context.room.under_way)
        assert sum(one.cancelled() for one in asking) > 0
        last = Prompt(Task("answer"), questions[0])
        await model.generate(last, Decoding(max_tokens=1))  # begun after the step that was under way
        before = model.statistics
        await model.generate(last, Decoding(max_tokens=6))
        steps, rows = (model.statistics[key] - before[key] for key in ("steps", "fed_rows"))
        assert 0 < rows == steps < 6  # nobody else had a row
