"""``gnothi train reader``: what it refuses, and its halves: prompts (scripted), and a trained model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gnothi.testing.model import Scripted

Run = Callable[..., tuple[int, str, str]]
COMMAND = ("train", "reader", "lab-train:choice")


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(gnothi: Run, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        code, out, err = gnothi("train", "reader", *arguments, "--out", str(tmp_path / "out"))
        assert (code, out) == (2, "")
        assert not (tmp_path / "out").exists()
        return err

    assert "Use 'lab-train:choice'" in refused("lab:choice")
    assert "got 'lamda'" in refused("lab-train", "--set", "lamda=3")
    assert "setting 'validation': got 2.0" in refused("lab-train", "--set", "validation=2")
    assert "expected a divisor of batch" in refused("lab-train", "--set", "rows=3")
    assert "no one prompt to learn from" in refused("lab-train", "--method", "seakr")
    assert "unknown method" in refused("lab-train", "--method", "ragg")
    assert "no chains of thought" in refused("lab-train", "--set", "reason=true")
    assert "a reader learns to say the choice itself" in refused("lab-train", "--set", "choice_score=label")
    assert "by its weights" in refused("lab-train", "--model", "openai:gpt")
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answers": []}\n')
    assert "question '1' has no gold answer" in refused(str(tmp_path / "questions.jsonl"))


def test_prompts_only(scripted: Scripted, gnothi: Run, gnothi_json: Callable[..., Any], tmp_path: Path) -> None:
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
    code, _, err = gnothi(*arguments, "--set", "k=3")
    assert (code, "method.rag.k = 2, got 3" in err) == (2, True)


@pytest.mark.slow
def test_a_model_that_the_next_command_takes(gnothi: Run, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    out = str(tmp_path / "out")
    settings = ("--set", "steps=2", "--set", "batch=4", "--set", "evaluate_every=1")
    code, said, _ = gnothi(*COMMAND, "--limit", "20", "--method", "direct", *settings, "--out", out)
    assert code == 0
    for part in ("right answers", "loss", "best after", "use it with"):
        assert part in said
    assert gnothi(*COMMAND, "--limit", "20", "--method", "direct", *settings, "--out", out)[:2] == (code, said)
    code, said, _ = gnothi("ask", "Who?", "--model", out, "--index", "lab", "--method", "direct")
    assert code == 0
