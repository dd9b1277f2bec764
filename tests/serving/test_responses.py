"""``/v1/responses`` by OpenAI's client; ``/v1/models``, ``/v1/search``, ``/v1/know`` and ``/metrics``."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from typing import Any

import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, covered_fact, script
from tests.serving.served import Served, served


def client(server: Served) -> Any:
    """Untyped: its unions of everything that OpenAI may send are of no use here."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


async def test_whole() -> None:
    _, true, question = covered_fact()
    async with served() as server, client(server) as asking:
        found = await asking.responses.create(model="gnothi/seakr", input=question, tools=[{"type": "web_search"}])
        assert found.output_text == f"{true} [1]"
        thinking, search, message = found.output
        assert (thinking.type, search.type, message.type) == ("reasoning", "file_search_call", "message")
        assert "gate: " in thinking.summary[0].text
        assert search.results[0].text
        citation = message.content[0].annotations[0]
        assert (citation.type, found.output_text[citation.start_index : citation.end_index]) == ("url_citation", "[1]")
        assert found.usage.total_tokens == found.usage.input_tokens + found.usage.output_tokens > 0
        assert found.model_extra["gnothi"]["answer"] == true


async def test_streamed_and_by_the_helper() -> None:
    _, true, question = covered_fact()
    async with served() as server, client(server) as asking:
        events = [event async for event in await asking.responses.create(model="gnothi/seakr", input=question, stream=True)]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        kinds = [event.type for event in events]
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        assert kinds.count("response.file_search_call.completed") == 1
        told = [event.model_extra for event in events if event.type == "response.reasoning_summary_text.delta"]
        assert [one["gnothi"]["event"]["event"] for one in told if one][:3] == ["drafted", "decided", "searched"]
        async with asking.responses.stream(model="gnothi/seakr", input=question) as stream:
            text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
            whole = await stream.get_final_response()
        assert text == whole.output_text == f"{true} [1]"
        assert [item.type for item in whole.output] == ["reasoning", "file_search_call", "message"]


async def test_models_say_what_is_configured() -> None:
    async with served(settings={"candidates": 2}) as server, client(server) as asking:
        found = [model async for model in asking.models.list()]
        assert [one.id for one in found] == ["gnothi/seakr", "gnothi/rag", "gnothi/direct"]
        told = found[0].model_extra["gnothi"]
        assert (told["method"], told["settings"]["candidates"]) == ("seakr", "2")
        assert told["gate"]["threshold"] == -6.0
        one = await asking.models.retrieve("gnothi/rag")
        assert one.model_extra["gnothi"]["gate"] is None


async def test_a_threshold_may_be_infinite() -> None:
    async with served(methods=("seakr",), settings={"threshold": "-inf"}) as server:
        (told,) = (await server.http.get("/v1/models")).json()["data"]
        assert told["gnothi"]["gate"] == {"threshold": None, "fires": "always", "calibrated": False}
        known = (await server.http.post("/v1/know", json={"question": KNOWN})).json()
        assert (known["knows"], known["threshold"]) == (False, None)
        whole = (await server.chat(KNOWN)).json()
        assert whole["gnothi"]["decisions"][0]["threshold"] is None
        assert "data: [DONE]" in (await server.chat(KNOWN, stream=True)).text
        assert (
            await server.http.post("/v1/responses", json={"model": "seakr", "input": KNOWN, "stream": True})
        ).status_code == 200


async def test_search_and_know() -> None:
    subject, _, question = covered_fact()
    async with served() as server:
        found = (await server.http.post("/v1/search", json={"query": question, "k": 2})).json()
        assert len(found["data"]) == 2
        assert found["data"][0]["title"] == subject
        assert (await server.http.get(found["data"][0]["url"])).status_code == 200
    async with served(methods=("rag", "direct", "seakr")) as server:
        known = (await server.http.post("/v1/know", json={"question": KNOWN})).json()
        assert known["model"] == "gnothi/seakr"  # the first that has a gate
        assert (known["knows"], known["draft"], known["probability_wrong"]) == (True, "Ada Bram", None)


async def test_numbers_for_prometheus() -> None:
    question = covered_fact()[2]
    async with served() as server:
        await server.chat(question)
        await server.chat(KNOWN)
        await server.chat(KNOWN, stream=True)
        await server.http.post("/v1/know", json={"question": KNOWN})
        await server.chat(KNOWN, "nobody")
        page = await server.http.get("/metrics")
        found = {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(page.text)
            for sample in family.samples
        }
    assert found["gnothi_questions_total", "ask", "seakr", "ok"] == 3
    assert found["gnothi_questions_total", "know", "seakr", "ok"] == 1
    assert found["gnothi_refused_total", "model_not_found"] == 1
    assert found["gnothi_searches_total", "seakr"] == 1
    assert found["gnothi_answers_total", "seakr", "memory"] == 2
    assert found["gnothi_trusted_share", "seakr"] == 2 / 3
    assert found["gnothi_tokens_total", "prompt", "seakr"] > 0
    assert found["gnothi_questions_under_way",] == 0
    assert found["gnothi_stage_seconds_count", "queue"] == 4
    assert found["gnothi_stage_seconds_count", "first_event"] == 1
    assert found["gnothi_gate_degenerate", "seakr"] == 0


async def test_a_gate_that_always_fires_is_an_alarm() -> None:
    async with served(Scripted(script, name="lab", thresholds={"gram": -99.0}), ("seakr",)) as server:
        for _ in range(20):
            await server.chat(KNOWN)
        assert 'gnothi_gate_degenerate{setup="seakr"} 1.0' in (await server.http.get("/metrics")).text
        (told,) = (await server.http.get("/v1/models")).json()["data"]
        assert "(almost) always fires" in told["gnothi"]["warnings"][-1]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
async def test_promtool_finds_nothing_to_say() -> None:
    async with served() as server:
        await server.chat(KNOWN)
        page = (await server.http.get("/metrics")).text
    found = await asyncio.to_thread(
        subprocess.run, ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


async def test_a_whole_answer_with_its_source_and_decisions() -> None:
    _, true, question = covered_fact()
    async with served() as server, client(server) as asking:
        found = await asking.chat.completions.create(model="gnothi/seakr", messages=[{"role": "user", "content": question}])
        message = found.choices[0].message
        assert message.content == f"{true} [1]"
        citation = message.annotations[0].url_citation
        assert message.content[citation.start_index : citation.end_index] == "[1]"
        told = found.model_extra["gnothi"]
        assert (told["method"], told["question"], told["retrieved"]) == ("seakr", question, True)
        assert [one["verdict"] for one in told["decisions"]] == ["retrieve"]
        assert "gate: " in message.model_extra["reasoning"]
        known = await asking.chat.completions.create(model="seakr", messages=[{"role": "user", "content": KNOWN}])
        assert known.choices[0].message.content == "Ada Bram"
        assert not known.model_extra["gnothi"]["retrieved"]


async def test_a_stream_tells_events_then_the_answer() -> None:
    _, true, question = covered_fact()
    async with served() as server, client(server) as asking:
        stream = await asking.chat.completions.create(
            model="gnothi/seakr",
            messages=[{"role": "user", "content": question}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == f"{true} [1]"
        assert chunks[-1].usage.total_tokens > 0
        events = [
            chunk.model_extra["gnothi"]["event"]["event"] for chunk in chunks if "event" in chunk.model_extra.get("gnothi", {})
        ]
        assert events[:3] == ["drafted", "decided", "searched"]
        assert chunks[-2].model_extra["gnothi"]["answer"] == true
