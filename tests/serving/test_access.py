"""Who may come in, what a browser may do, and what the log says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from gnothi.errors import InvalidSetting
from gnothi.serving import keys, logs
from gnothi.serving.access import Access
from gnothi.serving.app import context_of
from gnothi.serving.context import json_object
from gnothi.serving.failures import Refusal
from gnothi.serving.service import Service
from gnothi.serving.settings import ServerSettings
from tests.command_line import KNOWN, Run, covered_fact
from tests.messages import refused
from tests.serving.served import Slow, served
from tests.serving.test_faults import SECRET


async def test_a_private_server_answers_under_this_machines_names_alone() -> None:
    async with served(methods=("direct",)) as server:
        for host, status in (("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 403), ("::", 403)):
            found = await server.http.get("/v1/models", headers={"host": host})
            assert found.status_code == status, host


async def test_pages_of_other_origins_may_not_ask_unless_listed() -> None:
    body = {"model": "direct", "messages": [{"role": "user", "content": KNOWN}]}
    path = "/v1/chat/completions"
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    async with served(methods=("direct",), origins=("https://chat.example",)) as server:
        for origin, status in ((server.url, 200), ("https://chat.example", 200), ("https://evil.example", 403), ("null", 403)):
            found = await server.http.post(path, json=body, headers={"origin": origin})
            assert found.status_code == status, origin
            allowed = found.headers.get("access-control-allow-origin")
            assert (allowed == origin) == (origin == "https://chat.example")
        asked = await server.http.options(path, headers={"origin": "https://chat.example", **preflight})
        assert asked.status_code == 200
        asked = await server.http.options(path, headers={"origin": "https://evil.example", **preflight})
        assert "access-control-allow-origin" not in asked.headers


async def test_a_browser_reads_an_error_of_a_listed_origin(tmp_path: Path) -> None:
    keys.add(tmp_path / "keys.json", "me")
    async with served(methods=("direct",), origins=("https://chat.example",), keys=tmp_path / "keys.json") as server:
        found = await server.http.get("/v1/models", headers={"origin": "https://chat.example"})
        assert found.status_code == 401
        assert found.headers["access-control-allow-origin"] == "https://chat.example"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_others_reach_it_with_a_key_or_where_somebody_said_so(host: str) -> None:
    with refused(InvalidSetting):
        ServerSettings(host=host).check_exposure()
    ServerSettings(host=host, anyone=True).check_exposure()
    ServerSettings(host=host, keys=Path("keys.json")).check_exposure()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_alone_needs_neither(host: str) -> None:
    ServerSettings(host=host).check_exposure()


@pytest.mark.parametrize("given", [{"port": 70000}, {"timeout": 0}, {"public_url": "example.org"}, {"slots": 0}])
def test_settings_out_of_range(given: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        ServerSettings(**given)  # type: ignore[arg-type]


async def _asked_everything(tmp_path: Path, **settings: Any) -> list[str]:
    """What must not be in a log: question, answer, key, the error's text, links."""
    secret = keys.add(tmp_path / "keys.json", "me")
    question = covered_fact()[2]
    async with served(keys=tmp_path / "keys.json", **settings) as server:
        server.http.headers["authorization"] = f"Bearer {secret}"
        found = (await server.chat(question)).json()
        await server.chat(question, stream=True)
        await server.chat(question, "no-such-model-zebra")
        link = found["gnothi"]["sources"][0]["url"]
        assert (await server.http.get(link)).status_code == 200
        await server.http.get("/v1/path-zebra", headers={"authorization": "Bearer gn-zebra"})
        await server.http.post("/v1/search", json={"query": question})
        await server.http.post("/v1/know", json={"question": question})
    model = Slow(RuntimeError(SECRET))
    model.go.set()
    async with served(model, ("direct",), **settings) as server:
        await server.chat(question, "direct")
        await server.chat(question, "direct", stream=True)
    return [question, found["gnothi"]["answer"], secret, SECRET, "zebra", link.partition("signature=")[2]]


async def test_no_question_answer_key_or_link_is_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = await _asked_everything(tmp_path)
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    assert len(lines) == 9
    for one in hidden:
        assert one not in err, one
    first = lines[0]
    assert (first["route"], first["status"], first["key"], first["setup"]) == ("/v1/chat/completions", 200, "me", "seakr")
    assert first["retrieved"]
    assert [line["route"] for line in lines[3:5]] == ["/passages/{name}", "-"]
    assert first["prompt_tokens"] > 0
    assert lines[-2]["error"] == lines[-1]["error"] == "RuntimeError"
    assert any("served.py" in place for place in lines[-1]["at"])


async def test_content_is_in_the_log_where_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, answer, secret, error, _, signature = await _asked_everything(tmp_path, log_content=True)
    _, err = capsys.readouterr()
    for one in (question, answer, error):
        assert json.dumps(one)[1:-1] in err
    for one in (secret, signature):
        assert one not in err


def test_the_command_refuses_to_be_open(gnothi: Run, tmp_path: Path) -> None:
    code, _, err = gnothi("serve", "--host", "0.0.0.0")
    assert (code, "server.anyone=true" in err) == (2, True)
    code, _, err = gnothi("serve", "--set", "server.prot=1")
    assert (code, "Did you mean 'port'?" in err) == (2, True)
    code, _, err = gnothi("serve", "--keys", str(tmp_path / "none.json"))
    assert (code, "gnothi keys" in err) == (2, True)


SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")]}


@pytest.mark.parametrize("length", ["9" * 5_000, "9" * 21, "1000000"])
async def test_a_length_that_is_too_long_is_not_waited_for(length: str) -> None:
    scope = SCOPE | {"headers": [(b"content-length", length.encode())]}
    with refused(Refusal):
        await json_object(Request(scope), 1_000)


async def test_a_client_that_leaves_within_its_body_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    sent: list[Any] = []

    async def body(*_: object) -> Any:
        raise ClientDisconnect

    async def send(message: Any) -> None:
        sent.append(message)

    context = context_of(Service({}), ServerSettings())
    await Access(body, context)(dict(SCOPE), body, send)
    assert sent == []
    assert '"level": "error"' not in capsys.readouterr().err


def test_a_line_of_the_log_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    question = "\x1b[2J \x9b31m \u202etxt.exe \ud800 Łódź?"
    logs.install()
    logs.write("request", question=question)
    line = capsys.readouterr().err
    assert "Łódź?" in line
    assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & set(line)
    assert json.loads(line)["question"] == question
