"""What somebody meets who has just begun: nothing found, a model forgotten, a name misspelt, too few questions, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gnothi.cli import main
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, Run
from tests.messages import complained
from tests.patience import PATIENCE


@pytest.fixture
def canteen(gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of one's own in the present folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "menu.md").write_text("# Canteen\n\nOn Friday there is lentil soup for four crowns.\n", "utf-8")
    assert gnothi("index", "build", "menu.md", "--out", "canteen")[0] == 0
    return tmp_path


def questions(folder: Path, number: int) -> str:
    lines = [{"id": str(n), "question": f"What is dish {n}?", "answers": ["lentil soup"]} for n in range(number)]
    (folder / "dishes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return "dishes.jsonl"


@pytest.mark.usefixtures("canteen")
def test_the_laboratorys_model_is_not_taken_for_others_documents_unasked(gnothi: Run, scripted: Scripted) -> None:
    complained(gnothi("ask", KNOWN, "--index", "canteen"))
    assert scripted.prompts == []


def test_a_model_that_is_named_is_taken_with_a_warning(gnothi: Run, canteen: Path, scripted: Scripted) -> None:
    code, _, err = gnothi("ask", "soup Friday?", "--model", "lab", "--index", "canteen", "--method", "rag")
    assert code == 0
    assert "warning: --index: got 'canteen' beside the laboratory's model" in err
    data = questions(canteen, 2)
    code, _, err = gnothi("eval", data, "--index", "canteen", "--method", "rag", "--out", "run")
    assert (code, Path("run").exists()) == (2, False)
    assert "--model lab" in err
    assert scripted.prompts != []


@pytest.mark.usefixtures("scripted")
def test_the_laboratorys_library_belongs_to_its_questions(gnothi: Run, tmp_path: Path) -> None:
    other = ("--model", "openai:some", "--index", "lab", "--method", "rag", "--no-cache")
    _, _, err = gnothi("ask", "Who?", *other)
    assert "which tells of an invented world alone" in err
    _, _, err = gnothi("eval", "lab", *other, "--limit", "1", "--out", str(tmp_path / "run"))
    assert "invented world" not in err


@pytest.mark.usefixtures("scripted")
def test_where_nothing_was_found_unread_files_are_told(gnothi: Run, canteen: Path) -> None:
    (canteen / "plans").mkdir()
    (canteen / "plans" / "broken.pdf").write_bytes(b"no PDF")
    assert gnothi("index", "build", "plans", "--out", "canteen")[0] == 1
    given = ("--model", "lab", "--index", "bm25:canteen", "--method", "rag")
    assert "1 file could not be read: gnothi index info canteen" in gnothi("ask", "Quux?", *given)[2]
    assert "could not be read" not in gnothi("ask", "lentil soup?", *given)[2]
    assert "1 file could not be read" in gnothi("index", "search", "canteen", "Quux")[2]


@pytest.mark.usefixtures("canteen")
def test_a_promise_that_the_questions_cannot_support_is_refused_before_any_is_asked(
    gnothi: Run, canteen: Path, scripted: Scripted
) -> None:
    given = ("calibrate", questions(canteen, 30), "--model", "lab", "--index", "canteen", "--out", "c.toml")
    code, _, err = gnothi(*given, "--target-error", "0.01")
    assert code == 2
    assert re.search(r"got 30 questions with a known answer, expected at least \d\d\d", err)
    assert scripted.prompts == []
    assert not Path("c.toml.runs").exists()
    gnothi(*given, "--target-error", "0.2")
    assert scripted.prompts != []


@pytest.mark.usefixtures("canteen", "scripted")
def test_nothing_found_is_said(gnothi: Run) -> None:
    given = ("--model", "lab", "--index", "canteen", "--method", "rag")
    _, out, _ = gnothi("ask", "Quux?", *given)
    assert "nothing found" in out
    assert "none: the search found nothing, so the answer is from the model's" in out
    found = json.loads(gnothi("ask", "Quux?", *given, "--json")[1])
    assert (found["retrievals"], found["found_nothing"], found["evidence"]) == (1, True, [])
    assert json.loads(gnothi("ask", "lentil soup?", *given, "--json")[1])["found_nothing"] is False
    Path("q.jsonl").write_text('{"question": "Quux?", "answers": ["nobody"]}\n{"question": "soup?", "answers": ["x y"]}\n')
    code, out, _ = gnothi("eval", "q.jsonl", *given, "--out", "run")
    assert code == 0
    assert "nothing was found for 1 of 2 questions" in " ".join(out.split())
    rows = [json.loads(line) for line in Path("run/rows.jsonl").read_text("utf-8").splitlines()]
    assert [(row["tally"].get("found_nothing"), row["reached"]["found"]) for row in rows] == [(1, False), (None, False)]


def test_too_few_questions_are_told_before_any_is_asked(gnothi: Run, canteen: Path, scripted: Scripted) -> None:
    data = questions(canteen, 19)
    for method in ("seakr", "panel"):
        complained(gnothi("calibrate", data, "--model", "lab", "--index", "canteen", "--method", method))
    assert scripted.prompts == []


@pytest.mark.usefixtures("canteen", "scripted")
@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("ask x --model lab --index cantein", "canteen"),
        ("index search cantien soup", "canteen"),
        ("index build menue.md --out new", "menu.md"),
        ("eval dishs.jsonl --method direct --out run", "dishes.jsonl"),
        ("eval dishes.json --method direct --out run", "dishes.jsonl"),
        ("eval labb --method direct --out run", "lab"),
        ("ask --file dises.jsonl --out run", "dishes.jsonl"),
        ("ask x --calibration gat.toml", "gate.toml"),
        ("ask x --config gaet.toml", "gate.toml"),
        ("ask x --model ./canteeen --method direct", "./canteen"),
        ("report cantene", "canteen"),
        ("calibrate --replay canten", "canteen"),
        ("report canteeen --forecast 5", "canteen"),
        ("ask x --method rga", "rag"),
        ("ask x --set treshold=2", "threshold"),
        ("ask x --set model.devise=cpu", "device"),
    ],
)
def test_the_nearest_name_is_told(gnothi: Run, canteen: Path, command: str, meant: str) -> None:
    questions(canteen, 1)
    Path("gate.toml").write_text("")
    code, out, err = gnothi(*command.split())
    assert (code in (2, 3), out) == (True, "")
    said = err.partition("id you mean '")[2].partition("'")[0]
    assert said == meant or Path(said) == canteen / meant


LOADING = """
import sys, time
from gnothi.cli import main
from gnothi.session import sources

def loading(spec, settings=None):
    print("loading", flush=True)
    while True:
        time.sleep(0.01)

sources.open_model = loading
main.main(sys.argv[1:])
"""


def test_an_interrupt_is_heard_while_a_model_is_opened() -> None:
    root = Path(main.__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", LOADING, "ask", KNOWN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
    assert err.strip().splitlines()[-1].startswith("gnothi: interrupted.")
