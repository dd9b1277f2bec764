"""``gnothi.serve``: what the command serves, from Python, with objects of one's own."""

from __future__ import annotations

import json
import os
import signal
import threading
import urllib.request
from typing import Any

import pytest

import gnothi
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.session.watch import Watch
from tests.messages import refused
from tests.patience import PATIENCE

pytest.importorskip("uvicorn")
ASKED = {"model": "gnothi/direct", "messages": [{"role": "user", "content": "Who wrote Emma?"}]}


class Asking(Watch):
    """Asks as soon as the address is told, then ends the server as a service manager does."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.told: list[str] = []

    def info(self, text: str) -> None:
        self.told.append(text)
        if "/v1 answers as" in text:
            threading.Thread(target=self._ask, args=(text.partition("/v1")[0],)).start()

    def _ask(self, address: str) -> None:
        try:
            request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(ASKED).encode())
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                self.replies.append(json.load(reply)["choices"][0]["message"]["content"])
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_model_of_ones_own_answers() -> None:
    watch = Asking()
    gnothi.serve(["direct"], model=lambda _: "Jane Austen", port=0, watch=watch)
    assert watch.replies == ["Jane Austen"]
    assert "gnothi/direct" in watch.told[-1]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"prot": 0}, UnknownName),
        ({"host": "0.0.0.0"}, InvalidSetting),
        ({"methods": "nothing-such"}, UnknownName),
        ({"settings": {"seakr.nothing": 1}}, UnknownName),
    ],
)
def test_refused_before_anything_is_opened(given: dict[str, Any], error: type[Exception]) -> None:
    with refused(error):
        gnothi.serve(**given)


async def test_not_in_a_running_loop() -> None:
    with refused(gnothi.errors.UsageError):
        gnothi.serve()
