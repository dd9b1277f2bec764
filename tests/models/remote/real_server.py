"""What is asked of servers that are not ours: KEQA and SeaKR on text, and two hundred questions without a lost row."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.types import Question

SPEC = "openai:smollm2"
TRIES = 3
REMOTE: dict[str, Any] = {"cache": "off", "timeout": 600.0, "concurrency": 4, "retries": 2}
PLACES = {"Orvel": "a lighthouse", "Salen": "a harbour", "Brisk": "a mill", "Tarn": "a bridge"}


@contextmanager
def running(command: Callable[[int], Sequence[str]], log: Path) -> Iterator[str]:
    """The address of the API that the command serves on a port, once it answers. These servers want to be told a port: where
    another program takes it before they do, they get another."""
    for _ in range(TRIES):
        port = _free_port()
        with log.open("w") as said, subprocess.Popen(command(port), stdout=said, stderr=said) as server:
            try:
                if _answers(f"http://127.0.0.1:{port}/v1/models", server, log):
                    yield f"http://127.0.0.1:{port}/v1"
                    return
            finally:
                server.terminate()
    raise AssertionError(f"no port was free for long enough: {log.read_text()}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _answers(address: str, server: subprocess.Popen[bytes], log: Path) -> bool:
    """Once it does. False where its port was taken."""
    for _ in range(3000):
        if server.poll() is not None:
            assert "address already in use" in log.read_text().lower(), log.read_text()
            return False
        try:
            urllib.request.urlopen(address, timeout=60).close()
        except OSError:
            time.sleep(0.2)
        else:
            return True
    raise AssertionError(f"the server does not answer: {log.read_text()}")


def questions(count: int) -> list[Question]:
    names = list(PLACES)
    return [
        Question(
            str(n), f"What is there in {names[n % len(names)]}, besides {n} bees?", answers=(PLACES[names[n % len(names)]],)
        )
        for n in range(count)
    ]


class RealServer:
    """The fixture ``url`` is the address of one that serves SmolLM2 by the name in SPEC. ``many`` questions come in a row."""

    many = 200

    @pytest.fixture
    def index(self, tmp_path: Path) -> Path:
        folder = tmp_path / "documents"
        folder.mkdir()
        for name, what in PLACES.items():
            (folder / f"{name}.txt").write_text(f"{name} is a village with {what}. The people of {name} keep bees.")
        gnothi.build_index(folder, folder / "index")
        return folder / "index"

    @pytest.mark.parametrize(
        ("method", "given"),
        [
            ("keqa", {"max_tokens": 48}),
            ("seakr", {"signal": "consistency", "max_tokens": 48}),
            *(
                pytest.param("seakr", {"signal": name, "max_tokens": 48}, marks=pytest.mark.slow)
                for name in ("perplexity", "ln_entropy")
            ),
        ],
    )
    def test_methods_on_text_answer(self, url: str, index: Path, method: str, given: dict[str, Any], tmp_path: Path) -> None:
        run = gnothi.evaluate(
            questions(2),
            method,
            tmp_path / "run",
            model=SPEC,
            index=index,
            settings=given,
            model_settings=REMOTE | {"base_url": url},
        )
        assert (len(run.rows), run.failures) == (2, 0)

    def test_no_row_of_many_is_lost(self, url: str, tmp_path: Path) -> None:
        run = gnothi.evaluate(
            questions(self.many),
            "direct",
            tmp_path / "run",
            model=SPEC,
            settings={"max_tokens": 8},
            model_settings=REMOTE | {"base_url": url},
        )
        assert run.failures == 0
        assert sorted(row.question_id for row in run.rows) == sorted(question.id for question in questions(self.many))
