"""``/v1/chat/completions``, asked by OpenAI's own client."""

from __future__ import annotations

from tests.command_line import KNOWN, covered_fact
from tests.serving.served import served
from tests.serving.test_responses import client


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
