"""A model that thinks, from its folder to the rows of a run: what it thinks costs tokens and is no answer; its day stays."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import gnothi
from gnothi.models import templates
from gnothi.runs.folder import read_config
from gnothi.session import execute
from gnothi.types import Question
from tests.command_line import Run
from tests.models.thinking_templates import FAMILIES
from tests.models.tiny import build_tokenizer

QUESTIONS = [Question("1", "who is w1 ?", ("w2",)), Question("2", "where is w3 ?", ("w4",))]
DATED = "{{ strftime_now('%d . %m') }} " + FAMILIES["qwq"].template


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("thinker")
    tokenizer = build_tokenizer()
    tokenizer.add_tokens(["<think>", "</think>", "[user]", "[assistant]", "[end]"], special_tokens=True)
    tokenizer.chat_template = DATED
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = LlamaForCausalLM(
            LlamaConfig(**shape, vocab_size=len(tokenizer), max_position_embeddings=2048, initializer_range=0.2, eos_token_id=3)
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def asked(thinker: Path, out: Path, **settings: Any) -> Any:
    more = {"device": "cpu", "dtype": "float32", **settings}
    return gnothi.evaluate(QUESTIONS, ["direct"], out, model=str(thinker), model_settings=more)


def test_a_run_counts_thoughts_and_shows_them_apart(thinker: Path, tmp_path: Path) -> None:
    on = asked(thinker, tmp_path / "on", thinking="on", thinking_tokens=8)
    off = asked(thinker, tmp_path / "off")
    for row in on.rows:
        assert not row.failed
        assert 0 < row.cost["thought_tokens"] < row.cost["generated_tokens"]
        assert row.tally["thoughts_cut"] <= row.tally["replies"]
    assert all("thought_tokens" not in row.cost for row in off.rows)
    events = [
        event for line in (tmp_path / "on" / "events.jsonl").read_text().splitlines() for event in json.loads(line)["events"]
    ]
    calls = [event for event in events if event["event"] == "model_call"]
    assert all(len(call["thoughts"]) == len(call["texts"]) for call in calls)
    assert {call["thought_tokens"] for call in calls} <= set(range(1, 9))
    assert read_config(tmp_path / "on")["model.settings.thinking"] == "on"


class _Clock(date):
    now = date(2026, 2, 3)

    @classmethod
    def today(cls) -> date:  # type: ignore[override]
        return cls.now


def test_a_run_that_goes_on_keeps_its_day(thinker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "date", _Clock)
    days: list[str] = []
    plain = templates.Template.__init__

    def noted(self: Any, *given: Any, **named: Any) -> None:
        plain(self, *given, **named)
        days.append(self.day)

    monkeypatch.setattr(templates.Template, "__init__", noted)
    asked(thinker, tmp_path / "run")
    assert read_config(tmp_path / "run")["fingerprints.model.date"] == "2026-02-03"
    rows = tmp_path / "run" / "rows.jsonl"
    rows.write_text(rows.read_text().splitlines(keepends=True)[0])
    monkeypatch.setattr(_Clock, "now", date(2026, 2, 4))
    assert len(asked(thinker, tmp_path / "run").rows) == 2
    asked(thinker, tmp_path / "other")
    asked(thinker, tmp_path / "given", date="2001-01-01")
    assert days == ["2026-02-03", "2026-02-03", "2026-02-04", "2001-01-01"]
    assert read_config(tmp_path / "run")["fingerprints.model.date"] == "2026-02-03"


def test_what_is_thought_is_shown_as_such(thinker: Path, gnothi_run: Run) -> None:
    given = ("--model", str(thinker), "--method", "direct", "--set", "model.device=cpu", "--set", "model.thinking_tokens=8")
    code, out, err = gnothi_run("ask", "who is w1 ?", *given, "--set", "model.thinking=on")
    assert code == 0, err
    assert " thought " in out + err
    assert "of them thought" in out + err
    code, out, err = gnothi_run("ask", "who is w1 ?", *given)
    assert code == 0, err
    assert "thought" not in out + err
