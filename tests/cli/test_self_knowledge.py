"""``gnothi train self-knowledge``: what it refuses, and its halves: sampled answers (scripted), and a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.testing.model import Scripted
from tests.command_line import Json, Run
from tests.messages import complained

COMMAND = ("train", "self-knowledge", "lab-train:one_hop")
QUICK = ("steps=2", "questions=2", "replies=2", "warm_start_steps=2", "warm_start_batch=4", "evaluate_every=2", "answers.n=2")


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answers": []}\n')
    for arguments, code in (
        (("lab:one_hop",), 2),
        (("lab-train", "--set", "lamda=3"), 2),
        (("lab-train", "--set", "mix=2"), 2),
        (("lab-train", "--set", "entropy=all"), 2),
        (("lab-train", "--set", "answers.metric=bleu"), 2),
        (("lab-train", "--model", "openai:gpt"), 2),
        (("lab-train", "--set", "vllm=0.3"), 3),
        ((str(tmp_path / "questions.jsonl"),), 2),
    ):
        complained(gnothi("train", "self-knowledge", *arguments, "--out", str(out)), code)
    assert not out.exists()


def test_answers_only(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    arguments = (*COMMAND, "--limit", "12", "--collect-only", "--out", str(tmp_path / "out"))
    code, said, err = gnothi(*arguments)
    assert (code, err) == (0, "")
    assert "questions  12" in said
    assert "known      " in said
    asked = len(scripted.prompts)
    answers = tmp_path / "out" / "answers"
    assert {path.name for path in answers.iterdir()} == {".lock", "answers.jsonl", "config.toml", "familiarity.png"}
    lines = [json.loads(line) for line in (answers / "answers.jsonl").read_text().splitlines()]
    assert [len(line["answers"]) for line in lines] == [10] * 12
    known = sum(line["acc_rate"] > 0.618 for line in lines)
    assert gnothi_json(*arguments) == {
        "questions": 12, "known": known, "always_right": known, "never_right": 12 - known,
    }  # fmt: skip
    assert len(scripted.prompts) == asked
    complained(gnothi(*arguments, "--set", "answers.n=3"))


@pytest.mark.slow
def test_a_model_that_the_next_command_takes(gnothi: Run, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    out = str(tmp_path / "out")
    settings = [part for setting in QUICK for part in ("--set", setting)]
    code, said, _ = gnothi(*COMMAND, "--limit", "12", *settings, "--out", out)
    assert code == 0
    for part in ("AUROC", "hallucination", "best after", "use it with"):
        assert part in said
    assert gnothi(*COMMAND, "--limit", "12", *settings, "--out", out)[:2] == (code, said)
    complained(gnothi(*COMMAND, "--limit", "12", *settings, "--out", out, "--set", "steps=3"))
    code, said, _ = gnothi("ask", "Who?", "--model", out, "--index", "lab", "--method", "direct")
    assert code == 0
