"""What goes wrong: each fault has the status and the object that OpenAI's clients expect, and leaves nothing running."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import openai
import pytest

from gnothi.errors import ModelUnavailable
from tests.command_line import KNOWN
from tests.patience import Deadlines, until
from tests.serving.served import Served, Slow, served

SECRET = "/srv/secret/place"


def error_of(response: httpx2.Response) -> dict[str, Any]:
    found = response.json()
    assert found.keys() == {"error"}
    assert found["error"].keys() == {"message", "type", "param", "code"}
    assert isinstance(found["error"]["message"], str)
    error: dict[str, Any] = found["error"]
    return error


async def at_rest(server: Served) -> None:
    """Nobody is asking or waiting any more."""
    room = server.context.room
    await until(lambda: not (room.under_way or room.waiting))


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


PICTURE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]
FORCED = {"type": "function", "function": {"name": "f"}}
CHAT: list[tuple[dict[str, Any], int, str | None, str | None]] = [
    ({"model": "gnothi/nobody"}, 404, "model_not_found", "model"),
    ({"model": 7}, 400, None, "model"),
    ({"n": 2}, 400, "unsupported_parameter", "n"),
    ({"logprobs": True}, 400, "unsupported_parameter", "logprobs"),
    ({"tool_choice": "required"}, 400, "unsupported_parameter", "tool_choice"),
    ({"tool_choice": FORCED}, 400, "unsupported_parameter", "tool_choice"),
    ({"response_format": {"type": "json_object"}}, 400, "unsupported_parameter", "response_format"),
    ({"response_format": "json_object"}, 400, "unsupported_parameter", "response_format"),
    ({"stream": "yes"}, 400, None, "stream"),
    ({"messages": []}, 400, None, "messages"),
    ({"messages": "Who?"}, 400, None, "messages"),
    ({"messages": ["Who?"]}, 400, None, "messages[0]"),
    ({"messages": [{"role": "wizard", "content": "Who?"}]}, 400, None, "messages[0].role"),
    ({"messages": [{"role": "system", "content": "Be kind."}]}, 400, None, "messages"),
    ({"messages": user(" ")}, 400, None, "messages"),
    ({"messages": user({"text": "Who?"})}, 400, None, "messages[0].content"),
    ({"messages": user(PICTURE)}, 400, "unsupported_content", "messages[0].content[1]"),
    ({"messages": user("a" * 100_000)}, 400, "string_above_max_length", "messages"),
]
RESPONSES: list[tuple[dict[str, Any], int, str | None, str | None]] = [
    ({"model": "gnothi/nobody"}, 404, "model_not_found", "model"),
    ({"previous_response_id": "resp_1"}, 400, "unsupported_parameter", "previous_response_id"),
    ({"background": True}, 400, "unsupported_parameter", "background"),
    ({"top_logprobs": 3}, 400, "unsupported_parameter", "top_logprobs"),
    ({"text": {"format": {"type": "json_schema"}}}, 400, "unsupported_parameter", "text"),
    ({"text": {"format": "json_schema"}}, 400, "unsupported_parameter", "text"),
    ({"tool_choice": "required"}, 400, "unsupported_parameter", "tool_choice"),
    ({"input": user([{"type": "input_image", "image_url": "data:"}])}, 400, "unsupported_content", "input[0].content[0]"),
    ({"input": ""}, 400, None, "input"),
    ({"input": None}, 400, None, "input"),
]
PLAIN: list[tuple[str, dict[str, Any], int, str | None]] = [
    ("search", {"query": ""}, 400, "query"),
    ("search", {"query": "x", "k": 0}, 400, "k"),
    ("search", {"query": "x", "k": True}, 400, "k"),
    ("search", {"query": "x", "model": "nobody"}, 404, "model"),
    ("know", {}, 400, "question"),
    ("know", {"question": "Who?", "model": "gnothi/rag"}, 400, None),
]


async def test_requests_that_cannot_be_met_are_refused_by_name() -> None:
    async with served() as server:
        for path, cases, whole in (
            ("chat/completions", CHAT, {"model": "gnothi/seakr", "messages": user(KNOWN)}),
            ("responses", RESPONSES, {"model": "gnothi/seakr", "input": KNOWN}),
        ):
            for change, status, code, param in cases:
                found = await server.http.post(f"/v1/{path}", json=whole | change)
                error = error_of(found)
                assert (found.status_code, error["code"], error["param"]) == (status, code, param), change
        for path, body, status, param in PLAIN:
            found = await server.http.post(f"/v1/{path}", json=body)
            assert (found.status_code, error_of(found)["param"]) == (status, param), (path, body)


async def test_plain_tools_and_what_front_ends_send_besides_are_ignored() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    async with served() as server:
        found = await server.chat(KNOWN, tools=[tool], tool_choice="auto", temperature=0.7, max_tokens=5, user="someone")
        assert found.json()["choices"][0]["message"]["content"] == "Ada Bram"


async def test_a_body_that_is_no_json_object() -> None:
    async with served(methods=("direct",)) as server:
        for body in (b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"model": NaN'):
            found = await server.http.post("/v1/chat/completions", content=body)
            assert (found.status_code, error_of(found)["code"]) == (400, "invalid_json"), body[:9]


async def test_a_body_of_a_megabyte() -> None:
    async with served(methods=("direct",)) as server:
        found = await server.chat("a" * 1_000_000)
        assert (found.status_code, error_of(found)["code"]) == (413, "request_too_large")
        assert (await server.chat(KNOWN, "direct")).status_code == 200


async def test_no_such_page_and_no_such_method() -> None:
    async with served(methods=("direct",)) as server:
        for method, path, status in (
            ("GET", "/v1/nothing", 404),
            ("GET", "/v1/chat/completions", 405),
            ("DELETE", "/v1/models", 405),
        ):
            found = await server.http.request(method, path)
            assert found.status_code == status
            error_of(found)


async def test_an_error_of_the_model_tells_nothing_of_the_server() -> None:
    for broken, status in ((RuntimeError(SECRET), 500), (ModelUnavailable(SECRET), 503)):
        model = Slow(broken)
        model.go.set()
        async with served(model, ("direct",)) as server:
            found = await server.chat(KNOWN, "direct")
            assert found.status_code == status
            error_of(found)
            assert SECRET not in found.text
            stream = await server.chat(KNOWN, "direct", stream=True)
            assert stream.status_code == 200
            assert SECRET not in stream.text
            assert json.loads(stream.text.split("data: ")[-2]).keys() == {"error"}
            await at_rest(server)


async def test_the_clients_raise_what_fails_in_mid_stream() -> None:
    model = Slow(RuntimeError(SECRET))
    model.go.set()
    async with served(model, ("direct",)) as server, openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        stream = await client.chat.completions.create(
            model="direct", messages=[{"role": "user", "content": KNOWN}], stream=True
        )
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass
        events = await client.responses.create(model="direct", input=KNOWN, stream=True)
        last = [event async for event in events][-1]
        assert last.type == "response.failed"
        assert last.response.error is not None


async def test_a_question_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model, allowed = Slow(), 40_000.0
    deadlines = Deadlines(monkeypatch, allowed)
    async with served(model, ("direct",), timeout=allowed) as server:

        async def asked(stream: bool) -> httpx2.Response:
            asking, before = asyncio.ensure_future(server.chat(KNOWN, "direct", stream=stream)), model.asked
            await until(lambda: model.asked > before)
            deadlines.pass_by()
            return await asking

        found = await asked(stream=False)
        assert (found.status_code, error_of(found)["code"]) == (504, "timeout")
        stream = await asked(stream=True)
        assert json.loads(stream.text.split("data: ")[-2])["error"]["code"] == "timeout"
        assert (model.asked, model.dropped) == (2, 2)
        await at_rest(server)


async def test_the_time_for_a_question_is_that_of_the_clock() -> None:
    model = Slow()
    async with served(model, ("direct",), timeout=0.05) as server:
        for stream in (False, True):
            found = await server.chat(KNOWN, "direct", stream=stream)
            assert '"timeout"' in found.text
        await at_rest(server)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_stops_its_question(stream: bool) -> None:
    model = Slow()
    async with served(model, ("direct",), heartbeat=0.02) as server:
        body = {"model": "direct", "messages": user(KNOWN), "stream": stream}
        asking = [asyncio.ensure_future(server.http.post("/v1/chat/completions", json=body)) for _ in range(8)]
        await until(lambda: model.asked == 8)
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await at_rest(server)
        assert model.dropped == 8
        model.go.set()
        assert (await server.chat(KNOWN, "direct")).status_code == 200


async def test_overload_is_told_before_a_stream_begins() -> None:
    model = Slow()
    async with served(model, ("direct",), slots=2, waiting=3) as server:
        asking = [asyncio.ensure_future(server.chat(KNOWN, "direct", stream=number % 2 == 0)) for number in range(20)]
        await until(lambda: model.asked == 2)
        await until(lambda: sum(one.done() for one in asking) == 15)
        model.go.set()
        found = await asyncio.gather(*asking)
        assert sorted(one.status_code for one in found) == [200] * 5 + [429] * 15
        refused = next(one for one in found if one.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert error_of(refused)["code"] == "overloaded"
        await at_rest(server)


async def test_one_that_leaves_while_it_waits_makes_room() -> None:
    model = Slow()
    async with served(model, ("direct",), slots=1, waiting=1) as server:
        first = asyncio.ensure_future(server.chat(KNOWN, "direct"))
        await until(lambda: model.asked == 1)
        second = asyncio.ensure_future(server.chat(KNOWN, "direct", stream=True))
        await until(lambda: server.context.room.waiting)
        second.cancel()
        await until(lambda: not server.context.room.waiting)
        model.go.set()
        assert (await first).status_code == 200
        assert model.asked == 1


async def test_a_stream_without_news_says_that_it_lives() -> None:
    model = Slow()
    async with served(model, ("direct",), heartbeat=0.02) as server:
        body = {"model": "direct", "messages": user(KNOWN), "stream": True}
        async with server.http.stream("POST", "/v1/chat/completions", json=body) as stream:
            text = ""
            async for piece in stream.aiter_text():
                text += piece
                if text.count(": alive") >= 2:
                    model.go.set()
        assert text.endswith("data: [DONE]\n\n")


async def test_told_to_stop_streams_finish_and_new_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, drain = Slow(), 40_000.0
    loop = asyncio.get_running_loop()
    later, passed = loop.call_later, []

    def call_later(delay: float, callback: Any, *given: Any, **more: Any) -> Any:
        return passed.append((callback, given)) if delay == drain else later(delay, callback, *given, **more)

    monkeypatch.setattr(loop, "call_later", call_later)
    async with served(model, ("direct",), drain=drain) as server:
        body = {"model": "direct", "messages": user(KNOWN), "stream": True}
        async with server.http.stream("POST", "/v1/chat/completions", json=body) as stream:
            await until(lambda: model.asked == 1)
            server.server.handle_exit(15, None)
            assert (await server.http.get("/readyz")).status_code == 503
            assert (await server.http.get("/healthz")).status_code == 200
            refused = await server.chat(KNOWN, "direct")
            assert (refused.status_code, error_of(refused)["code"]) == (503, "shutting_down")
            assert not server.server.should_exit
            ((callback, given),) = passed
            callback(*given)
            assert server.server.should_exit
            await until(lambda: not any(one.is_serving() for one in server.server.servers))
            model.go.set()
            text = "".join([piece async for piece in stream.aiter_text()])
        assert "Ada Bram" in text
        assert text.endswith("data: [DONE]\n\n")
        with pytest.raises(httpx2.TransportError):
            await httpx2.AsyncClient().get(f"{server.url}/healthz")
