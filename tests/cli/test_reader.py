"""``gnothi train reader``: what it refuses, and its halves: prompts (scripted), and a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.testing.model import Scripted
from tests.command_line import Json, Run
from tests.messages import complained

COMMAND = ("train", "reader", "lab-train:choice")


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answers": []}\n')
    for arguments in (
        ("lab:choice",),
        ("lab-train", "--set", "lamda=3"),
        ("lab-train", "--set", "validation=2"),
        ("lab-train", "--set", "rows=3"),
        ("lab-train", "--method", "seakr"),
        ("lab-train", "--method", "ragg"),
        ("lab-train", "--set", "reason=true"),
        ("lab-train", "--set", "choice_score=label"),
        ("lab-train", "--model", "openai:gpt"),
        (str(tmp_path / "questions.jsonl"),),
    ):
        complained(gnothi("train", "reader", *arguments, "--out", str(out)))
    assert not out.exists()


def test_prompts_only(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    arguments = (*COMMAND, "--limit", "12", "--collect-only", "--set", "k=2", "--out", str(tmp_path / "out"))
    code, said, err = gnothi(*arguments)
    assert (code, err) == (0, "")
    assert "questions  12" in said
    assert "passages each, by rag" in said
    assert not scripted.prompts  # rag needs no model to find its passages
    lines = [json.loads(line) for line in (tmp_path / "out" / "prompts" / "prompts.jsonl").read_text().splitlines()]
    assert {len(line["passages"]) for line in lines} <= {1, 2}
    assert {len(line["choices"]) for line in lines} == {4}
    assert gnothi_json(*arguments)["questions"] == 12
    complained(gnothi(*arguments, "--set", "k=3"))


@pytest.mark.slow
def test_a_model_that_the_next_command_takes(gnothi: Run, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    out = str(tmp_path / "out")
    settings = ("--set", "steps=2", "--set", "batch=4", "--set", "evaluate_every=1")
    code, said, _ = gnothi(*COMMAND, "--limit", "8", "--method", "direct", *settings, "--out", out)
    assert code == 0
    for part in ("right answers", "loss", "best after", "use it with"):
        assert part in said
    assert gnothi(*COMMAND, "--limit", "8", "--method", "direct", *settings, "--out", out)[:2] == (code, said)
    code, said, _ = gnothi("ask", "Who?", "--model", out, "--index", "lab", "--method", "direct")
    assert code == 0
