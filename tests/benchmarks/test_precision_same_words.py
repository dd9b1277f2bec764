"""U of the same sampled answers, read in both precisions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import precision_same_words as same
from tests.models.tiny import build_model, build_tokenizer


def measured(shift: float) -> list[dict[str, object]]:
    """Ten answers, the first five right and surer; in the second precision the first one's U is ``shift`` higher."""
    u = [n / 10 for n in range(10)]
    other = [u[0] + shift, *u[1:]]
    return [
        {"id": str(n), "right": float(n < 5), "float32": [u[n]] * len(same.PLACES), "bfloat16": [other[n]] * len(same.PLACES)}
        for n in range(10)
    ]


@pytest.mark.parametrize(("shift", "cells"), [(0.0, ["1.0000", "1.0000", "+0.0000"]), (9.0, ["1.0000", "0.8000", "-0.2000"])])
def test_what_moves_is_counted(shift: float, cells: list[str]) -> None:
    told = same.page(measured(shift))
    assert told[0] == "10 questions, 5 answered rightly."
    assert [cell.strip() for cell in told[-1].split("|")][2:5] == cells


def test_both_precisions_read_the_words_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build_model("llama").save_pretrained(tmp_path / "model")
    build_tokenizer().save_pretrained(tmp_path / "model")
    asked = [{"question": f"Who built bridge {n}?", "answers": ["Ann"]} for n in range(3)]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked), "utf-8")
    words = ["same", "--questions", str(tmp_path / "asked.jsonl"), "--model", str(tmp_path / "model"), "--out", str(tmp_path)]
    for limit, rows in (("2", 2), ("3", 3)):  # goes on where it stopped
        monkeypatch.setattr(sys, "argv", [*words, "--limit", limit])
        assert same.main() == 0
        lines = [json.loads(line) for line in (tmp_path / "measured.jsonl").read_text("utf-8").splitlines()]
        assert len({line["id"] for line in lines}) == len(lines) == rows
    assert capsys.readouterr().out.endswith("3 questions, 0 answered rightly. An AUROC needs right and wrong ones.\n")
    for line in lines:
        for one, other in zip(line["float32"], line["bfloat16"], strict=True):
            assert one != other
            assert one == pytest.approx(other, abs=0.5)
