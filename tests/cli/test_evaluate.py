"""``gnothi eval`` and ``gnothi report`` with a scripted model in place of the laboratory's."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gnothi.runs import runner
from gnothi.runs.folder import read_config, read_rows
from gnothi.session import execute
from gnothi.testing.model import Scripted
from tests.cases import each
from tests.command_line import Json, Run
from tests.messages import complained
from tests.stopping import Stopping

THREE = ("--method", "direct,rag", "--method", "seakr", "--limit", "12")


@pytest.mark.usefixtures("scripted")
def test_json_is_one_object_per_method(gnothi_json: Json, tmp_path: Path) -> None:
    found = gnothi_json("eval", "lab:one_hop", *THREE, "--out", str(tmp_path / "run"))
    assert [method["method"] for method in found] == ["direct", "rag", "seakr"]
    for method in found:
        assert (method["dataset"], method["n"], method["failures"]) == ("lab:one_hop", 12, 0)
    direct, rag, seakr = found
    assert (direct["retrieval_rate"], rag["retrieval_rate"]) == (0, 1)
    assert (direct["gate_auroc"], rag["retrievals"]) == (None, 1)
    assert seakr["gate"]["decisions"] >= 12
    assert seakr["model_calls"] > direct["model_calls"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["methods"] == found


@pytest.mark.usefixtures("scripted")
def test_the_table_fits_80_columns(gnothi: Run, tmp_path: Path) -> None:
    code, out, err = gnothi("eval", "lab", *THREE, "--out", str(tmp_path / "run"))
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines() if not line.startswith("run: ")) <= 80
    for said in ("direct", "seakr", "never", "right decisions", "exact McNemar test", "gnothi report"):
        assert said in out


def test_the_same_command_again_asks_nothing(scripted: Scripted, gnothi_json: Json, tmp_path: Path) -> None:
    arguments = ("eval", "lab", *THREE, "--out", str(tmp_path / "run"))
    first = gnothi_json(*arguments)
    asked = len(scripted.prompts)
    assert gnothi_json(*arguments) == first
    assert len(scripted.prompts) == asked


@pytest.mark.usefixtures("scripted")
def test_a_gate_that_decides_nothing_is_reported_on_stderr_beside_json(gnothi: Run, tmp_path: Path) -> None:
    arguments = ("eval", "lab:one_hop", "--method", "seakr", "--limit", "24", "--set", "threshold=99")
    code, out, err = gnothi(*arguments, "--out", str(tmp_path / "run"), "--json")
    assert code == 0
    (method,) = json.loads(out)
    (warning,) = method["warnings"]
    early, last = err.splitlines()
    assert early.startswith("warning: seakr, after the first 20 questions: the gate (gram, threshold 99) retrieved in 0.0%")
    assert last == f"warning: seakr: {warning}"
    for said in ("(almost) never fires. The scores lie between", ", none above it.", "gnothi calibrate DATASET --method seakr"):
        assert said in warning
    assert "(almost) never fires" in " ".join(gnothi("report", str(tmp_path / "run"))[1].split())


@pytest.mark.usefixtures("scripted")
def test_other_settings_are_refused(gnothi: Run, tmp_path: Path) -> None:
    arguments = ("eval", "lab", "--method", "seakr", "--limit", "3", "--out", str(tmp_path / "run"))
    assert gnothi(*arguments, "--set", "threshold=-5")[0] == 0
    complained(gnothi(*arguments, "--set", "threshold=-4"))
    complained(gnothi(*arguments, "--set", "threshold=-5", "--seed", "3"))
    assert gnothi(*arguments, "--set", "threshold=-5", "--concurrency", "2")[0] == 0


@pytest.mark.usefixtures("scripted")
def test_the_config_is_fully_resolved(gnothi: Run, tmp_path: Path) -> None:
    gnothi("eval", "lab", "--method", "seakr,direct", "--limit", "2", "--out", str(tmp_path / "run"), "--set", "max_steps=3")
    config = read_config(tmp_path / "run")
    assert config["method.seakr.max_steps"] == 3
    assert config["method.seakr.rerank"] is True
    assert (config["dataset.name"], config["dataset.questions"], config["model.name"]) == ("lab", 2, "lab")
    assert any(key.startswith("method.direct.") for key in config)


@pytest.mark.usefixtures("scripted")
def test_a_file_of_questions(gnothi_json: Json, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"question": "Who wrote the known book?", "answer": ["Ada Bram"]}\n', encoding="utf-8")
    (found,) = gnothi_json("eval", str(file), "--method", "direct", "--out", str(tmp_path / "run"))
    assert (found["n"], found["em"], found["dataset"]) == (1, 1, str(file))


@pytest.mark.usefixtures("scripted")
def test_a_changed_file_is_noticed(gnothi: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    arguments = ("eval", str(file), "--method", "direct", "--out", str(tmp_path / "run"))
    for answer, expected in (("Ada Bram", 0), ("Someone else", 2)):
        file.write_text(json.dumps({"question": "Who wrote the known book?", "answer": answer}) + "\n", encoding="utf-8")
        code, _, err = gnothi(*arguments)
        assert code == expected
    assert f"the questions of {file} have changed since" in err


def test_failed_questions_give_exit_code_1_and_are_tried_again(
    scripted: Scripted, gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("eval", "lab", "--method", "direct", "--limit", "6", "--out", str(tmp_path / "run"))
    with monkeypatch.context() as broken:
        broken.setattr(scripted, "_script", {})
        code, out, _ = gnothi(*arguments)
        assert code == 1
        assert "6 of 6 questions failed" in out
        code, out, err = gnothi(*arguments, "--max-failures", "2", "--concurrency", "1", "--json")
        assert (code, out) == (1, "")
        assert "stopped: 3 questions failed" in err
    code, out, _ = gnothi(*arguments)
    assert code == 0
    assert "questions failed" not in out


@pytest.mark.parametrize(
    "arguments",
    [
        "lob",
        "absent.jsonl",
        "lab --method sekr",
        "lab --method ,",
        "lab --set treshold=3",
        "lab --set max_steps=many",
        "lab --limit 0",
        "lab --format jsonl",
    ],
)
def test_what_cannot_be_is_said_before_anything_is_made(
    scripted: Scripted, gnothi: Run, tmp_path: Path, arguments: str
) -> None:
    complained(gnothi("eval", *arguments.split(), "--out", str(tmp_path / "run")))
    assert not (tmp_path / "run").exists()
    assert scripted.prompts == []


OFFICIAL: list[tuple[str, set[str]]] = [
    ("commonsenseqa.dev.jsonl", {"choice"}),
    ("openbookqa.test.jsonl", {"choice"}),
    ("medqa.test.jsonl", {"choice"}),
    ("selfaware.json", {"answerable"}),
    ("truthfulqa.csv", {"adversarial", "non_adversarial"}),
]


def official_file_evaluated(gnothi: Run, data: Path, out: Path, name: str, kinds: set[str]) -> None:
    run = out / name
    code, told, _ = gnothi("eval", str(data / name), "--method", "direct", "--limit", "20", "--out", str(run))
    assert code == 0
    flat = " ".join(told.split())
    if kinds == {"choice"}:
        assert "warning: direct: 20 of 20 answers name none of the choices" in flat
    elif name == "selfaware.json":
        assert "direct: 20 answerable questions: accuracy .000" in flat
    else:
        assert "closer to a correct than to any incorrect answer .000" in flat
    assert {row.kind for row in read_rows(run)} <= kinds


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(("name", "kinds"), OFFICIAL)
def test_official_forms(gnothi: Run, tmp_path: Path, made_data: Path, name: str, kinds: set[str]) -> None:
    official_file_evaluated(gnothi, made_data, tmp_path, name, kinds)


@pytest.mark.usefixtures("scripted")
def test_official_files(gnothi: Run, tmp_path: Path, shared_data: Path) -> None:
    each(official_file_evaluated, [(gnothi, shared_data, tmp_path, name, kinds) for name, kinds in OFFICIAL])


def test_choices_are_shown_and_labels_are_answers(gnothi_json: Json, scripted: Scripted, tmp_path: Path) -> None:
    file = tmp_path / "csqa.jsonl"
    choices = {"label": ["A", "B", "C"], "text": ["bank", "nobody", "mall"]}
    line = {"id": "1", "question": "Where?", "question_concept": "door", "choices": choices, "answerKey": "B"}
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (direct,) = gnothi_json("eval", str(file), "--method", "direct", "--out", str(tmp_path / "run"))
    assert (direct["em"], direct["accuracy"], direct["warnings"]) == (1, 1, [])  # the script answers "nobody"
    assert scripted.prompts[0].choices == ("bank", "nobody", "mall")


@pytest.mark.usefixtures("scripted")
def test_report(gnothi: Run, tmp_path: Path) -> None:
    gnothi("eval", "lab", *THREE, "--out", str(tmp_path / "run"))
    code, out, err = gnothi("report", str(tmp_path / "run"), "--html", str(tmp_path / "pages" / "page.html"))
    assert (code, err) == (0, "")
    assert "seakr" in out
    assert "<svg" in (tmp_path / "pages" / "page.html").read_text(encoding="utf-8")
    code, out, _ = gnothi("report", str(tmp_path / "run"), "--json")
    (found,) = json.loads(out)
    assert [method["method"] for method in found["methods"]] == ["direct", "rag", "seakr"]
    assert found["gates"]["names"] == {"never": "direct", "always": "rag"}
    complained(gnothi("report", str(tmp_path)))


@pytest.mark.usefixtures("scripted")
def test_report_as_tables_with_prices(gnothi: Run, tmp_path: Path) -> None:
    run, tables = str(tmp_path / "run"), tmp_path / "csv"
    gnothi("eval", "lab", *THREE, "--out", run)
    code, out, err = gnothi("report", run, "--csv", str(tables), "--prices", "prompt=0.15,retrieval=0.01,currency=EUR")
    assert (code, err) == (0, "")
    assert f"files in {tables}" in " ".join(out.split())
    assert "for each right answer" in " ".join(out.split())
    assert "EUR" in out
    assert len((tables / "methods.csv").read_text(encoding="utf-8").splitlines()) == 4
    for arguments in (("--prices", "prompts=1"), ("--prices", str(tmp_path / "none.toml")), ("--never", "dirct")):
        complained(gnothi("report", run, *arguments))


@pytest.mark.usefixtures("scripted")
def test_an_interrupted_run_says_so_and_goes_on(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["eval", "lab", "--method", "direct", "--limit", "20", "--concurrency", "2", "--out", str(out)]
    process = Stopping("tests.cli.stopping_gnothi", *arguments)
    process.go_until(lambda: out.exists() and len(read_rows(out)) >= 3)
    process.interrupt(signal.SIGTERM)
    _, said = process.ended()
    kept = len(read_rows(out))
    assert process.returncode == 128 + signal.SIGTERM, said
    assert process.said == ""
    assert f"interrupted. {kept} of 20 answers are kept in {out}. Run the same command again to resume." in said
    assert "Traceback" not in said
    assert 3 <= kept < 20
    _, shown, _ = gnothi("report", str(out))
    assert "unfinished" in shown
    assert gnothi(*arguments)[0] == 0
    assert gnothi("eval", "lab", "--method", "direct", "--limit", "20", "--out", str(tmp_path / "undisturbed"))[0] == 0
    undisturbed = [row.comparable() for row in read_rows(tmp_path / "undisturbed")]
    assert [row.comparable() for row in read_rows(out)] == undisturbed


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_killed_six_times_and_run_again_to_the_end(gnothi_json: Json, tmp_path: Path) -> None:
    """The whole command, whatever it is doing when SIGKILL comes; some kills meet an import or an index."""
    out, chance = tmp_path / "run", random.Random(3)
    arguments = ["eval", "lab", *THREE, "--limit", "20", "--concurrency", "3"]
    kept = [0]
    for lines in (0, 2, 12, 16, 0, 20):  # of 180, and two more steps each time
        process = Stopping("tests.cli.stopping_gnothi", *arguments, "--out", str(out))
        assert process.go(lines)
        process.kill(chance.choice((0.0, 0.01, 0.1)))
        kept.append(len(read_rows(out)) if out.exists() else 0)
    assert kept == sorted(kept)
    assert 0 < kept[-1] < 60
    resumed = gnothi_json(*arguments, "--out", str(out))
    undisturbed = gnothi_json(*arguments, "--out", str(tmp_path / "undisturbed"))
    assert [row.comparable() for row in read_rows(out)] == [row.comparable() for row in read_rows(tmp_path / "undisturbed")]
    for method in (*resumed, *undisturbed):
        del method["seconds"], method["intervals"]["seconds"]
    assert resumed == undisturbed


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(("limit", "started"), [("1", []), ("2", [2])])
def test_no_more_processes_than_questions(
    gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, started: list[int]
) -> None:
    counts: list[int] = []

    @asynccontextmanager
    async def here(execution: Any, count: int, opening: Any, *_: Any) -> AsyncIterator[Any]:
        counts.append(count)
        async with opening() as methods:
            yield Answering(runner.here(methods, execution.seed))

    class Answering:
        under_way = precision = None
        date = ""

        def __init__(self, answer: Any) -> None:
            self.answer = answer

        async def __call__(self, name: str, question: Any) -> Any:
            return await self.answer(name, question)

    monkeypatch.setattr(execute, "workers", here)
    code, _, err = gnothi(
        "eval", "lab", "--method", "direct", "--limit", limit, "--workers", "40", "--out", str(tmp_path / "r")
    )
    assert (code, counts) == (0, started), err
