"""``gnothi train`` with a scripted model in place of the laboratory's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.calibration import learned
from gnothi.filtering.reference import HEADER, LABELS, open_reference
from gnothi.lab.questions import facts_needed
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, Json, Run, covered_fact
from tests.messages import complained
from tests.stopping import Stopping

COMMAND = ("train", "utility-reference", "lab-train", "--limit", "12")


def test_a_reference_is_made_and_not_made_twice(scripted: Scripted, gnothi: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "reference")
    code, said, err = gnothi(*COMMAND, "--out", out)
    assert code == 0
    assert max(map(len, said.splitlines()[:-1])) <= 80
    for part in ("questions  12", "passages   60: ", "12 searches, ", "prompt tokens", "encoder    lexical"):
        assert part in said
    asked = len(scripted.prompts)
    header = (tmp_path / "reference" / HEADER).read_text()
    assert gnothi(*COMMAND, "--out", out) == (code, said, err)
    assert len(scripted.prompts) == asked
    assert (tmp_path / "reference" / HEADER).read_text() == header
    assert len(open_reference(out).labelled) == json.loads(header)["helpful"] + json.loads(header)["harmful"]


@pytest.mark.usefixtures("scripted")
def test_json_is_the_header(gnothi: Run, tmp_path: Path) -> None:
    code, said, _ = gnothi(*COMMAND, "--out", str(tmp_path), "--json", "--set", "k=2", "--set", "form=alone")
    assert code == 0
    header = json.loads(said)
    assert header == json.loads((tmp_path / HEADER).read_text())
    assert (header["passages"], header["model_calls"], header["dataset"]) == (24, 36, "lab-train")
    assert {json.loads(line)["form"] for line in (tmp_path / LABELS).read_text().splitlines()} == {"alone"}


@pytest.mark.parametrize(
    "arguments",
    [
        "reader lab-train --encoder x",
        "probe lab-train --index lab",
        "probe lab-train --collect-only",
        "complexity run --limit 3",
        "complexity run --set stepps=rag",
        "knowledge-reference run --set labels=better,right",
        "complexity one other",
        *(
            f"{kind} run --set {setting}"
            for kind in ("complexity", "knowledge-reference")
            for setting in ("model.dtype=float64", "index.reranker=lab", "rag.k=3", "signal.samples=3", "server.port=80")
        ),
        "probe lab-train --set signal.samples=3",
        "probe lab-train --set signal=perplexity --set signal.samples=3",
        "probe",
    ],
)
def test_what_a_kind_of_training_does_not_take_is_refused(gnothi: Run, tmp_path: Path, arguments: str) -> None:
    complained(gnothi("train", *arguments.split(), "--out", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("scripted")
def test_several_data_sets_make_one_reference(gnothi: Run, tmp_path: Path) -> None:
    both = ("lab-train:one_hop", "lab-train:two_hop")
    code, said, _ = gnothi("train", "utility-reference", *both, "--limit", "2", "--out", str(tmp_path), "--json")
    header = json.loads(said)
    assert (code, header["questions"], header["dataset"]) == (0, 4, " + ".join(both))


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answers": []}\n')
    for arguments, code in (
        (("lab:two_hop",), 2),
        (("lab-train", "lab:two_hop"), 2),
        (("lab-train", "--set", "kk=3"), 2),
        (("lab-train", "--set", "k=0"), 2),
        (("lab-train", "--encoder", "/absent"), 3),
        (("lab-train", "--model", "some/model"), 2),
        ((str(tmp_path / "questions.jsonl"),), 2),
    ):
        complained(gnothi("train", "utility-reference", *arguments, "--out", str(out)), code)
    assert not out.exists()


@pytest.mark.usefixtures("scripted")
def test_other_settings_are_refused(gnothi: Run, tmp_path: Path) -> None:
    assert gnothi(*COMMAND, "--out", str(tmp_path))[0] == 0
    complained(gnothi(*COMMAND, "--out", str(tmp_path), "--set", "k=3"))


def test_failed_questions_give_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, scripted: Scripted, gnothi: Run, tmp_path: Path
) -> None:
    def fails(_: Any, __: Any) -> Any:
        raise RuntimeError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(scripted, "generate", fails)
        code, out, err = gnothi(*COMMAND, "--out", str(tmp_path))
    assert code == 1
    assert "questions  12, 12 failed" in out
    assert "no passage was helpful or harmful" in err
    assert gnothi(*COMMAND, "--out", str(tmp_path))[0] == 0


def test_lab_train_asks_for_no_fact_of_the_test_questions() -> None:
    from gnothi.session.data import load_questions

    for kind in ("", ":one_hop", ":two_hop"):
        training = load_questions(f"lab-train{kind}", limit=600)
        assert not facts_needed(training) & facts_needed(lab.questions(lab.world()))


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_killed_again_and_again(gnothi_json: Json, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    arguments = ("train", "utility-reference", "lab-train", "--limit", "20", "--concurrency", "3")

    def kept() -> int:
        return (out / LABELS).read_bytes().count(b"\n") if (out / LABELS).exists() else 0

    for wanted in (1, 12):
        process = Stopping("tests.cli.stopping_gnothi", *arguments, "--out", str(out))
        process.go_until(lambda: kept() >= wanted)  # noqa: B023 - called before the next
        process.kill(0.01)
        assert wanted <= kept() <= wanted + 1
    assert not (out / HEADER).exists()
    resumed = gnothi_json(*arguments, "--out", str(out))
    undisturbed = gnothi_json(*arguments, "--out", str(tmp_path / "undisturbed"))
    assert resumed == undisturbed
    assert (out / LABELS).read_bytes() == (tmp_path / "undisturbed" / LABELS).read_bytes()


@pytest.mark.usefixtures("scripted")
def test_a_knowledge_reference_is_made_of_a_run_and_used(gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    run, known = str(tmp_path / "run"), str(tmp_path / "known")
    complained(gnothi("train", "knowledge-reference", run, "--out", known))
    questions = tmp_path / "questions.jsonl"
    _, true, asked = covered_fact()
    third = {"question": f"{asked} Really?", "answers": [true]}
    lines = [{"question": KNOWN, "answers": ["Ada Bram"]}, {"question": asked, "answers": [true]}, third]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert gnothi("eval", str(questions), "--model", "lab", "--method", "direct,rag", "--out", run)[0] == 0
    rows = tmp_path / "run" / "rows.jsonl"
    whole = rows.read_text("utf-8").splitlines(keepends=True)
    rows.write_text("".join(line for line in whole if "Really?" not in line), "utf-8")
    code, said, err = gnothi("train", "knowledge-reference", run, "--out", known, "--set", "labels=right")
    assert code == 0
    assert "1 known, 1 unknown, 0 left out" in said
    assert "is unfinished: learnt from 4 of 6 answers" in " ".join(err.split())
    counts = gnothi_json("train", "knowledge-reference", run, "--out", known, "--set", "labels=right")
    assert counts == {"known": 1, "unknown": 1, "undecided": 0, "overlooked": 0}
    settings = ("--method", "skr", "--set", f"reference={known}", "--set", "neighbours=1")
    code, said, _ = gnothi("ask", asked, *settings)
    assert code == 0
    assert "neighbours 1.00 > 0.00: unsure, retrieve" in said
    assert true in said
    assert "holds no knowledge reference" in gnothi("ask", asked, "--method", "skr", "--set", f"reference={tmp_path}")[2]


@pytest.mark.usefixtures("scripted")
def test_a_complexity_classifier_is_made_of_a_run_and_used(gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    run, learnt = str(tmp_path / "run"), str(tmp_path / "learnt")
    questions = tmp_path / "questions.jsonl"
    _, true, asked = covered_fact()
    lines = [{"question": KNOWN, "answers": ["Ada Bram"]}, {"question": asked, "answers": [true]}] * 2
    questions.write_text("".join(json.dumps({"id": str(number)} | line) + "\n" for number, line in enumerate(lines)))
    assert gnothi("eval", str(questions), "--model", "lab", "--method", "direct,rag", "--out", run)[0] == 0
    methods = ("--set", "memory=direct", "--set", "steps=rag")
    complained(gnothi("train", "complexity", run, "--out", learnt))
    code, said, _ = gnothi("train", "complexity", run, "--out", learnt, *methods)
    assert code == 0
    assert "2 answered from memory, 2 took one retrieval, 0 took steps" in said
    found = gnothi_json("train", "complexity", run, "--out", learnt, *methods)
    assert found["labels"] == {"none": 2, "once": 2, "steps": 0}
    code, said, _ = gnothi("ask", asked, "--method", "adaptive_rag", "--set", f"classifier={learnt}")
    assert code == 0
    assert "strategy once" in said
    assert true in said
    assert "holds no complexity classifier" in gnothi("ask", asked, "--method", "adaptive_rag", "--set", f"classifier={run}")[2]


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("command", ["train complexity", "train knowledge-reference", "calibrate --learn"])
def test_a_run_over_test_questions_teaches_nothing(gnothi: Run, tmp_path: Path, command: str) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    assert gnothi("eval", "lab:one_hop", "--method", "direct,rag", "--limit", "2", "--out", str(run))[0] == 0
    complained(gnothi(*command.split(), str(run), "--out", str(out)))
    assert not out.exists()


@pytest.mark.usefixtures("scripted")
def test_a_gate_is_learnt_of_a_run_and_used(
    gnothi: Run, gnothi_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, "REPEATS", 1)
    monkeypatch.setattr("gnothi.stats.benefit.RIDGES", (30.0,))
    run, learnt = str(tmp_path / "run"), str(tmp_path / "gate")
    questions = tmp_path / "questions.jsonl"
    _, true, asked = covered_fact()
    lines = [{"question": KNOWN, "answers": ["Ada Bram"]}, {"question": asked, "answers": [true]}] * 20
    questions.write_text("".join(json.dumps({"id": str(number)} | line) + "\n" for number, line in enumerate(lines)))
    assert gnothi("eval", str(questions), "--model", "lab", "--method", "direct,cascade", "--out", run)[0] == 0
    code, said, err = gnothi("calibrate", "--learn", run, "--search-cost", "0.1", "--out", learnt)
    assert (code, err) == (0, "")
    assert "40 questions, em; learnt on the other questions" in " ".join(said.split())
    assert f"gate: {learnt}" in said
    (found,) = gnothi_json("calibrate", "--learn", run, "--search-cost", "0.1", "--out", learnt)["other"]
    assert found["prices"] == {"search": 0.1, "wrong": 0.0, "tokens": 0.0}
    assert [step["stage"] for step in found["steps"]] == ["draft", "reading"]
    assert {weight["stage"] for weight in found["steps"][-1]["weights"]} == {"question", "draft", "search", "reading"}
    assert found["ways"]["after the search"]["tokens"] > found["ways"]["before the search"]["tokens"] > 0
    assert found["ways"]["cascade"]["accuracy"] == 1.0
    assert len(json.loads((tmp_path / "gate" / "gate.json").read_text())["scores"]) == 40
    code, said, _ = gnothi("ask", asked, "--method", "cascade", "--set", f"learned={learnt}")
    assert code == 0
    assert true in said
    assert "learned" in said
    assert "holds no learnt gate" in gnothi("ask", asked, "--method", "cascade", "--set", f"learned={run}")[2]
    complained(gnothi("ask", asked, "--model", "openai:other", "--method", "cascade", "--set", f"learned={learnt}"))
    gated = str(tmp_path / "gated")
    parts = ("--set", "compose.gate=learned", "--set", f"compose.learned={learnt}")
    settings = ("--method", "direct,rag,cascade,compose", "--set", f"cascade.learned={learnt}", *parts)
    assert gnothi("eval", str(questions), "--model", "lab", *settings, "--out", gated)[0] == 0
    (replayed,) = gnothi_json("calibrate", "--replay", gated)
    here, there = (replayed["signals"][f"{name}: learned"] for name in ("compose", "cascade"))
    assert here == there | {"method": "compose"}
    assert here["auroc"] == 1.0
    complained(gnothi("calibrate", "--learn", gated, "--out", learnt))
    complained(gnothi("calibrate", "--learn", run, "--target-error", "0.1", "--out", learnt))
    promised = gnothi_json("calibrate", "--learn", run, "--target-error", "0.9", "--epsilon", "0.5", "--out", learnt)
    assert promised["errors"]["target_error"] == 0.9
    assert json.loads((tmp_path / "gate" / "gate.json").read_text())["doubt"] == pytest.approx(promised["errors"]["threshold"])
