"""A request's body: how long it may say it is, and a client that leaves within it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from gnothi.serving import logs
from gnothi.serving.access import Access
from gnothi.serving.app import context_of
from gnothi.serving.bodies import json_object
from gnothi.serving.failures import Refusal
from gnothi.serving.service import Service
from gnothi.serving.settings import ServerSettings

SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")]}


@pytest.mark.parametrize("length", ["9" * 5_000, "9" * 21, "1000000"])
async def test_a_length_that_is_too_long_is_not_waited_for(length: str) -> None:
    scope = SCOPE | {"headers": [(b"content-length", length.encode())]}
    with pytest.raises(Refusal, match="too long"):
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
    logs.tell("request", question=question)
    line = capsys.readouterr().err
    assert "Łódź?" in line
    assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & set(line)
    assert json.loads(line)["question"] == question
