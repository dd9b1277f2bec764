"""What is asked of servers that are not ours: KEQA and SeaKR on text, and two hundred questions without a lost row."""

from __future__ import annotations

import asyncio
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
from gnothi.errors import UsageError
from gnothi.models import RemoteSettings, load_model
from gnothi.models.switches import Thinking
from gnothi.types import Decoding, Generation, Prompt, Question, Task

SPEC = "openai:smollm2"
TRIES = 3
REMOTE: dict[str, Any] = {"cache": "off", "timeout": 600.0, "concurrency": 4, "retries": 2}
SHORT: dict[str, Any] = {"samples": 3, "max_tokens": 16, "max_steps": 2}
PLACES = {"Orvel": "a lighthouse", "Salen": "a harbour", "Brisk": "a mill", "Tarn": "a bridge"}

THINKING = """{%- set on = enable_thinking is defined and enable_thinking -%}
{%- if on -%}
{%- for asked, thought, said in [
    ("What is the capital of France?", "The user asks for the capital of France. That is Paris.", "Paris"),
    ("What colour is snow?", "Snow is made of ice crystals, which look white.", "white"),
    ("Say no.", "I am told to say no.", "No.")] -%}
<|im_start|>user
{{ asked }}<|im_end|>
<|im_start|>assistant
<think>
{{ thought }}
</think>

{{ said }}<|im_end|>
{% endfor -%}
{%- endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}{% if add_generation_prompt or not loop.last or message.role != 'assistant' %}<|im_end|>
{% endif %}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if on %}<think>
{% endif %}
{%- endif -%}
"""
"""A template that shows a model how to think and opens the block, where it is told to."""
COUNTRIES = "Italy Spain Japan Egypt Greece Norway Peru Kenya Cuba India Chile Iran Iraq Nepal Ghana Mali Chad Togo Fiji Malta"
THINGS = ("grass", "snow", "the sky", "a tomato", "coal")


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
            ("keqa", {"max_tokens": 16}),
            ("seakr", SHORT | {"signal": "consistency"}),
            *(pytest.param("seakr", SHORT | {"signal": name}, marks=pytest.mark.slow) for name in ("perplexity", "ln_entropy")),
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


async def check_thoughts(url: str, thinking: Thinking, thoughts: str = "") -> None:
    """25 easy questions under THINKING: each has an answer that is no thought, with the numbers of its own tokens or none, or
    an error that says that there is no answer. ``thoughts`` is a part of what is told of their place."""
    settings = RemoteSettings(base_url=url, thinking=thinking, thinking_tokens=96, **REMOTE)
    model = await asyncio.to_thread(load_model, SPEC, settings)
    asked = [f"What is the capital of {name}?" for name in COUNTRIES.split()] + [f"What colour is {one}?" for one in THINGS]
    task, decoding = Task("answer"), Decoding(max_tokens=24, stop=("\n",))
    replies = [model.generate(Prompt(task, question), decoding) for question in asked]
    found = await asyncio.gather(*replies, return_exceptions=True)
    told = model.metadata
    await model.aclose()
    failed = [one for one in found if isinstance(one, BaseException)]
    assert all(isinstance(one, UsageError) and "answer" in one.message for one in failed), failed
    answered = [one for one in found if isinstance(one, Generation)]
    assert len(answered) >= (len(asked) if thinking == "off" else 10)
    for one in answered:
        assert "think>" not in one.text
        assert "\n" not in one.text.strip()
        assert "".join(token.text for token in one.tokens) in ("", one.text)
    assert any(one.tokens for one in answered)
    assert any(one.thought_tokens for one in answered) == (thinking == "on")
    assert thoughts in told.get("thinking", "")
    assert told.get("thinking", "").startswith("on by" if thinking == "on" else "")
