"""What is asked of servers that are not ours: KEQA and SeaKR on text, and two hundred questions without a lost row."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.types import Question

SPEC = "openai:smollm2"
REMOTE: dict[str, Any] = {"cache": "off", "timeout": 600.0, "concurrency": 4, "retries": 2}
PLACES = {"Orvel": "a lighthouse", "Salen": "a harbour", "Brisk": "a mill", "Tarn": "a bridge"}


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[str]:
    """The address of the API that the command serves on that port, once it answers."""
    with log.open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/v1/models", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(3000):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        else:
            return
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
    """A fixture ``url`` gives the address of one that serves SmolLM2 by the name in SPEC."""

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
            *(("seakr", {"signal": name, "max_tokens": 48}) for name in ("consistency", "perplexity", "ln_entropy")),
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

    def test_no_row_of_two_hundred_is_lost(self, url: str, tmp_path: Path) -> None:
        run = gnothi.evaluate(
            questions(200),
            "direct",
            tmp_path / "run",
            model=SPEC,
            settings={"max_tokens": 8},
            model_settings=REMOTE | {"base_url": url},
        )
        assert run.failures == 0
        assert sorted(row.question_id for row in run.rows) == sorted(question.id for question in questions(200))
