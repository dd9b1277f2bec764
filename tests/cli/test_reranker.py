"""``gnothi train reranker``: what it refuses, its pairs (from a scripted model), and a cross-encoder trained on the spot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.testing.model import Scripted
from tests.command_line import Json, Run
from tests.messages import complained
from tests.retrieval.cross_encoders import classifier

COMMAND = ("train", "reranker", "lab-train:two_hop_choice", "--limit", "20")


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments in (
        ("lab:two_hop_choice",),
        ("lab-train:choice", "--set", "epoch=3"),
        ("lab-train:choice", "--set", "pairs.cap=0"),
        ("lab-train:two_hop",),
        ("lab-train:choice", "--model", "some/model"),
    ):
        complained(gnothi("train", "reranker", *arguments, "--out", str(out)))
    assert not out.exists()


@pytest.mark.usefixtures("scripted")
def test_what_is_not_there(gnothi: Run, tmp_path: Path) -> None:
    code, _, err = gnothi(*COMMAND, "--graph", str(tmp_path / "none"), "--out", str(tmp_path / "out"))
    assert code == 3, err
    complained(gnothi(*COMMAND, "--base", "./none", "--out", str(tmp_path / "other")), 3)


def test_pairs_only(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    arguments = (*COMMAND, "--collect-only", "--out", str(tmp_path / "out"))
    code, said, err = gnothi(*arguments)
    assert (code, err) == (0, "")
    assert "questions   20; " in said
    asked = len(scripted.prompts)
    lines = [json.loads(line) for line in (tmp_path / "out" / "pairs" / "pairs.jsonl").read_text().splitlines()]
    assert len(lines) == 20
    usable = sum(bool(line["positive"]) for line in lines)
    assert gnothi_json(*arguments)["usable"] == usable > 5
    assert len(scripted.prompts) == asked
    complained(gnothi(*arguments, "--set", "pairs.hops=1"))


@pytest.mark.usefixtures("scripted")
def test_a_reranker_from_an_encoder(gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    base = classifier(tmp_path / "base", architecture="BertModel")
    out = tmp_path / "out"
    arguments = (*COMMAND, "--base", base, "--out", str(out), "--set", "epochs=1", "--set", "limit=64")
    code, said, _ = gnothi(*arguments)
    assert code == 0
    for part in ("average precision", "best after", "use it with --set"):
        assert part in said
    assert gnothi_json(*arguments)["training"]["base"] == base
    assert (out / "modules.json").is_file()
    complained(gnothi(*arguments, "--set", "epochs=2"))
